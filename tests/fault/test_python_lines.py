# SPDX-License-Identifier: MIT
"""Our decoder of Python line tables agrees with the interpreter, instruction by instruction, for
every Python found on this machine."""
import subprocess
import sys
from pathlib import Path

import pytest
from fault_kit import REPO, program

KNOWN = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
TABLES = REPO / "tests" / "fault" / "python_tables.py"


def version_of(python):
    shown = "import sys; print(*sys.version_info[:2], sep='.')"
    return subprocess.run([python, "-c", shown], capture_output=True, text=True).stdout.strip()


def pythons():
    """Those of this machine whose tables we know; Debian's, which runs this, is among them."""
    found = [*sorted(Path.home().glob(".pyenv/versions/*/bin/python3")), Path(sys.executable)]
    return [python for python in found if version_of(python) in KNOWN]


@pytest.mark.parametrize("form", [[], ["--runs"]], ids=["tables", "runs"])
@pytest.mark.parametrize("python", pythons(), ids=str)
def test_lines(python, form):
    made = subprocess.run([python, "-B", TABLES], capture_output=True, text=True, check=True)
    codes = [line.split(" | ") for line in made.stdout.splitlines()]
    tables = "".join(table + "\n" for table, _ in codes)
    found = subprocess.run(
        [program("line_at"), *form], input=tables, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(found) == len(codes) > 100
    n_instructions = 0
    for (table, expected), lines in zip(codes, found):
        assert lines == expected, table[:60]
        n_instructions += len(lines.split())
    assert n_instructions > 10_000
