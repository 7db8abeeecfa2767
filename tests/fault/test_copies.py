# SPDX-License-Identifier: MIT
"""Two copies of tidemark around or in one process: each event is recorded once, and who has it is
said."""
import importlib.util
import shutil
import subprocess
import sys

import pytest
from fault_kit import program

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

BLOCKS = "import torch\nx = [torch.ones(1000 + i) for i in range(10)]\nprint(len(x))\n"
LOAD = """
import ctypes, sys
other = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
message = ctypes.create_string_buffer(500)
print(other.tidemark_attach(b"run=" + sys.argv[2].encode() + b"\\n", message, 500), message.value.decode())
"""


@pytest.fixture(name="copy")
def make_copy(tmp_path):
    """Another installation."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in ("tidemark", "libtidemark.so"):
        shutil.copy(program(name), folder / name)
    return folder


def python(watch, *args, **env):
    return subprocess.run([sys.executable, *args], env=dict(watch.environment(preload=True), **env),
                          capture_output=True, text=True, timeout=60, check=False)


def allocations(watch, run):
    text = watch.tidemark("query", "--format", "csv", run, "SELECT allocations FROM processes")
    return text.splitlines()[1:]


def test_run_in_run(watch, copy):
    inner = watch.folder / "inner.tmk"
    done = subprocess.run(
        [program("tidemark"), "run", "-o", watch.run, "--", copy / "tidemark", "run", "-o", inner, "--",
         sys.executable, "-c", BLOCKS],
        env=watch.environment(preload=False), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr
    assert allocations(watch, inner) == ["10"] and not watch.run.exists()
    lines = done.stderr.splitlines()
    assert lines[0] == f"tidemark: inside another tidemark run: recorded in {inner} only, not in {watch.run}"
    assert lines[-1].startswith("tidemark: nothing was recorded: process ")
    assert lines[-1].endswith(": another tidemark recorded it")


def test_both_preloaded(watch, copy):
    both = f"{copy / 'libtidemark.so'}:{program('libtidemark.so')}"
    done = python(watch, "-c", BLOCKS, LD_PRELOAD=both)
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr
    assert allocations(watch, watch.run) == ["10"]


def test_loaded_later(watch, copy):
    """As `import tidemark` of a package would, where it does not look first."""
    other = watch.folder / "other.tmk"
    done = python(watch, "-c", LOAD + BLOCKS, copy / "libtidemark.so", other)
    assert (done.returncode, done.stdout) == (
        0, "-1 another copy of tidemark records this process already; use that one\n10\n"), done.stderr
    assert allocations(watch, watch.run) == ["10"] and not other.exists()


def test_first_one_is_idle(watch, copy):
    """A copy that records nothing is in nobody's way."""
    other = watch.folder / "other.tmk"
    done = python(watch, "-c", LOAD + BLOCKS, copy / "libtidemark.so", other, TIDEMARK_RUN="")
    assert done.returncode == 0 and done.stdout.startswith("0 ") and done.stdout.endswith("\n10\n"), done.stdout
    assert allocations(watch, other) == ["10"]
