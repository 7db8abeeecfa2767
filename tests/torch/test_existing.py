# SPDX-License-Identifier: MIT
"""Blocks on an accelerator, by a stand-in for torch's libraries: those alive before attach, streams."""
import subprocess
import time
from pathlib import Path

import pytest
from torch_kit import PYTHON, TIDEMARK, check, environment, query

HERE = Path(__file__).parent


def make_libraries(tmp_path):
    for name in ("libc10.so", "libc10_cuda.so"):
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(tmp_path / name),
                        str(HERE / "fake_c10.c")], check=True)


STREAMS = """
import ctypes, sys
blocks, cuda = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
blocks.report.argtypes = [ctypes.c_void_p, ctypes.c_int64]
blocks.report(4096, 512)
assert cuda.use_stream(7) == 107
blocks.report(8192, 512)
blocks.report(12288, 512)
blocks.report(8192, -512)
"""


def test_streams(tmp_path, rings):
    """A block has the stream that was current when it was allocated; without any other stream, and
    before the first one is made, that is the default one."""
    make_libraries(tmp_path)
    run = tmp_path / "a.tmk"
    subprocess.run([TIDEMARK, "run", "--quiet", "-o", str(run), "--", PYTHON, "-c", STREAMS,
                    str(tmp_path / "libc10.so"), str(tmp_path / "libc10_cuda.so")],
                   env=environment(TIDEMARK_RING_DIR=str(rings)), check=True, timeout=60)
    assert query(run, "SELECT address, stream FROM allocations ORDER BY id") == [
        ["4096", "0"], ["8192", "107"], ["12288", "107"]]
    assert query(run, "SELECT reserved FROM devices WHERE device = 'cuda:0'") == [[str(1 << 20)]]
    check(run)


HOST = """
import ctypes, sys, time
blocks = ctypes.CDLL(sys.argv[1])
blocks.report.argtypes = [ctypes.c_void_p, ctypes.c_int64]
process = ctypes.CDLL(None)
new = process._ZN3c1025ProfiledCPUMemoryReporter3NewEPvm
new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
new(None, 4096, 1000)
blocks.report(4096, 512)
new(None, 8192, 2000)
time.sleep(0.2)
blocks.report(8192, 512)
blocks.report(8192, -512)
"""


@pytest.mark.parametrize("all_along", [False, True])
def test_host_tensors(all_along, tmp_path, rings):
    """They are recorded until an accelerator is used, or all along."""
    make_libraries(tmp_path)
    run = tmp_path / "a.tmk"
    flags = ["--cpu-tensors"] if all_along else []
    subprocess.run([TIDEMARK, "run", "--quiet", *flags, "-o", str(run), "--", PYTHON, "-c", HOST,
                    str(tmp_path / "libc10.so")], env=environment(TIDEMARK_RING_DIR=str(rings)),
                   check=True, timeout=60)
    check(run)
    assert query(run, "SELECT size, free_ns IS NULL FROM allocations WHERE device = 'cpu' ORDER BY id") == \
        ([["1000", "1"], ["2000", "1"]] if all_along else [["1000", "0"]])
    assert query(run, "SELECT count(*) FROM allocations WHERE device = 'cuda:0'") == [["2"]]
    assert query(run, "SELECT event FROM marks") == \
        ([] if all_along else [["host tensors no longer recorded"]])


def test_alive_before_attach(tmp_path, rings):
    make_libraries(tmp_path)
    run, env = tmp_path / "a.tmk", environment(TIDEMARK_RING_DIR=str(rings))
    job = subprocess.Popen([PYTHON, str(HERE / "existing_target.py"), str(tmp_path / "libc10.so"),
                            str(tmp_path / "libc10_cuda.so")], env=env, text=True,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert job.stdout.readline() == "ready\n"
    subprocess.run([TIDEMARK, "attach", str(job.pid), "-o", str(run)], env=env, check=True,
                   capture_output=True)
    deadline = time.monotonic() + 60
    while query(str(job.pid), "SELECT count(*) FROM allocations") != [["151"]]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    job.stdin.write("go on\n")
    job.stdin.flush()
    assert job.stdout.readline() == "done\n"
    job.communicate("end\n", timeout=60)
    assert job.returncode == 0
    check(run)
    rows = query(run, "SELECT f.function, count(*), sum(a.size), sum(a.free_ns IS NOT NULL), min(a.device) "
                      "FROM allocations a JOIN frames f ON f.stack_id = a.stack_id AND f.depth = 0 "
                      "GROUP BY f.function ORDER BY f.function")
    # 100 were there, one of them freed while they were listed; 50 and one were born by then.
    assert rows == [["[alive before attach]", "100", "51200", "100", "cuda:0"],
                    ["is_initialized", "50", "25600", "50", "cuda:0"],
                    ["memory_snapshot", "1", "1024", "1", "cuda:0"]]
    assert query(run, "SELECT max(max_allocated) FROM timeline(1000) WHERE device = 'cuda:0'") == \
        [[str(150 * 512 + 1024 - 512)]]
    assert query(run, "SELECT count(*) FROM allocations WHERE free_ns IS NULL") == [["0"]]
