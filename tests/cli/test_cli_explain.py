# SPDX-License-Identifier: MIT
"""explain, on runs of a real card that ran out for a known reason (tests/data/ooms) and on tinytrain's."""
import json
import os
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
DATA = os.path.join(ROOT, "tests", "data", "ooms")
TIDEMARK = os.path.join(os.environ.get("TIDEMARK_BUILD", os.path.join(ROOT, "build")), "tidemark")
MIB = 1 << 20

with open(os.path.join(DATA, "truth.json"), encoding="utf-8") as file:
    TRUTH = json.load(file)

# name: cause, kind of the first fix, its proof, its conf
CAUSES = {
    "fragmentation": ("fragmentation", "expandable_segments", "replay", "expandable_segments:True"),
    "leak": ("leak", "leak", "measured", None),
    "outlier": ("outlier", "outlier", "measured", None),
    "demand": ("demand", "batch", "estimate", None),
    "other_process": ("other_process", "other_process", "measured", None),
    "oom_growth": ("fragmentation", "alloc_conf", "replay", "max_split_size_mb:32"),
    "churn": ("fragmentation", "alloc_conf", "replay", "max_split_size_mb:32"),
    "churn_expandable": ("fragmentation", "alloc_conf", "replay", "max_split_size_mb:32"),
}


def explain(run):
    done = subprocess.run([TIDEMARK, "explain", run, "--json"], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


def found(name):
    (oom,) = explain(os.path.join(DATA, name + ".trace"))["ooms"]
    return oom


def near(bytes_found, bytes_said):
    """Torch says two digits behind the point."""
    unit = next(unit for unit in (1 << 30, MIB, 1024) if bytes_said >= unit)
    return abs(bytes_found - bytes_said) <= 0.0051 * unit


@pytest.mark.parametrize("name", CAUSES)
def test_cause_and_first_fix(name):
    oom = found(name)
    first = oom["fixes"][0]
    assert (oom["cause"], first["kind"], first["proof"], first["conf"]) == CAUSES[name]
    assert first["avoids"] and first["saves_bytes"] >= oom["evidence"]["missing"] > 0
    assert [fix["avoids"] for fix in oom["fixes"]] == sorted((fix["avoids"] for fix in oom["fixes"]), reverse=True)


def test_table():
    """SQL tells the same, with the first fix."""
    columns = "oom, time_ns, step, request, cause, max_bytes, allocated, reserved, missing, fix, fix_saves, fix_proof"
    for name in CAUSES:
        oom, done = found(name), subprocess.run(
            [TIDEMARK, "query", os.path.join(DATA, name + ".trace"), f"SELECT {columns} FROM explanations",
             "--format", "json"], capture_output=True, text=True, check=True)
        (row,) = json.loads(done.stdout)["rows"]
        first, evidence = oom["fixes"][0], oom["evidence"]
        assert list(row.values()) == [
            1, oom["time_ns"], oom["step"], oom["request_bytes"], oom["cause"], evidence["limit"],
            evidence["allocated"], evidence["reserved"], evidence["missing"], first["text"],
            first["saves_bytes"], first["proof"]]


def test_room_is_no_saving():
    """What is free beyond a limit that was set is not what raising it saves."""
    fixes = {fix["kind"]: fix for name in CAUSES for fix in found(name)["fixes"]}
    assert fixes["limit"]["saves_bytes"] is None and fixes["limit"]["avoids"]


@pytest.mark.parametrize("name", CAUSES)
def test_figures_are_torchs(name):
    truth, oom = TRUTH[name], found(name)
    evidence = oom["evidence"]
    assert near(evidence["allocated"], truth["allocated"])
    assert near(evidence["free"], truth["cached"])
    assert evidence["reserved"] == evidence["allocated"] + evidence["free"]
    assert evidence["limit_is"] == ("setting" if truth["allowed"] else "card")
    if truth["allowed"]:
        assert evidence["limit"] <= truth["allowed"] + 0.0051 * (1 << 30)
        assert evidence["limit_below"] > truth["allowed"] - 0.0051 * (1 << 30)


def test_leak_says_the_line():
    leak = found("leak")["evidence"]["leak"]
    assert (os.path.basename(leak["site"]["file"]), leak["site"]["line"]) == ("leak.py", 17)
    assert abs(leak["bytes_per_step"] - 14 * MIB) < 0.01 * 14 * MIB


def test_batch_that_was_advised_fits():
    """On the card 0.6 and more of that batch ran out; half of it fits, as 52 tensors of it do."""
    oom = found("demand")
    assert 0.5 <= oom["fixes"][0]["factor"] < 0.6
    assert oom["evidence"]["need_is_estimate"]
    kinds = [fix["kind"] for fix in oom["fixes"] if fix["avoids"]]
    assert "checkpointing" in kinds  # which was tried for real too


def test_model_that_asks_too_much():
    """A smaller batch, checkpointing, half the precision, a larger GPU: each with what it saves."""
    fixes = found("demand")["fixes"]
    assert [fix["kind"] for fix in fixes] == ["batch", "checkpointing", "bfloat16", "card"]
    assert {fix["proof"] for fix in fixes} == {"estimate"}
    assert all(fix["saves_bytes"] > 0 for fix in fixes[:3])


def test_others_are_measured():
    oom = found("other_process")
    assert oom["evidence"]["others"] == 143659106304
    assert oom["fixes"][0]["saves_bytes"] == 143659106304


def test_replays_tell_what_torch_did():
    """With expandable segments oom_growth ran out two steps earlier: it is not advised."""
    replays = {replay["conf"]: replay for replay in found("oom_growth")["evidence"]["replays"]}
    assert replays[""]["runs_out"] and not replays[""]["runs_out_before"]
    assert replays["expandable_segments:True"]["runs_out_before"]
    assert not replays["max_split_size_mb:32"]["runs_out"]
    assert replays["max_split_size_mb:128"]["runs_out"]
    assert "expandable_segments" not in [fix["kind"] for fix in found("oom_growth")["fixes"]]


def tinytrain(folder, *options):
    subprocess.run([TIDEMARK, "run", "-q", "-o", folder, "--", os.path.join(os.path.dirname(TIDEMARK), "tinytrain"),
                    "--quiet", *options], capture_output=True, timeout=240, check=False)
    return explain(folder)["ooms"]


SMALL = ["--layers", "1", "--dim", "8", "--heads", "1", "--seq", "8", "--batch", "1"]


def test_tinytrain_leaks(tmp_path):
    (oom,) = tinytrain(str(tmp_path / "leak.tmk"), *SMALL, "--steps", "400", "--leak", "64KiB", "--capacity", "4MiB")
    assert oom["cause"] == "leak"
    assert oom["evidence"]["limit"] == oom["evidence"]["limit_below"] == 4 * MIB
    assert oom["evidence"]["leak"]["site"]["function"] == "remember_loss"
    assert abs(oom["evidence"]["leak"]["bytes_per_step"] - 65536) < 700


def test_tinytrain_needs_more(tmp_path):
    (oom,) = tinytrain(str(tmp_path / "demand.tmk"), "--capacity", "5MiB")
    assert (oom["cause"], oom["step"], oom["evidence"]["limit_is"]) == ("demand", 0, "stated")
    assert oom["fixes"][0]["kind"] == "batch"


@pytest.mark.parametrize("name, conf", [("oom", ""), ("growth_expandable", "expandable_segments:True")])
def test_snapshot(name, conf, tmp_path):
    """No steps, categories or card; and yet: gaps, and settings that were replayed to serve it, as they did."""
    run = str(tmp_path / "snapshot.tmk")
    pickle = os.path.join(ROOT, "tests", "data", "torch_snapshots", name + ".pickle.gz")
    subprocess.run([TIDEMARK, "import", pickle, "-o", run], capture_output=True, timeout=240, check=True)
    (oom,) = explain(run)["ooms"]
    first = oom["fixes"][0]
    assert (oom["cause"], oom["step"], first["conf"]) == ("fragmentation", None, "max_split_size_mb:32")
    assert (first["proof"], first["avoids"]) == ("replay", True)
    replays = oom["evidence"]["replays"]
    assert (replays[0]["conf"], replays[0]["runs_out"], replays[0]["runs_out_before"]) == (conf, True, False)
    assert oom["evidence"]["leak"] is None and oom["evidence"]["card"] is None
    assert oom["evidence"]["limit_is"] == "setting" and oom["evidence"]["card_free"] > 100 << 30


def test_docs_show_what_it_prints():
    with open(os.path.join(ROOT, "docs", "explain.md"), encoding="utf-8") as docs:
        shown = docs.read().split("```console\n")[1].split("```")[0].splitlines()[1:]
    done = subprocess.run([TIDEMARK, "explain", os.path.join(DATA, "fragmentation.trace")], capture_output=True,
                          text=True, timeout=240, check=False)
    printed = iter(done.stdout.splitlines())
    missing = [line for line in shown if line.strip() != "..." and line not in printed]
    assert not missing


def test_unknown_limit_is_not_zero(tmp_path):
    """Nothing was allocated, and nothing tells what the limit is."""
    (tmp_path / "none.c").write_text('#include "tidemark/tidemark.h"\nint main(void) { tidemark_oom(TIDEMARK_HOST, 3 << 20, 0); '
                                     'return 1; }\n')
    subprocess.run(["cc", "-I", os.path.join(ROOT, "include"), "-o", "none", "none.c"], cwd=tmp_path, check=True)
    subprocess.run([TIDEMARK, "run", "-q", "-o", "a.tmk", "--", "./none"], cwd=tmp_path, check=False)
    told = [subprocess.run([TIDEMARK, "explain", "a.tmk", *options], cwd=tmp_path, capture_output=True, text=True,
                           check=False).stdout for options in ([], ["--json"])]
    assert "The limit is not known." in told[0] and "limit  " not in told[0]
    (oom,) = json.loads(told[1])["ooms"]
    assert (oom["evidence"]["limit"], oom["evidence"]["allocated"], oom["fixes"]) == (None, 0, [])


def test_a_leak_that_was_let_go_before(tmp_path):
    """Work buffers were dropped two steps before the OOM: of the leak 19 results of 2 MiB were still alive, which is too
    little to be a cause or to be worth a fix."""
    oom = found("fragmentation")
    assert oom["evidence"]["leak"]["bytes"] == 38 << 20
    assert "leak" not in [fix["kind"] for fix in oom["fixes"]]
