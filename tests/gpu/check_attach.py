#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: attach to a training that runs; blocks alive before are there.

    tests/gpu/check_attach.py TIDEMARK OUT

The job trains, prints what torch counts, waits to be attached to, trains on, and prints again: live
blocks and bytes of the trace at that moment must be torch's, though most were made before."""
import csv
import io
import json
import os
import subprocess
import sys
import time

from checks import command_line

JOB = """
import ctypes, json, sys, torch
import torch.nn as nn
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
model = nn.TransformerEncoder(layer, 6).cuda()
optimizer = torch.optim.AdamW(model.parameters())
def train(n):
    for _ in range(n):
        (model(torch.randn(16, 128, 256, device="cuda")) ** 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
train(5)
kept = [torch.empty(1 << 20, device="cuda") for _ in range(10)]
print("ready", flush=True)
sys.stdin.readline()
train(20)
del kept[:5]
stats = torch.cuda.memory_stats()
for line in open("/proc/self/maps"):
    if line.rstrip().endswith("libtidemark.so"):
        ctypes.CDLL("/" + line.rstrip().partition("/")[2]).tidemark_record_mark(b"stats", b"")
        break
print(json.dumps({"live": stats["allocation.all.current"], "live_bytes": stats["allocated_bytes.all.current"]}), flush=True)
sys.stdin.readline()
"""


def rows(tidemark, folder, sql):
    done = subprocess.run([tidemark, "query", folder, sql, "--format", "csv"], capture_output=True, text=True, check=True)
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


def main():
    tidemark, out, _ = command_line(__doc__)
    folder = os.path.join(out, "attach.tmk")
    job = subprocess.Popen([sys.executable, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if job.stdout.readline() != "ready\n":
        sys.exit("check_attach: the job ended before it was ready")
    attached = subprocess.run([tidemark, "attach", str(job.pid), "-o", folder, "--verbose"],
                              capture_output=True, text=True, check=False)
    print(attached.stderr)
    time.sleep(2)
    job.stdin.write("go\n")
    job.stdin.flush()
    truth = json.loads(job.stdout.readline())
    evaluated = subprocess.run([tidemark, "eval", str(job.pid), "torch.cuda.memory_allocated()"],
                               capture_output=True, text=True, check=False)
    print("eval:", evaluated.stdout.strip(), evaluated.stderr.strip())
    live = rows(tidemark, str(job.pid), "SELECT count(*), sum(size) FROM allocations WHERE device = 'cuda:0' AND free_ns IS NULL")
    detached = subprocess.run([tidemark, "detach", str(job.pid)], capture_output=True, text=True, check=False)
    print(detached.stderr)
    job.communicate("end\n", timeout=60)
    (mark,), = rows(tidemark, folder, "SELECT time_ns FROM marks WHERE event = 'stats'")
    (n, size, before), = rows(
        tidemark, folder,
        "SELECT count(*), sum(a.size), sum(f.function = '[alive before attach]') FROM allocations a JOIN frames f "
        f"ON f.stack_id = a.stack_id AND f.depth = 0 WHERE a.device = 'cuda:0' AND (a.free_ns IS NULL OR a.free_ns > {mark})")
    result = {"torch": truth, "tidemark": {"live": int(n), "live_bytes": int(size)}, "before_attach": int(before),
              "by pid": live, "job": job.returncode}
    ok = result["torch"] == result["tidemark"] and int(before) > 0 and job.returncode == 0 \
        and evaluated.stdout.strip() == str(truth["live_bytes"])
    print("attach", "ok" if ok else "DIFFERS", json.dumps(result))
    with open(os.path.join(out, "check_attach.json"), "w", encoding="utf-8") as file:
        json.dump(result, file)
    sys.exit(0 if ok else 1)


main()
