#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: data loaders with many workers, watched and not, in a small /dev/shm.

    tests/gpu/check_workers.py TIDEMARK OUT

Each training has 8 workers and 200 epochs, with pin_memory and persistent_workers on and off. Watched,
it prints what it prints alone, takes little of /dev/shm, loses no event, and every worker that made a
tensor has a trace. Then 200 forks of a process of torch, which has used CUDA or not, are timed. Needs
root for a /dev/shm of 64 MiB of its own, else that of the machine is used and said. Writes each check
with its figures to OUT/check_workers.json, exit 1 when one fails."""
import csv
import io
import os
import shutil
import subprocess
import sys
import threading
import time

from checks import Checks, command_line

MIB = 1 << 20
TRAINING = """
import sys, torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((1 << 16,), float(i))  # 256 KiB

if __name__ == "__main__":
    epochs, pin, keep = int(sys.argv[1]), sys.argv[2] == "1", sys.argv[3] == "1"
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1 << 16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    loader = DataLoader(Data(), batch_size=4, num_workers=8, pin_memory=pin, persistent_workers=keep)
    for epoch in range(epochs):
        total = 0.0
        for batch in loader:
            loss = model(batch.cuda(non_blocking=pin)).square().mean()
            loss.backward(); optimizer.step(); optimizer.zero_grad(); total += loss.item()
        print("epoch", epoch + 1, total, flush=True)
"""

FORKS = """
import os, sys, time, torch
torch.ones(1000, device="cuda" if sys.argv[1] == "1" else "cpu")
start = time.monotonic()
for _ in range(200):
    pid = os.fork()
    if pid == 0:
        torch.ones(1000)
        os._exit(0)
    os.waitpid(pid, 0)
print(time.monotonic() - start)
"""
FORK_TRIES = 3


class Workers(Checks):
    def __init__(self, tidemark, out):
        super().__init__()
        self.tidemark, self.out = tidemark, out
        self.script = self.write("workers.py", TRAINING)
        self.forks = self.write("forks.py", FORKS)

    def write(self, name, text):
        path = os.path.join(self.out, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run(self, front, script, *args):
        """Output, seconds, and the most that files of ours took of /dev/shm meanwhile."""
        start = time.monotonic()
        process = subprocess.Popen([*front, sys.executable, script, *map(str, args)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        most, stop = [0], threading.Event()

        def look():
            while not stop.wait(0.05):
                used = 0
                for name in os.listdir("/dev/shm"):
                    if name.startswith("tidemark."):
                        try:
                            used += os.stat("/dev/shm/" + name).st_blocks * 512
                        except OSError:
                            pass
                most[0] = max(most[0], used)

        looker = threading.Thread(target=look)
        looker.start()
        out, err = process.communicate(timeout=300)
        stop.set()
        looker.join()
        return process.returncode, out, err, time.monotonic() - start, most[0]

    def fresh_run(self):
        folder = os.path.join(self.out, "workers.tmk")
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def front(self, folder):
        return [self.tidemark, "run", "--quiet", "-o", folder, "--"]

    def check_forks(self, cuda):
        """The best of a few tries, watched and not in turn."""
        name = f"200 forks that allocate, CUDA {cuda}: at most 0.3 s more than alone"
        plain, watched = [], []
        for _ in range(FORK_TRIES):
            for front, seconds in (([], plain), (self.front(self.fresh_run()), watched)):
                status, out, err, _, _ = self.run(front, self.forks, cuda)
                if status != 0:
                    self.skip(name, err[-300:])
                    return
                seconds.append(float(out))
        more = min(watched) - min(plain)
        self.add(name, more <= 0.3, more_s=round(more, 3), alone_s=round(min(plain), 3))

    def check(self, epochs, pin, keep):
        name = f"{epochs} epochs, 8 workers, pin_memory {pin}, persistent_workers {keep}"
        folder = self.fresh_run()
        status, plain, err, plain_s, _ = self.run([], self.script, epochs, pin, keep)
        if status != 0:
            self.skip(name, err[-300:])
            return
        status, out, err, seconds, most = self.run(self.front(folder), self.script, epochs, pin, keep)
        self.add(name + ": as alone", status == 0 and out == plain, status=status, seconds=round(seconds, 2),
                 alone_s=round(plain_s, 2), said=err[-300:])
        self.add(name + ": at most 8 MiB of /dev/shm", most <= 8 * MIB, bytes=most)
        left = [file for file in os.listdir("/dev/shm") if file.startswith("tidemark.")]
        self.add(name + ": nothing left behind", not left, left=left[:5])
        sql = "SELECT count(*), sum(dropped), sum(allocations), sum(state = 'closed') FROM processes"
        done = subprocess.run([self.tidemark, "query", folder, sql, "--format", "csv"], capture_output=True, text=True,
                              check=True)
        n, dropped, allocations, closed = map(int, list(csv.reader(io.StringIO(done.stdout)))[1])
        workers = 8 if keep else 8 * epochs
        self.add(name + ": every process is there, whole", n >= workers + 1 and dropped == 0 and closed == n,
                 processes=n, dropped=dropped, allocations=allocations, closed=closed)


def main():
    tidemark, out, _ = command_line(__doc__)
    if os.geteuid() == 0 and "TIDEMARK_SMALL_SHM" not in os.environ:
        os.environ["TIDEMARK_SMALL_SHM"] = "1"
        script = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0:
            os.execvp("unshare", ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, __file__, *sys.argv[1:]])
    size = os.statvfs("/dev/shm")
    print(f"/dev/shm: {size.f_blocks * size.f_frsize // MIB} MiB", flush=True)
    checks = Workers(tidemark, out)
    asked = subprocess.run([sys.executable, "-c", "import torch; torch.ones(1).cuda()"], capture_output=True, text=True,
                           check=False)
    if asked.returncode != 0:
        checks.skip("200 epochs, 8 workers, and 200 forks", asked.stderr[-300:])
    else:
        for pin in (0, 1):
            for keep in (0, 1):
                checks.check(200, pin, keep)
        for cuda in (0, 1):
            checks.check_forks(cuda)
    checks.save(out, "check_workers")
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
