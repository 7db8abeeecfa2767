# SPDX-License-Identifier: MIT
"""Attach to a real training in the middle of it, and leave it again."""
import os
import re
import subprocess
import time

import pytest
from torch_kit import PYTHON, WORKLOADS, Job, check, environment, frames, query, tidemark

STEPS = ["--device", "cpu", "--layers", "1", "--dim", "32", "--batch", "2", "--seq", "16"]


def counted(log):
    """What the counter wrote. A call that is on its way through the counter while the slots are being
    written goes through it a second time: the same event twice, one behind the other."""
    events = [line.split() for line in log.read_text().splitlines()]
    events = [(e[0], int(e[1]), int(e[2]) if e[0] == "a" else 0) for e in events]
    return [event for i, event in enumerate(events) if i == 0 or event != events[i - 1]]


def recorded(run):
    rows = query(run, "SELECT kind, address, size FROM events")
    return [("a", int(address), int(size)) if kind == "allocate" else ("f", int(address), 0)
            for kind, address, size in rows if kind in ("allocate", "free")]


@pytest.mark.parametrize("script, args", [("encoder.py", STEPS), ("leak_graph.py", ["--device", "cpu"])])
def test_blocks_born_since(script, args, tmp_path, rings, counter):
    """After attach every block is recorded, as the counter has it, to the end; the losses are those
    of a run alone; and each block has the line that asked for it."""
    run, log = tmp_path / "a.tmk", tmp_path / "counter.log"
    text = (WORKLOADS / script).read_text()
    if script == "leak_graph.py":
        text += "    print(f'step {step} loss {loss.item():.9f}', flush=True)\n"
    slow = tmp_path / script
    slow.write_text(text.replace("for step in range", "import time\nfor step in range")
                    .replace("    loss.backward()", "    time.sleep(0.02); loss.backward()"))
    env = environment(COUNTER_FILE=str(log), LD_PRELOAD=counter, TIDEMARK_RING_DIR=str(rings))
    job = Job(slow, *args, "--steps", "60", env=env)
    job.until(3)
    said = tidemark("attach", job.process.pid, "-o", run, rings=rings)
    n_before = log.read_text().count("\n")  # or fewer
    assert re.search(r"is watched now, after .*; one of its threads was stopped for", said)
    losses = job.end()
    alone = subprocess.run([PYTHON, str(slow), *args, "--steps", "60"], env=environment(),
                           capture_output=True, text=True, check=True, timeout=120).stdout
    assert "".join(losses) == alone
    check(run)
    truth, got = counted(log), recorded(run)
    while got[0][0] == "f":  # of blocks from before; frees are seen a moment earlier than births
        del got[0]
    assert max(400, len(truth) - n_before) <= len(got) < len(truth)
    assert got == truth[len(truth) - len(got):]
    for stack in frames(run, "1").values():
        assert stack[-1][0] == str(slow) or stack[-1][2].startswith("[thread")


def has_allocations(target):
    return int(query(target, "SELECT count(*) FROM allocations")[0][0]) > 0


def test_again_and_again(tmp_path, rings):
    """Attach and detach 50 times while it trains: losses as alone, slots as they were, no leak of
    descriptors or threads."""
    job = Job(WORKLOADS / "encoder.py", *STEPS, "--steps", "100000",
              env=environment(TIDEMARK_RING_DIR=str(rings)))
    job.until(3)
    pid = job.process.pid
    try:
        tidemark("attach", pid, "-o", tmp_path / "first.tmk", rings=rings)
        tidemark("detach", pid, rings=rings)
        before = descriptors_and_threads(pid)
        for i in range(50):
            run = tmp_path / f"{i}.tmk"
            tidemark("attach", pid, "-o", run, rings=rings)
            job.until(1)  # a line that was printed before, perhaps
            while i % 10 == 0 and not has_allocations(pid):
                job.until(1)
            said = tidemark("detach", pid, rings=rings)
            assert "import slots restored" in said
            if i % 10 == 0:
                assert has_allocations(run)
                check(run)
        assert descriptors_and_threads(pid) == before
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            shared = int(re.search(r"RssShmem:\s*(\d+) kB", status.read())[1])
        assert shared < 20 * 1024
    finally:
        job.process.kill()
        lines = job.lines
        job.process.communicate()
    alone = subprocess.run([PYTHON, str(WORKLOADS / "encoder.py"), *STEPS, "--steps", str(len(lines))],
                           env=environment(), capture_output=True, text=True, check=True, timeout=120)
    assert "".join(lines) == alone.stdout


def descriptors_and_threads(pid):
    """After what ends has had time to end."""
    seen = None
    for _ in range(50):
        now = (len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")))
        if now == seen:
            return now
        seen = now
        time.sleep(0.2)
    return seen
