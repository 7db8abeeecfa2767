# SPDX-License-Identifier: MIT
"""`tidemark diff` on trainings with adapters: with checkpointing; and with another rank, inside a wrapper, by
an edited copy of the program in another folder."""
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from torch_kit import BUILD, LIBRARY, PYTHON, REPO, TIDEMARK, WORKLOADS, environment, query

LAYERS, DIM, FLOAT = 4, 128, 4
RUNS = {"rank8": ["--rank", "8"], "rank64": ["--rank", "64", "--wrapped"],
        "checkpointing": ["--rank", "8", "--checkpointing"]}
# Each layer has adapters at q and v, of two matrices each.
MORE_IN_MATRICES = LAYERS * 2 * 2 * DIM * (64 - 8) * FLOAT


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    (folder / "rings").mkdir()
    env = environment(TIDEMARK_RING_DIR=str(folder / "rings"), PYTHONPATH=str(REPO / "python"),
                      TIDEMARK_LIBRARY=LIBRARY)
    program = WORKLOADS / "adapters.py"
    edited = folder / "edited" / "adapters.py"
    edited.parent.mkdir()
    edited.write_text(program.read_text().replace("class Adapted", "# two\n# lines\nclass Adapted"))
    for name, args in RUNS.items():
        subprocess.run([TIDEMARK, "run", "-q", "-o", str(folder / f"{name}.tmk"), "--", PYTHON,
                        str(edited if name == "rank64" else program), "--steps", "3", *args],
                       env=env, capture_output=True, timeout=100, check=True)
    return folder


def diff(runs, *args, status=0):
    done = subprocess.run([TIDEMARK, "diff", *args, "--json"], cwd=runs, capture_output=True, text=True,
                          check=False)
    assert done.returncode == status, done.stderr
    found = json.loads(done.stdout)
    for row in [found["peak"], *found["by"], *found["causes"]]:
        assert row["change"] == row["b"] - row["a"]
    whole = found["peak"]["change"]
    assert sum(row["change"] for row in found["by"]) == whole
    assert sum(cause["change"] for cause in found["causes"]) == whole
    assert sum(found["split"].values()) == whole
    assert found["unexplained"] == 0
    return found


def changes(found):
    return {row["key"]: row["change"] for row in found["by"] if row["change"]}


def gradients_ns(runs, run):
    """When all gradients of the last step were there."""
    ((ns,),) = query(runs / run, "SELECT max(time_ns) FROM marks WHERE event = 'gradients'")
    return ns + "ns"


def test_rank(runs):
    """At the peak: parameters, two states of Adam's for each, and what lora_A gives."""
    found = diff(runs, "rank8.tmk", "rank64.tmk")
    given = LAYERS * 2 * 4 * 64 * (64 - 8) * FLOAT  # batch 4, 64 tokens
    assert changes(found) == {"parameter": MORE_IN_MATRICES, "optimizer_state": 2 * MORE_IN_MATRICES,
                              "activation": given}
    assert found["attributed"] >= 0.95
    assert found["split"]["resized"] == found["peak"]["change"]
    factors = {(cause["least_factor"], cause["most_factor"]) for cause in found["causes"] if cause["change"]}
    assert factors == {(8, 8)}
    assert found["steps"]["part_at"] == 0


def test_all_of_a_parameter(runs):
    """Where gradients are alive: parameter + gradient + two states."""
    found = diff(runs, "rank8.tmk", "rank64.tmk", "--from", gradients_ns(runs, "rank8.tmk"), "--to",
                 gradients_ns(runs, "rank64.tmk"))
    assert changes(found) == {"parameter": MORE_IN_MATRICES, "gradient": MORE_IN_MATRICES,
                              "optimizer_state": 2 * MORE_IN_MATRICES}


def test_wrapper(runs):
    """The second model is inside another: its modules and tensors are the same all the same."""
    found = diff(runs, "rank8.tmk", "rank64.tmk", "--by", "tensor")
    assert found["names_unwrapped"]
    for row in found["by"]:
        assert row["key"] is None or (row["a"] > 0) == (row["b"] > 0)
    modules = {row["key"] for row in diff(runs, "rank8.tmk", "rank64.tmk", "--by", "module")["by"]
               if row["change"]}
    assert {f"layers.{i}.{part}.lora_A" for i in range(LAYERS) for part in "qv"} <= modules


def test_moved_lines(runs):
    """Nothing is new, and both lines are shown."""
    found = diff(runs, "rank8.tmk", "rank64.tmk", "--by", "stack")
    assert all(row["a_stack"] and row["b_stack"] for row in found["by"])
    line = 1 + next(i for i, text in enumerate((WORKLOADS / "adapters.py").read_text().splitlines())
                    if "self.lora_B(self.lora_A(x))" in text)
    text = subprocess.run([TIDEMARK, "diff", "rank8.tmk", "rank64.tmk", "--by", "stack"], cwd=runs,
                          capture_output=True, text=True, check=True).stdout
    assert f"adapters.py:{line}/{line + 2} Adapted.forward" in text


def test_checkpointing(runs):
    found = diff(runs, "rank8.tmk", "checkpointing.tmk", "--by", "stack")
    assert found["attributed"] >= 0.95
    assert found["peak"]["change"] < 0
    by_category = changes(diff(runs, "rank8.tmk", "checkpointing.tmk"))
    states = LAYERS * 5056  # the generator's, one for each layer
    assert by_category == {"activation": found["peak"]["change"] - states, "other": states}
    text = subprocess.run([TIDEMARK, "diff", "rank8.tmk", "checkpointing.tmk"], cwd=runs, capture_output=True,
                          text=True, check=True).stdout
    assert "B recomputes activations in backward (torch.utils.checkpoint), A does not." in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_gates(runs):
    found = diff(runs, "rank8.tmk", "rank64.tmk", "--fail-if", "peak>5%", "--fail-if", "peak>1GiB", "--fail-if",
                 "optimizer_state>600%", "--fail-if", "reserved>0", "--junit", "out.xml", status=1)
    gates = {gate["expr"]: gate for gate in found["gates"]}
    assert {text: gate["passed"] for text, gate in gates.items()} == {
        "peak>5%": False, "peak>1GiB": True, "optimizer_state>600%": False,
        "reserved>0": False}  # of the CPU it is not known
    assert gates["peak>5%"]["b"] - gates["peak>5%"]["a"] == found["peak"]["change"]
    assert gates["reserved>0"]["a"] is None
    suite = ElementTree.parse(runs / "out.xml").getroot()
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "4", "3")
    failures = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    assert failures["peak>1GiB"] is None
    assert failures["peak>5%"].get("message").startswith("peak>5%: ")
    assert failures["reserved>0"].get("message") == "reserved>0: not known"
    assert diff(runs, "rank64.tmk", "rank8.tmk", "--fail-if", "peak>0")["gates"][0]["passed"]


def test_moments_of_one_run(runs):
    """Between the first step and the last one Adam's state has come."""
    found = diff(runs, "rank8.tmk", "--from", "0", "--to", "2")
    states = 2 * LAYERS * 2 * 2 * DIM * 8 * FLOAT + LAYERS * 4 * FLOAT  # and a counter of steps for each
    assert changes(found) == {"optimizer_state": states}
    assert {cause["split"]["added"] for cause in found["causes"] if cause["change"]} \
        == {2 * LAYERS * DIM * 8 * FLOAT + LAYERS * FLOAT}


def test_docs(runs):
    """The commands of docs/diff.md run as they stand there."""
    for name, run in {"before.tmk": "rank8.tmk", "after.tmk": "rank64.tmk"}.items():
        (runs / name).symlink_to(runs / run)
    text = (REPO / "docs" / "diff.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        done = subprocess.run(["sh", "-c", line], cwd=runs, capture_output=True, text=True, check=False,
                              env=environment(PATH=f"{BUILD}{os.pathsep}{os.environ['PATH']}"))
        assert done.returncode == (1 if "--fail-if" in line else 0), done.stderr
        assert done.stdout.startswith("  A  ")
