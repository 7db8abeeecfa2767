# SPDX-License-Identifier: MIT
"""leak PID: what grows in a process that runs: its blocks, its memory of the host, its objects of Python."""
import json

from eval_kit import BLOCKS, tidemark

# Ten steps, each with a block that stays; then 70 objects more in each of many rounds.
GROWING = BLOCKS + """
class Kept:
    pass
recorder.tidemark_record_step.argtypes = [ctypes.c_int64]
for step in range(20):
    recorder.tidemark_record_step(step)
    alloc(0x1000 + step * 0x100000, 0x20000)
    alloc(0x10, 64)
    free(0x10)
kept, ballast = [Kept()], []
ready()
while True:
    kept.extend(Kept() for _ in range(70))
    ballast.append(bytearray(1 << 20))
    time.sleep(0.05)
"""


def test_growing(shop):
    pid = shop.target(GROWING)
    for duration_s in (1.5, 3, 6, 12):  # on a busy machine looks may be missed
        done = tidemark("leak", pid, "--json", "--duration", duration_s)
        assert done.returncode == 1, done.stderr
        told = json.loads(done.stdout)
        if told["python"]["looks"] >= 7:
            break
    assert told["verdict"] == "leak" and told["duration_s"] == duration_s
    (leak,) = told["leaks"]
    assert (leak["file"], leak["line"], leak["function"]) == ("train.py", 7, "step")
    assert (leak["bytes_per_step"], leak["blocks_per_step"], leak["first_step"]) == (0x20000, 1, 0)
    assert leak["device"] == "cuda:0" and leak["pid"] == pid
    assert told["host"]["rss"] > told["host"]["rss_before"] > 0
    (kept,) = [row for row in told["python"]["growing"] if row["type"] == "__main__.Kept"]
    assert kept["after"] > kept["before"] > 0
    assert (kept["after"] - kept["before"]) % 70 == 0 and kept["verdict"] == "leak"
    assert told["python"]["verdict"] == "leak" and told["python"]["verdict_reason"] is None
    assert 7 <= told["python"]["looks"] <= 10 and told["python"]["growing"][0] == kept
    assert {row["verdict"] for row in told["python"]["growing"][2:]} <= {"clean"}  # but for the ballast
    assert told["python"]["objects"] >= kept["after"] and told["python"]["cost_ms"] >= 0


def test_quiet(shop):
    """No blocks, no Python wanted: nothing is run in the process."""
    pid = shop.target()
    done = tidemark("leak", pid, "--duration", "0", "--no-python")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("too short to tell: ")
    assert "Python" not in done.stdout
    assert lines[-1].startswith("  the process uses ")
    assert not tidemark("leak", pid, "--duration", "soon").stdout


# Each time that somebody else has a reference to what is this loop's own, one object more.
ALONE = """
import sys
class Mine:
    pass
class Shared:
    pass
ballast, seen, kept = [[] for _ in range(200000)], [], []
ready()
while True:
    mine = Mine()
    for _ in range(1000):
        if sys.getrefcount(mine) > 2:
            seen.append(Shared())
    kept.append([])
"""


def test_alone(shop):
    """While Python's objects are counted no other thread runs: torch warns when a tensor goes that others refer to."""
    pid = shop.target(ALONE)
    told = json.loads(tidemark("leak", pid, "--json", "--duration", "0.5").stdout)
    growing = [row["type"] for row in told["python"]["growing"]]
    assert "list" in growing and "__main__.Shared" not in growing
    assert told["python"]["objects"] > 200000
    assert told["python"]["verdict"] is None and {row["verdict"] for row in told["python"]["growing"]} == {None}
    assert told["python"]["verdict_reason"].startswith("too short to tell: 2 looks in 0.5 s; a verdict takes 7: --duration ")
