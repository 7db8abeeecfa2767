# SPDX-License-Identifier: MIT
"""Cells of a notebook have their numbers: a real Jupyter kernel, watched, runs some."""
import re
import subprocess
from pathlib import Path

import pytest
from torch_kit import PYTHON, TIDEMARK, environment, query

TARGET = Path(__file__).parent / "notebook_target.py"
MIB = 1 << 20


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    done = subprocess.run([TIDEMARK, "run", "-q", "-o", str(folder / "a.tmk"), "--", PYTHON, str(TARGET)], timeout=120,
                          cwd=folder, capture_output=True, text=True, check=False, env=environment(HOME=str(folder)))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "a.tmk"


def test_tables(run):
    """A function has the cell that it was written in, wherever it is called."""
    rows = query(run, "SELECT file, line, function, count(*), sum(size) FROM allocations JOIN frames USING (stack_id) "
                      "WHERE depth = 0 AND file LIKE '%ipykernel_%' GROUP BY 1, 2, 3 ORDER BY 1, 2")
    assert [[re.sub(r"ipykernel_\d+", "ipykernel_N", file).rpartition("ipykernel_N/")[2], *others]
            for file, *others in rows] == [
        ["In [2]", "3", "keep", "5", str(5 * MIB)],
        ["In [4]", "1", "<module>", "1", str(4 * MIB)],
        ["In [5]", "2", "<module>", "1", str(2 * MIB)]]


def test_screens(run):
    for command in (["report"], ["peak", "--by", "line"]):
        done = subprocess.run([TIDEMARK, *command[:1], str(run), *command[1:]], capture_output=True, text=True, check=True)
        assert re.search(r"^  In \[2\]:3 keep +5\.0 MiB", done.stdout, re.M), done.stdout
        assert re.search(r"^  In \[5\]:2 <module> +2\.0 MiB", done.stdout, re.M)
        assert "ipykernel_" not in done.stdout.partition("your line")[2]
