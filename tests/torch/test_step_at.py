# SPDX-License-Identifier: MIT
"""`run --step-at FILE:LINE`: a step begins each time that Python reaches the line, from CPython 3.12 on."""
import re
import subprocess
from pathlib import Path

import pytest
from torch_kit import TIDEMARK, environment, pythons, query

TARGET = Path(__file__).parent / "step_at_target.py"
LINES = {text.rpartition("# ")[2]: number + 1 for number, text in enumerate(TARGET.read_text().splitlines())
         if "  # " in text}


def watched(python, tmp_path, rings, case, line):
    where = tmp_path / "a.tmk"
    place = f"torch/{TARGET.name}:{line}"
    done = subprocess.run([TIDEMARK, "run", "--quiet", "--step-at", place, "-o", str(where), "--", python, str(TARGET),
                           case], env=environment(TIDEMARK_RING_DIR=str(rings)),
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return where


def can_monitor(python):
    done = subprocess.run([python, "-c", "import sys; sys.monitoring"], capture_output=True, check=False)
    return done.returncode == 0


EXPECTED = {"in a function": ["3"] * 7, "in a generator": ["2"] * 4 + ["1"], "that raises": ["2"] * 5 + ["3"],
            "of the module, in a loop that runs already": ["2"] * 4}


@pytest.mark.parametrize("case", list(EXPECTED))
@pytest.mark.parametrize("python", pythons())
def test_step_at(python, case, tmp_path, rings):
    """Blocks of each step, by the line of the comment; an older Python counts no steps, and the trace says why."""
    where = watched(python, tmp_path, rings, case, LINES[case])
    found = query(where, "SELECT step, count(*) FROM allocations WHERE step IS NOT NULL GROUP BY step ORDER BY step")
    marks = query(where, "SELECT event, info FROM marks")
    if can_monitor(python):
        assert found == [[str(step), n] for step, n in enumerate(EXPECTED[case])]
        assert marks == []
    else:
        assert found == []
        assert marks == [["steps not counted", "--step-at needs Python 3.12 or later"]]


@pytest.mark.parametrize("place", ["train.py", "train.py:", ":41", "train.py:x", "train.py:41x"])
def test_no_place(place):
    done = subprocess.run([TIDEMARK, "run", "--step-at", place, "--", "true"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2
    assert re.search(r"--step-at: '.*' is not a file and a line, such as train.py:41", done.stderr)
