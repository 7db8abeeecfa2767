# SPDX-License-Identifier: MIT
"""What-if against truth: runs on an H200 (torch 2.11) under many settings, of each of which torch's
own snapshot, or our trace, of one is replayed under the others. See tests/data/whatif."""
import gzip
import json
import pickle
import re
import tarfile
from pathlib import Path

import pytest
from test_golden import shell

DATA = Path(__file__).parent.parent / "data"
SNAPSHOTS = json.loads((DATA / "torch_snapshots" / "truth.json").read_text(encoding="utf-8"))
RUNS = json.loads((DATA / "whatif" / "truth.json").read_text(encoding="utf-8"))
OOM_ALLOWED, OOM_REQUEST = 600439521, 28311552
# Programs that ran out end there: what would have lived longer cannot be held against them.
LIVED_LONGER = {("growth", "max_split_size_mb:32"),
                ("churn_limited", "garbage_collection_threshold:0.6"),
                ("churn_limited", "garbage_collection_threshold:0.8,max_split_size_mb:64"),
                ("churn_limited", "expandable_segments:True"),
                ("churn_limited", "max_split_size_mb:32")}


def whatif(folder, run, *options, status=0):
    quoted = " ".join(f"'{option}'" for option in options)
    done = shell(f"tidemark whatif {run} --json {quoted}", folder)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if status == 0 else done.stderr


@pytest.fixture(scope="module", name="runs")
def runs_fixture(tmp_path_factory):
    """A folder with all of them as runs; the snapshots' names end in _s."""
    folder = tmp_path_factory.mktemp("whatif")
    for path in [*(DATA / "torch_snapshots").glob("*.pickle.gz"),
                 *(DATA / "whatif").glob("*.pickle.gz")]:
        name = path.name.split(".")[0]
        done = shell(f"tidemark import {path} -o {name}_s.tmk", folder)
        assert done.returncode == 0, done.stderr
    for path in (DATA / "whatif").glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            archive.extractall(folder)
    return folder


def check(said, truth):
    assert said["peak_reserved"] == truth["peak_reserved"]
    assert said["retries"] == truth["retries"]
    assert said["ooms"] == truth["ooms"]
    assert (said["oom"] is not None) == (truth["ooms"] > 0)


@pytest.mark.parametrize("truth", [t for t in SNAPSHOTS if t["workload"] != "lora_all"],
                         ids=lambda t: f"{t['workload']}-{t['conf'] or 'default'}")
def test_snapshots(truth, runs):
    """To the byte, the recorded settings and others."""
    limit = ["--capacity", str(OOM_ALLOWED)] if truth["workload"] == "oom" else []
    settings = whatif(runs, f"{truth['workload']}_s.tmk", "--alloc-conf", truth["conf"],
                      *limit)["settings"]
    check(settings[1], truth)
    assert settings[1]["peak_allocated"] == truth["peak_allocated"]
    assert settings[0]["conf"] == ""
    if truth["workload"] == "oom":
        oom = settings[0]["oom"]
        assert oom["recorded"] and oom["request_bytes"] == OOM_REQUEST
        # alloc, free_requested and oom events of the snapshot before it
        assert oom["event"] == 3766
        assert settings[0]["smallest_limit"] > OOM_ALLOWED


@pytest.mark.parametrize("truth", [t for t in RUNS if (t["run"], t["conf"]) not in LIVED_LONGER],
                         ids=lambda t: f"{t['run']}-{t['conf'] or 'default'}")
def test_recorded_under_each(truth, runs):
    limit = ["--allowed", str(truth["allowed"])] if truth["allowed"] else []
    said = whatif(runs, f"{truth['run']}_s.tmk", "--alloc-conf", truth["conf"], *limit)
    check(said["settings"][1], truth)


def test_expandable_recording(runs):
    """Of a snapshot with expandable segments the recorded settings are known to be that."""
    truth = next(t for t in RUNS if t["run"] == "growth" and "expandable" in t["conf"])
    said = whatif(runs, "growth_expandable_s.tmk", "--allowed", str(truth["allowed"]))
    assert said["settings"][0]["conf"] == "expandable_segments:True"
    check(said["settings"][0], truth)
    assert said["settings"][0]["oom"]["recorded"]
    # Without the limit: it is found from what was given back and from the OOM.
    found = whatif(runs, "growth_expandable_s.tmk")["settings"][0]
    assert truth["allowed"] <= found["limit"] < truth["allowed"] + (20 << 20)
    check(found, truth)


@pytest.mark.parametrize("name", ["streams", "growth"])
def test_own_traces(name, runs):
    """Our traces know blocks' sizes only: under the recorded settings that is enough; under others
    the two-stream program stays within 1 %."""
    truths = {t["conf"]: t for t in RUNS if t["run"] == name}
    others = list(truths) if name == "streams" else [""]
    said = whatif(runs, f"{name}.tmk", "--alloc-conf", *others)
    assert said["settings"][0]["peak_reserved"] == truths[""]["peak_reserved"]
    assert said["settings"][0]["retries"] == truths[""]["retries"]
    assert said["settings"][0]["ooms"] == truths[""]["ooms"]
    assert said["measured"]["peak_reserved"] == truths[""]["peak_reserved"]
    assert said["requests_known"] is False and said["outside"] > 500 << 20
    for row in said["settings"][1:]:
        expected = truths[row["conf"]]["peak_reserved"]
        assert abs(row["peak_reserved"] - expected) <= expected / 100, row["conf"]


def test_lost_beginning(tmp_path):
    """Of a snapshot whose ring was too short: what was there before lies where it lay."""
    with gzip.open(DATA / "torch_snapshots" / "varlen.pickle.gz") as file:
        snapshot = pickle.load(file)
    snapshot["device_traces"] = [trace[len(trace) // 2:] for trace in snapshot["device_traces"]]
    (tmp_path / "half.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
    assert shell("tidemark import half.pickle -o half.tmk", tmp_path).returncode == 0
    said = whatif(tmp_path, "half.tmk")
    truth = next(t for t in SNAPSHOTS if t["workload"] == "varlen" and t["conf"] == "")
    assert said["seeded"] == 92
    assert said["settings"][0]["peak_reserved"] == truth["peak_reserved"]
    assert said["settings"][0]["peak_allocated"] == truth["peak_allocated"]
    assert "92 blocks are older than the trace" in shell("tidemark whatif half.tmk", tmp_path).stdout


def test_table(runs):
    """Without a question: a table of sensible settings, and what to do."""
    said = whatif(runs, "varlen_s.tmk")
    confs = [row["conf"] for row in said["settings"]]
    assert confs[0] == "" and "expandable_segments:True" in confs and len(set(confs)) == len(confs)
    assert said["best"] == "expandable_segments:True"
    text = shell("tidemark whatif varlen_s.tmk", runs).stdout
    assert "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in text
    assert "measured then" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_card(runs):
    """A card: what is held beside torch is taken off, and the least that works is found."""
    said = whatif(runs, "growth.tmk", "--capacity", "1.5GiB")
    row = said["settings"][0]
    assert row["capacity"] == 3 << 29
    assert row["limit"] == row["capacity"] - said["outside"]
    assert row["oom"] is None and row["smallest_limit"] <= row["limit"]
    less = whatif(runs, "growth.tmk", "--allowed", str(row["smallest_limit"] - (2 << 20)))
    assert less["settings"][0]["oom"] is not None
    same = whatif(runs, "growth.tmk", "--allowed", str(row["smallest_limit"]))
    assert same["settings"][0]["oom"] is None


def test_small_card(runs):
    """Not even what is held beside torch fits: nothing is left, and what was measured then says
    nothing of such a card."""
    said = whatif(runs, "growth.tmk", "--capacity", "300MiB")
    assert [row["limit"] for row in said["settings"]] == [0] * len(said["settings"])
    assert all(row["oom"] for row in said["settings"]) and said["best"] is None
    text = shell("tidemark whatif growth.tmk --capacity 300MiB", runs).stdout
    assert "A GPU of 300.0 MiB leaves nothing for torch" in text
    assert re.search(r"measured then  .* MiB +- +- +- +-$", text, re.MULTILINE)
    assert "at most 0 B" not in text


def test_limit_not_known(runs, tmp_path):
    """It met a limit, but got over it each time: what was given back shows that."""
    with gzip.open(DATA / "whatif" / "growth.pickle.gz") as file:
        snapshot = pickle.load(file)
    trace = snapshot["device_traces"][0]
    end = next(i for i, event in enumerate(trace) if event["action"] == "oom")
    while trace[end - 1]["action"] == "segment_free":  # of the request that was refused
        end -= 1
    snapshot["device_traces"][0] = trace[:end]
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
    assert shell("tidemark import a.pickle -o a.tmk", tmp_path).returncode == 0
    truth = next(t for t in RUNS if t["run"] == "growth" and t["conf"] == "")
    said = whatif(tmp_path, "a.tmk")
    limit = said["unknown_limit"]
    assert limit["times"] == truth["retries"] - 1  # the last was of the request
    assert limit["at_least"] == truth["peak_reserved"] <= truth["allowed"] < limit["below"]
    assert said["settings"][0]["limit"] is None and said["settings"][0]["retries"] == 0
    text = " ".join(shell("tidemark whatif a.tmk", tmp_path).stdout.split())
    assert f"--allowed {limit['at_least']} replays with it" in text
    known = whatif(tmp_path, "a.tmk", "--allowed", str(limit["at_least"]))["settings"][0]
    assert known["retries"] == limit["times"] and known["oom"] is None
    assert whatif(runs, "varlen_s.tmk")["unknown_limit"] is None


def test_fraction_of_what(runs):
    """A part of a card whose size is not known is no limit."""
    conf = ["--alloc-conf", "per_process_memory_fraction:0.5"]
    assert "give --capacity" in whatif(runs, "varlen_s.tmk", *conf, status=2)
    rows = whatif(runs, "varlen_s.tmk", *conf, "--capacity", "2GiB")["settings"]
    assert [row["limit"] for row in rows] == [2 << 30, 1 << 30]


def test_refusals(runs, tmp_path):
    assert "large_segment_size_mb must be at least 11" in whatif(
        runs, "varlen_s.tmk", "--alloc-conf", "large_segment_size_mb:2", status=2)
    assert "torch knows no option 'max_split'" in whatif(runs, "growth.tmk", "--alloc-conf",
                                                         "max_split:32", status=2)
    assert "cudaMallocAsync cannot be replayed" in whatif(
        runs, "growth.tmk", "--alloc-conf", "backend:cudaMallocAsync", status=2)
    assert "is not a size" in whatif(runs, "growth.tmk", "--capacity", "much", status=2)
    shell("tidemark run -q -o a.tmk -- tinytrain --quiet --steps 2", tmp_path)
    assert "no CUDA blocks" in whatif(tmp_path, "a.tmk", status=1)
    said = whatif(tmp_path, "a.tmk", "--device", "cpu")
    assert said["device"] == "cpu" and said["measured"]["peak_reserved"] is None
    assert "as if they were on a GPU" in shell("tidemark whatif a.tmk --device cpu",
                                                tmp_path).stdout


def test_settings_are_recorded(tmp_path):
    conf = "max_split_size_mb:64"
    shell(f"PYTORCH_CUDA_ALLOC_CONF={conf} tidemark run -q -o a.tmk -- tinytrain --quiet --steps 2",
          tmp_path)
    said = whatif(tmp_path, "a.tmk", "--device", "cpu")
    assert said["alloc_conf"] == conf and said["settings"][0]["conf"] == conf
    rows = shell("tidemark query a.tmk 'SELECT alloc_conf FROM processes' --format csv", tmp_path)
    assert rows.stdout.split() == ["alloc_conf", conf]


def doc_lines():
    text = (DATA.parent.parent / "docs" / "whatif.md").read_text(encoding="utf-8")
    return text.split("```sh\n")[1].split("```")[0].splitlines()


@pytest.mark.parametrize("line", doc_lines())
def test_docs(line, runs, tmp_path):
    """The commands of docs/whatif.md run as they stand there."""
    (tmp_path / "a.tmk").symlink_to(runs / "growth.tmk")
    (tmp_path / "snapshot.pickle.gz").symlink_to(DATA / "whatif" / "growth.pickle.gz")
    done = shell(line, tmp_path)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_sql(runs):
    """The same as a table."""
    said = whatif(runs, "oom_s.tmk")["settings"]
    query = "SELECT conf, recorded, peak_reserved, retries, oom_event, oom_request FROM whatif"
    done = shell(f"tidemark query oom_s.tmk '{query}' --format json", runs)
    rows = json.loads(done.stdout)["rows"]
    assert [row["conf"] for row in rows] == [row["conf"] for row in said]
    assert [row["recorded"] for row in rows] == [1] + [0] * (len(said) - 1)
    for row, other in zip(rows, said):
        oom = other["oom"] or {"event": None, "request_bytes": None}
        assert row["peak_reserved"] == other["peak_reserved"]
        assert row["retries"] == other["retries"]
        assert (row["oom_event"], row["oom_request"]) == (oom["event"], oom["request_bytes"])
    done = shell("tidemark query oom_s.tmk 'SELECT count(*) FROM whatif(1073741824)"
                 " WHERE oom_request IS NULL' --format csv", runs)
    assert done.stdout.split() == ["count(*)", str(len(said))]
