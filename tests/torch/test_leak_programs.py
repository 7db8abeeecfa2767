# SPDX-License-Identifier: MIT
"""leak RUN on programs written the way people write bugs: every verdict, line and rate (score_leaks.py).

missed/ has what earlier judges got wrong. fresh/ and harder/ were written before the judge that they are
asked of now, and scored once before anything was changed for them (docs/measurements.md)."""
import subprocess
from pathlib import Path

import pytest
import score_leaks
from torch_kit import BUILD, PYTHON, TIDEMARK, environment

ALL = {path.stem: path for path in sorted(score_leaks.FOLDER.glob("*/*_*.py"))}
# What the judge does not find, and what it says instead.
NOT_FOUND = {
    "leak_text_cache": ["result"],  # outputs of each call, as results are gathered
    "leak_best_states": [],  # keeps less and less often, and in the last third nothing
    "leak_queue_behind": [],  # a queue of which older and older batches are taken
}
# A second line of theirs keeps less than the threshold, so its part is not in the sum.
PART_OF_RATE = {"leak_multi_task_logits"}


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """By program: its trace. The worker of leak_loader_worker_cache has one of its own."""
    folder = tmp_path_factory.mktemp("programs")
    run, pids = folder / "a.tmk", folder / "pids"
    done = subprocess.run([TIDEMARK, "run", "-q", "-o", str(run), "--", PYTHON,
                           str(Path(__file__).parent / "leaks" / "all_leaks.py"), *map(str, ALL.values())],
                          env=environment(PROGRAM_PIDS=str(pids), TIDEMARK_RING_DIR=str(folder)), capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    of_pid = {int(path.name.split(".")[2]): path for path in run.iterdir()}
    found = {}
    for line in pids.read_text(encoding="utf-8").splitlines():
        pid, program = line.split(" ", 1)
        found[Path(program).stem] = of_pid.pop(int(pid))
    (found["worker"],) = of_pid.values()
    return found


def test_programs():
    assert len([name for name in ALL if name.startswith("leak_")]) == 53
    assert len([name for name in ALL if name.startswith("clean_")]) == 30


@pytest.mark.parametrize("name", ALL)
def test_program(traces, name):
    """The worker leaks by time, so no rate is known of it."""
    row = score_leaks.score(BUILD, ALL[name], traces["worker" if name == "leak_loader_worker_cache" else name])
    if name in NOT_FOUND:
        assert (row["kind"], row["not_judged"]) == ("FN", NOT_FOUND[name])
        return
    assert row["kind"] == ("TP" if name.startswith("leak_") else "TN"), row
    assert row["rate_right"] in (None, name not in PART_OF_RATE), row
    assert row["line_right"] is not False, row
