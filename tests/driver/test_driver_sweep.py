# SPDX-License-Identifier: MIT
"""A sweep of a program that asks the driver itself: its peak is what it held, and a refusal is told."""
import json
import os
import subprocess

from driver_kit import GIB, MIB, PYTHON, REPO

# Takes {n} times 100 MiB and gives all but one back; waits until the card was looked at.
SCRIPT = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, p, got = ctypes.c_void_p(), ctypes.c_uint64(), []
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
for _ in range(int(sys.argv[1])):
    if cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(100 << 20)) != 0:
        sys.exit("refused")
    got.append(p.value)
time.sleep(1)
for address in got[1:]:
    assert cuda.cuMemFree_v2(ctypes.c_uint64(address)) == 0
"""


def test_what_it_held(cards, tmp_path):
    cards.make(GIB)
    script = tmp_path / "fill.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([REPO / "build" / "tidemark", "sweep", "--no-pictures", "-o", "s", "-p", "n=1,3,20",
                           "--", PYTHON, script, "{n}"], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, **cards.environment()}, check=False)
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "s" / "sweep.jsonl", encoding="utf-8") as lines:
        cells = {cell["params"]["n"]: cell for cell in map(json.loads, list(lines)[1:])}
    assert [cells[n]["outcome"] for n in ("1", "3", "20")] == ["done", "done", "oom"]
    for n in (1, 3):
        cell = cells[str(n)]
        assert cell["device"] == "cuda:0" and cell["capacity"] == GIB
        assert cell["peak_allocated"] == cell["peak_reserved"] == n * 100 * MIB
        assert cell["categories"] == {"unknown": n * 100 * MIB}
        assert cell["components"] == {"user": n * 100 * MIB}
        assert cell["at_stage"] == {"other": n * 100 * MIB} and cell["stages"] == []
        assert cell["peak_device"] > n * 100 * MIB  # its context too
        assert [rank["device"] for rank in cell["ranks"]] == ["cuda:0"]
    assert cells["20"]["peak_allocated"] == 700 * MIB
    assert cells["20"]["message"] == ("ran out of memory: wanted 100.0 MiB more on cuda:0, 700.0 MiB of 1.00 GiB "
                                      "in use")
