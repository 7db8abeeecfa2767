# SPDX-License-Identifier: MIT
"""Processes of a training: forked, spawned, ranks, replaced, killed. One trace each, one run."""
import os
import signal
import socket
import subprocess

import pytest
from torch_kit import LIBRARY, PYTHON, TIDEMARK, check, environment, query


def run_script(tmp_path, rings, text, *, status=0, env=None, timeout=120):
    script, run = tmp_path / "script.py", tmp_path / "a.tmk"
    script.write_text(text)
    done = subprocess.run([TIDEMARK, "run", "--quiet", "-o", str(run), "--", PYTHON, str(script)],
                          env=environment(TIDEMARK_RING_DIR=str(rings), **(env or {})),
                          capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == status, done.stderr
    return run, done.stdout.split()


def blocks(run, size):
    """How many blocks of this size each process has made: {pid: (made, freed)}."""
    rows = query(run, "SELECT pid, count(*), sum(free_ns IS NOT NULL) FROM allocations "
                      f"WHERE size = {size} GROUP BY pid")
    return {int(pid): (int(made), int(freed)) for pid, made, freed in rows}


def test_fork(tmp_path, rings):
    run, out = run_script(tmp_path, rings, """
import os, torch
kept = torch.empty(70001, dtype=torch.uint8)
pids = []
for i in range(3):
    pid = os.fork()
    if pid == 0:
        for _ in range(10 + i):
            torch.empty(70003, dtype=torch.uint8)
        os._exit(0)
    pids.append(pid)
    os.waitpid(pid, 0)
torch.empty(70003, dtype=torch.uint8)
print(os.getpid(), *pids)
""")
    parent, *children = map(int, out)
    assert blocks(run, 70001) == {parent: (1, 1)}
    assert blocks(run, 70003) == {parent: (1, 1), **{pid: (10 + i, 10 + i)
                                                     for i, pid in enumerate(children)}}
    check(run)


# A data loader with workers that are forked anew in each epoch. It says the sum of its batches and,
# on stderr, the most of /dev/shm that tidemark's files had after an epoch.
LOADER = """
import os, sys, torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        return torch.full((1 << 18,), float(i))
def ours():
    files = [entry.stat().st_blocks * 512 for entry in os.scandir("/dev/shm") if "tidemark" in entry.name]
    return sum(files)
total, most = 0, 0
for epoch in range(int(sys.argv[1])):
    for batch in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2):
        total += batch.sum().item()
        most = max(most, ours())
    print(epoch, total, flush=True)
print(most, file=sys.stderr)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a /dev/shm")
@pytest.mark.parametrize("front", [[str(TIDEMARK), "run", "--quiet", "-o", "a.tmk", "--"], []], ids=["run", "preload"])
def test_data_loader_in_a_small_dev_shm(tmp_path, front):
    """64 MiB of /dev/shm, as containers have, of which the loader itself uses up to 40: it runs as
    it does alone, and tidemark never takes more than 8."""
    (tmp_path / "loader.py").write_text(LOADER)
    epochs = 200

    def run(front, **env):
        script = 'mount -t tmpfs -o size=64m tmpfs /dev/shm; exec "$@"'
        return subprocess.run(["unshare", "--mount", "sh", "-ec", script, "sh", *front, PYTHON, "loader.py", str(epochs)],
                              cwd=tmp_path, env=environment(TIDEMARK_RING_DIR="", **env), capture_output=True,
                              text=True, timeout=300, check=False)

    library = {"LD_PRELOAD": str(LIBRARY), "TIDEMARK_RUN": str(tmp_path / "a.tmk")}
    alone, watched = run([]), run(front, **({} if front else library))
    assert alone.returncode == 0, alone.stderr
    assert (watched.returncode, watched.stdout) == (0, alone.stdout), watched.stderr
    assert int(watched.stderr) <= 8 << 20
    assert int(query(tmp_path / "a.tmk", "SELECT count(*) FROM processes")[0][0]) == 2 * epochs + 1
    assert int(query(tmp_path / "a.tmk", "SELECT sum(dropped) FROM processes")[0][0]) == 0
    check(tmp_path / "a.tmk")


def test_data_loader_workers(tmp_path, rings):
    run, out = run_script(tmp_path, rings, """
import os, torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, i):
        torch.empty(70003, dtype=torch.uint8)
        return torch.full((10,), i, dtype=torch.int64), os.getpid()
seen, pids = [], set()
for batch, workers in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2):
    seen += batch[:, 0].tolist()
    pids |= set(workers.tolist())
assert sorted(seen) == list(range(40))
print(os.getpid(), *sorted(pids))
""")
    parent, *workers = map(int, out)
    assert len(workers) == 2
    assert blocks(run, 70003) == {pid: (20, 20) for pid in workers}
    pids = {int(pid) for (pid,) in query(run, "SELECT pid FROM processes")}
    assert {parent, *workers} <= pids
    check(run)


def test_spawn(tmp_path, rings):
    run, out = run_script(tmp_path, rings, """
import os, torch, torch.multiprocessing as mp
def work(rank, queue):
    for _ in range(5 + rank):
        torch.empty(70003, dtype=torch.uint8)
    queue.put((rank, os.getpid()))
if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, args=(queue,), nprocs=2)
    pids = dict(queue.get() for _ in range(2))
    print(pids[0], pids[1])
""")
    first, second = map(int, out)
    assert blocks(run, 70003) == {first: (5, 5), second: (6, 6)}
    check(run)


RANKS = """
import os, signal, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(20):
    t = torch.full((70001,), rank + 1, dtype=torch.uint8)
    dist.all_reduce(t)
    assert t[0].item() == 3
if len(sys.argv) > 1 and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
os.write(1, f"rank {rank} {os.getpid()}\\n".encode())  # at once: the other rank writes there too
"""


@pytest.mark.parametrize("killed", [False, True])
def test_gloo_ranks(killed, tmp_path, rings):
    """Two ranks, each a trace, in one run; one that is killed does not harm the other's."""
    script, launcher = tmp_path / "ranks.py", tmp_path / "launch.sh"
    script.write_text(RANKS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argument = "killed" if killed else ""
    launcher.write_text(f"""
export MASTER_ADDR=127.0.0.1 MASTER_PORT={port} WORLD_SIZE=2
RANK=0 LOCAL_RANK=0 {PYTHON} {script} {argument} & first=$!
RANK=1 LOCAL_RANK=1 {PYTHON} {script} {argument}; echo status $?
wait $first
""")
    run = tmp_path / "a.tmk"
    done = subprocess.run([TIDEMARK, "run", "--quiet", "-o", str(run), "--", "sh", str(launcher)],
                          env=environment(TIDEMARK_RING_DIR=str(rings), GLOO_SOCKET_IFNAME="lo"),
                          capture_output=True, text=True, timeout=120, check=False)
    assert f"status {128 + signal.SIGKILL if killed else 0}" in done.stdout, done.stderr
    assert "rank 0" in done.stdout
    ranks = query(run, "SELECT rank, count(*) FROM allocations WHERE size = 70001 AND rank IS NOT NULL "
                       "GROUP BY rank ORDER BY rank")
    assert ranks == [["0", "20"], ["1", "20"]]
    assert query(run, "SELECT rank, world_size FROM processes WHERE rank IS NOT NULL ORDER BY rank") \
        == [["0", "2"], ["1", "2"]]
    check(run)


def test_exec(tmp_path, rings):
    """A program that replaces itself: what came before is in a trace of its own."""
    run, out = run_script(tmp_path, rings, """
import os, sys, torch
if len(sys.argv) == 1:
    kept = [torch.empty(70001, dtype=torch.uint8) for _ in range(7)]
    os.execv(sys.executable, [sys.executable, __file__, "again"])
for _ in range(9):
    torch.empty(70003, dtype=torch.uint8)
print(os.getpid())
""")
    (pid,) = map(int, out)
    assert blocks(run, 70001) == {pid: (7, 0)}
    assert blocks(run, 70003) == {pid: (9, 9)}
    assert query(run, f"SELECT count(*) FROM processes WHERE pid = {pid}") == [["2"]]
    check(run)


def test_thread_storm(tmp_path, rings):
    """200 short threads, 16 at a time, each block there, with the thread's own Python stack."""
    run, out = run_script(tmp_path, rings, """
import os, threading, torch
torch.set_num_threads(1)
gate = threading.Semaphore(16)
def storm(n):
    with gate:
        for i in range(50):
            torch.empty(70001 + 2 * n, dtype=torch.uint8)
threads = [threading.Thread(target=storm, args=(n,)) for n in range(200)]
for t in threads: t.start()
for t in threads: t.join()
print(os.getpid())
""")
    rows = query(run, "SELECT size, count(*), sum(free_ns IS NOT NULL), count(DISTINCT thread) "
                      "FROM allocations WHERE size >= 70001 GROUP BY size")
    assert [[int(value) for value in row] for row in rows] == \
        [[70001 + 2 * n, 50, 50, 1] for n in range(200)]
    functions = query(run, "SELECT DISTINCT f.function FROM allocations a JOIN frames f ON "
                           "f.stack_id = a.stack_id AND f.depth = 0 WHERE a.size >= 70001")
    assert functions == [["storm"]]
    assert query(run, "SELECT sum(kind = 'drop') FROM events") == [["0"]]
    assert out
    check(run)


def test_first_backward_of_many_threads(tmp_path, rings):
    """The first backward() of a process on several threads at once: each goes where it should."""
    for i in range(5):
        folder = tmp_path / str(i)
        folder.mkdir()
        _, out = run_script(folder, rings, """
import threading, torch
torch.set_num_threads(1)
gate, done = threading.Barrier(4), []
def work(n):
    x = torch.full((10,), float(n), requires_grad=True)
    loss = (x * x).sum()
    gate.wait()
    loss.backward()
    done.append(x.grad[0].item() == 2 * n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(len(done), all(done))
""")
        assert out == ["4", "True"]
