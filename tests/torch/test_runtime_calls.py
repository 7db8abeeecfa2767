# SPDX-License-Identifier: MIT
"""What is reserved on a card after `import tidemark` alone: known while all of it is memory that cudaMalloc() was seen
to give. Torch, its libraries and the CUDA runtime are stand-ins; `asked()` says how often torch was."""
import subprocess
from pathlib import Path

import pytest
from torch_kit import PYTHON, REPO, TIDEMARK, check, environment

HERE = Path(__file__).parent
LAZY = ["-Wl,-z,lazy"]
VERSION = "libcudart.so.13 { global: *; };\n"

KIT = """
import ctypes, os, subprocess, sys, types
folder, MIB, CARD = sys.argv[1], 1 << 20, 256
segments, snapshots, n_asked = [], [], 0

def load():
    global cuda, runtime
    path = os.fsencode(folder + "/libc10_cuda.so")
    process = ctypes.CDLL(None)
    process.dlopen.restype = ctypes.c_void_p
    handle = process.dlopen(path, 1)  # RTLD_LAZY, as nothing that Python loads
    assert handle
    cuda, runtime = ctypes.CDLL(folder + "/libc10_cuda.so", handle=handle), ctypes.CDLL(folder + "/libcudart.so.13")
    cuda.fake_grow.argtypes, cuda.fake_grow.restype = [ctypes.c_int, ctypes.c_size_t], ctypes.c_void_p
    cuda.fake_shrink.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    cuda.fake_map.argtypes = cuda.fake_block.argtypes = [ctypes.c_int, ctypes.c_int64]
    cuda.fake_stats.restype = ctypes.POINTER(ctypes.c_uint64)
    runtime.fake_cudart_caller.restype = ctypes.c_char_p

def stats(card):
    global n_asked
    n_asked += 1
    found = cuda.fake_stats(card)
    return {name: {"all": {"current": found[i], "peak": found[i + 1]}}
            for name, i in (("allocated_bytes", 0), ("reserved_bytes", 2))}

def snapshot():
    snapshots.append(len(segments))
    return segments

torch = types.ModuleType("torch")
torch._C = types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: False)
torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, memory_stats_as_nested_dict=stats,
                                   memory_snapshot=snapshot)
sys.modules["torch"] = torch

def import_tidemark():
    global tidemark, figures
    import tidemark
    import tidemark._figures as figures

def asked(card=0):  # and the answer is torch's
    before = n_asked
    found, right = figures.figures(CARD + card), cuda.fake_stats(card)
    assert found[1:] == (right[0], right[2], right[1], right[3]), (found, right[:4])
    return n_asked - before

def caller():
    cuda.fake_shrink(1, cuda.fake_grow(1, MIB), MIB)
    cuda.fake_grow(1, 12345)  # refused, so that it is the last
    return os.path.basename(runtime.fake_cudart_caller().decode())
"""

USUAL = """
load(); import_tidemark()
""", """
import_tidemark(); load()
"""

KNOWN = """
assert asked() == 1  # nothing is said yet; from here on the runtime's calls are seen
assert caller() == "libtidemark.so"
small = cuda.fake_grow(0, 2 * MIB)
assert small and asked() == 1
cuda.fake_block(0, 512)
assert [asked(), asked()] == [0, 0]
large = cuda.fake_grow(0, 20 * MIB)
assert not cuda.fake_grow(0, 12345)
cuda.fake_block(0, 3 * MIB)
cuda.fake_block(0, -3 * MIB)
assert asked() == 0
cuda.fake_shrink(0, large, 20 * MIB)  # empty_cache(): torch says nothing of it
assert [asked(), asked()] == [1, 0]  # what it answers is good until the next change
cuda.fake_block(0, 512)
assert asked() == 0
cuda.fake_shrink(0, None, 0)  # cudaFree(NULL) changes nothing
assert asked() == 0
cuda.fake_grow(1, 4 * MIB)
assert [asked(0), asked(1), asked(1)] == [1, 1, 1]  # of the other nothing was said
cuda.fake_block(1, 1024)
assert [asked(0), asked(1)] == [0, 0]
assert snapshots == [0]
"""

UNSEEN = """
load(); import_tidemark()
asked()
cuda.fake_grow(0, 2 * MIB)
cuda.fake_block(0, 512)
assert asked() == 0
cuda.fake_map(0, 2 * MIB)
cuda.fake_block(0, 2 * MIB)
assert [asked(), asked()] == [1, 1]  # it may go with nobody seeing it
cuda.fake_block(0, 512)
assert asked() == 1
cuda.fake_block(0, -2 * MIB)
cuda.fake_map(0, -2 * MIB)
assert asked() == 1
cuda.fake_block(0, 512)
assert asked() == 0  # all that is left is the runtime's
large = cuda.fake_grow(0, 20 * MIB)
cuda.fake_block(0, 512)
assert asked() == 0
cuda.fake_map(0, 20 * MIB)  # as much as goes: the sums are compared, not what they grow by
cuda.fake_shrink(0, large, 20 * MIB)
cuda.fake_block(0, 512)
assert [asked(), asked()] == [1, 1]
"""

BEFORE = """
load()
old = cuda.fake_grow(0, 20 * MIB)
cuda.fake_block(0, 5 * MIB)
cuda.fake_block(0, -4 * MIB)
segments.append({"device": 0, "address": old, "total_size": 20 * MIB, "is_expandable": False,
                 "segment_pool_id": (0, 0)})
import_tidemark()
assert [asked(), asked()] == [1, 1]  # no block was heard yet
cuda.fake_block(0, 512)
assert asked() == 0
cuda.fake_shrink(0, old, 20 * MIB)
assert [asked(), asked()] == [1, 0]
cuda.fake_block(0, 512)
assert asked() == 0
assert snapshots == [1]
"""

MAPPED_BEFORE = """
load()
cuda.fake_map(0, 20 * MIB)
segments.append({"device": 0, "address": 4096, "total_size": 20 * MIB, MARK})
import_tidemark()
asked()
cuda.fake_block(0, 512)
assert [asked(), asked()] == [1, 1]
cuda.fake_map(0, -10 * MIB)
assert asked() == 1
"""

# Another thread gives segments back while we are told of them: in the midst of the first N_TIMES lists.
MEANWHILE = """
load()
old = [cuda.fake_grow(0, 2 * MIB) for _ in range(9)]
segments += [{"device": 0, "address": address, "total_size": 2 * MIB} for address in old]

def snapshot_before_it_goes():
    found = snapshot()[:]
    if len(snapshots) <= N_TIMES:
        cuda.fake_shrink(0, old.pop(), 2 * MIB)
        segments.pop()
    return found

torch.cuda.memory_snapshot = snapshot_before_it_goes
import_tidemark()
asked()
cuda.fake_block(0, 512)
"""
ONCE = "N_TIMES = 1\n" + MEANWHILE + "assert [asked(), asked()] == [0, 0] and snapshots == [9, 8]\n"
NEVER_STILL = "N_TIMES = 9\n" + MEANWHILE + "assert [asked(), asked()] == [1, 1] and snapshots == [9, 8, 7, 6]\n"

HISTORY = """
load()
cuda.fake_grow(0, 2 * MIB)
import_tidemark()
torch._C._cuda_isHistoryEnabled = lambda: True  # a list would bring along all of it
asked()
cuda.fake_block(0, 512)
assert [asked(), asked()] == [1, 1] and snapshots == []
"""

# Until CUDA is in use torch has no allocator: who asks it for one's history brings the process down.
NOT_IN_USE = """
load(); import_tidemark()
torch.cuda.is_initialized = lambda: False
torch._C._cuda_isHistoryEnabled = lambda: os.abort()
assert asked() == 1 and snapshots == []
torch.cuda.is_initialized = lambda: True
torch._C._cuda_isHistoryEnabled = lambda: False
cuda.fake_grow(0, 2 * MIB)
cuda.fake_block(0, 512)
assert [asked(), asked()] == [0, 0]
"""

NO_LIST = """
load()
cuda.fake_grow(0, 2 * MIB)
import_tidemark()
torch.cuda.memory_snapshot = lambda: 1 / 0  # not all of torch's allocators have it
asked()
cuda.fake_block(0, 512)
assert [asked(), asked()] == [1, 1]
"""

OUT = """
load(); import_tidemark()
asked()
kept = cuda.fake_grow(0, 2 * MIB)
cuda.fake_block(0, 512)
assert asked() == 0 and caller() == "libtidemark.so"
hook = ctypes.CDLL(None).tidemark_hook
assert hook(0) == 4  # two that report blocks, and these two
assert caller() == "libc10_cuda.so"
cuda.fake_block(0, 512)
assert [asked(), asked()] == [1, 1]
assert caller() == "libc10_cuda.so"
segments.append({"device": 0, "address": kept, "total_size": 2 * MIB})
assert hook(1) == (1 if IS_LAZY else 2)  # bound lazily, the block before has found ours again
assert asked() == 1
assert caller() == "libtidemark.so"
cuda.fake_block(0, 512)
assert asked() == 0
detach = [os.environ["TIDEMARK_PROGRAM"], "detach", str(os.getpid())]
assert subprocess.run(detach, check=True, capture_output=True).stderr == \\
    b"tidemark: detached; 7 import slots restored, the trace is closed\\n"  # with three stubs'
assert caller() == "libc10_cuda.so"
cuda.fake_block(0, 512)
assert [asked(), asked()] == [1, 1]
assert caller() == "libc10_cuda.so"
assert snapshots == [0, 1]
"""

FORKED = """
load(); import_tidemark()
asked()
cuda.fake_grow(0, 2 * MIB)
cuda.fake_block(0, 512)
assert asked() == 0
child = os.fork()
if child == 0:
    try:
        assert asked() == 1  # what was seen is the parent's
        assert asked() == 1  # and of its memory nothing is listed here
        cuda.fake_map(0, -2 * MIB)
        cuda.fake_grow(0, 4 * MIB)
        cuda.fake_block(0, 512)
        assert asked() == 0
    except BaseException as reason:
        os.write(2, repr(reason).encode())
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert asked() == 0
"""

STATIC = """
load(); import_tidemark()
assert asked() == 1
cuda.fake_grow(0, 2 * MIB)
cuda.fake_block(0, 512)
assert [asked(), asked()] == [1, 1]
assert snapshots == []
"""

SCENARIOS = {"known": USUAL[0] + KNOWN, "imported first": USUAL[1] + KNOWN, "unseen": UNSEEN, "before": BEFORE,
             "expandable before": MAPPED_BEFORE.replace("MARK", '"is_expandable": True'),
             "pool before": MAPPED_BEFORE.replace("MARK", '"segment_pool_id": (0, 1)'), "no list": NO_LIST,
             "meanwhile": ONCE, "never still": NEVER_STILL, "history": HISTORY,
             "not in use": NOT_IN_USE,
             "out": OUT, "forked": FORKED}


def make_libraries(folder, *flags, is_static=False):
    """libcudart.so.13, libc10.so and libc10_cuda.so, which has the runtime in it where it is static."""
    def link(name, *words):
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", "-o", str(folder / name),
                        *map(str, words)], check=True)
    (folder / "version.map").write_text(VERSION, encoding="utf-8")
    link("libcudart.so.13", "-Wl,-soname,libcudart.so.13", f"-Wl,--version-script={folder / 'version.map'}",
         HERE / "fake_cudart.c")
    link("libc10.so", "-Wl,-soname,libc10.so", HERE / "fake_c10.c")
    link("libc10_cuda.so", HERE / "fake_c10_cuda.c", f"-L{folder}", "-l:libc10.so", "-Wl,-rpath,$ORIGIN",
         *([HERE / "fake_cudart.c", "-Wl,-Bsymbolic"] if is_static else ["-l:libcudart.so.13"]), *flags)


def run(folder, scenario, rings):
    script = folder / "script.py"
    script.write_text(KIT + scenario, encoding="utf-8")
    trace = folder / "run.tmk"
    env = environment(TIDEMARK_RING_DIR=str(rings), TIDEMARK_RUN=str(trace), PYTHONPATH=str(REPO / "python"),
                      TIDEMARK_PROGRAM=TIDEMARK)
    done = subprocess.run([PYTHON, str(script), str(folder)], env=env, cwd=folder, capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    check(trace)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("flags", [LAZY, ["-Wl,-z,now,-z,relro"]], ids=["lazy", "read-only"])
def test_reserved(name, flags, tmp_path, rings):
    make_libraries(tmp_path, *flags)
    run(tmp_path, f"IS_LAZY = {flags == LAZY}\n{SCENARIOS[name]}", rings)


def test_static_runtime(tmp_path, rings):
    """There is no slot to write: torch is asked."""
    make_libraries(tmp_path, is_static=True)
    run(tmp_path, STATIC, rings)
