# SPDX-License-Identifier: MIT
"""bench/run: what blocks with Python stacks cost. It counts what was recorded before it believes a figure."""
import json
import subprocess
from pathlib import Path

from torch_kit import PYTHON, TIDEMARK, environment

ROOT = Path(__file__).parents[2]


def test_python_stacks(tmp_path):
    """As from a fresh clone: nothing is there of an earlier run."""
    for name in ("tidemark", "libtidemark.so"):
        (tmp_path / name).symlink_to(Path(TIDEMARK).parent / name)
    done = subprocess.run([PYTHON, "bench/run", "--quick", "--only", "python", "--build", str(tmp_path)], cwd=ROOT,
                          env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "bench.json").read_text())
    assert result["wrong"] == []
    names = {row["what"] for row in result["figures"] if isinstance(row["value"], (int, float))}
    assert {"its free: mean", "a block of autograd's thread: mean", "call of a module, deep: mean"} <= names
    assert {f"a block, Python stack of {n} frames: mean" for n in (3, 4, 12, 20, 40, 80)} <= names
