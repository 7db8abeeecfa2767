# SPDX-License-Identifier: MIT
"""Stacks of blocks that are asked for within calls of modules: what the interpreter's own traceback says, whichever of
the frames were looked at."""
import json
import subprocess
from pathlib import Path

import pytest
from torch_kit import PYTHON, TIDEMARK, check, environment, frames, query

TARGET = Path(__file__).parent / "anchors_target.py"


@pytest.mark.parametrize("options", [[], ["--no-modules"], ["--no-modules", "--no-categories"]])
def test_every_stack(options, tmp_path, rings):
    run = tmp_path / "a.tmk"
    done = subprocess.run([TIDEMARK, "run", "--quiet", *options, "-o", str(run), "--", PYTHON, str(TARGET)],
                          env=environment(TIDEMARK_RING_DIR=str(rings)), capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    check(run)
    truth = json.loads(done.stdout)["stacks"]
    sizes = {int(number): size for number, size in query(run, "SELECT id, size FROM allocations WHERE size % 4 = 3")}
    seen = {sizes[number]: stack for number, stack in frames(run, "a.size % 4 = 3").items()}
    assert len(truth) > 1000 and set(truth) <= set(seen)
    wrong = [size for size, stack in truth.items() if seen[size] != list(map(tuple, stack))]
    assert not wrong
    with_module = query(run, "SELECT count(*) FROM allocations WHERE size % 4 = 3 AND module IS NOT NULL")
    assert options or int(with_module[0][0]) > 1000  # calls were seen: without that there are no anchors
