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
    figures = {row["what"]: row["value"] for row in json.loads((tmp_path / "bench.json").read_text())["figures"]}
    assert 0 < figures["its free: mean"] < figures["a block, Python stack of 20 frames: mean"]
    assert figures["call of a module, deep: mean"] > 0
