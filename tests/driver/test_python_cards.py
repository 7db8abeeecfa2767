# SPDX-License-Identifier: MIT
"""Snapshots before CUDA is in use: they do not initialise it, and still know the cards."""
import json
import os
import subprocess

from driver_kit import GIB, PYTHON, REPO, program

SCRIPT = """
import json, sys, types

class Cuda(types.SimpleNamespace):
    def __getattr__(self, name):  # whatever else is asked of it would initialise CUDA
        raise SystemExit(f"torch.cuda.{name} was asked for")

cuda = Cuda(is_initialized=lambda: False, device_count=lambda: N, memory_stats_as_nested_dict=lambda device: {},
            _initialized=False)
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda, _C=types.SimpleNamespace(_cuda_getDevice=lambda: sys.exit("asked")))
import tidemark
from tidemark import _figures, check_memory_status, memory_snapshot
entries = memory_snapshot("a")["gpu_memory"]
issues = check_memory_status(threshold_mb=3000.0)
print(json.dumps({"cards": [[entry[key] for key in ("kind", "name", "allocated", "reserved", "total")] for entry in entries],
                  "issues": [[issue[key] for key in ("type", "device_id", "free_mb")] for issue in issues],
                  "current": _figures.current_number()() - _figures.CARD}))
"""


def told(cards, tmp_path, n=2, **more):
    env = {**os.environ, **cards.environment(PYTHONPATH=str(REPO / "python"), PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8",
                                             TIDEMARK_RING_DIR=str(tmp_path), TIDEMARK_RUN=str(tmp_path / "run.tmk"),
                                             TIDEMARK_PROGRAM=str(program("tidemark")),
                                             TIDEMARK_LIBRARY=str(program("libtidemark.so")), **more)}
    done = subprocess.run([PYTHON, "-c", f"N = {n}\n{SCRIPT}"], env=env, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_cards_before_cuda(cards, tmp_path):
    cards.make(4 * GIB, 4 * GIB, more=f"reserved {GIB}\nprocess 1 {GIB}\n")
    found, said = told(cards, tmp_path)
    assert found == {"cards": [["GPU", "NVIDIA H200", 0, 0, 4 * GIB], ["GPU", "NVIDIA H200", 0, 0, 3 * GIB]],
                     "issues": [["not_free", 1, 2048.0]], "current": 0}
    assert "[INFO] GPU 0 has enough free: 4096.0MB >= 3000.0MB" in said
    for visible in ("1", "GPU-1"):
        found, _ = told(cards, tmp_path, 1, CUDA_VISIBLE_DEVICES=visible)
        assert found["cards"] == [["GPU", "NVIDIA H200", 0, 0, 3 * GIB]], visible


def test_cards_of_two_kinds(cards, tmp_path):
    """Which is CUDA's first is known by the driver's order alone where CUDA is told to keep to it."""
    cards.make(4 * GIB, 8 * GIB)
    found, said = told(cards, tmp_path)
    assert found["cards"] == [["GPU", "GPU", 0, 0, None]] * 2 and found["issues"] == []
    assert "[INFO] GPU 0: it is not known whether 3000.0MB are free" in said
    found, _ = told(cards, tmp_path, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert [card[-1] for card in found["cards"]] == [4 * GIB, 8 * GIB]


IN_CHILD = """
import os, sys, types
parent = os.getpid()
# As torch has it: in a child of a process that used CUDA it still says so, and whoever asks more is refused.
cuda = types.SimpleNamespace(is_initialized=lambda: os.getpid() == parent, device_count=lambda: 2, _initialized=True,
                             memory_stats_as_nested_dict=lambda device: {})
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda, _C=types.SimpleNamespace(
    _cuda_getDevice=lambda: 1 if os.getpid() == parent else sys.exit("asked in a child")))
from tidemark import _figures
current = _figures.current_number()
assert current() == _figures.CARD + 1
child = os.fork()
if child == 0:
    os._exit(0 if current() == _figures.CARD else 1)
assert os.waitpid(child, 0)[1] == 0
"""


def test_child_of_a_process_that_uses_cuda(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(REPO / "python"), "PYTHONDONTWRITEBYTECODE": "1", "TIDEMARK_OFF": "1",
           "TIDEMARK_RING_DIR": str(tmp_path), "TIDEMARK_LIBRARY": str(program("libtidemark.so"))}
    done = subprocess.run([PYTHON, "-c", IN_CHILD], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
