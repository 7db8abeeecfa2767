# SPDX-License-Identifier: MIT
"""explain on programs that run out of the host's memory for real: under a limit of the address space, as `ulimit -v`
sets."""
import json
import subprocess

import pytest
from torch_kit import PYTHON, TIDEMARK, environment

LIMITED = """
import os, resource, sys
import torch, torch.nn as nn
torch.set_num_threads(1)
part = float(sys.argv[1]) if len(sys.argv) > 1 else 1
def limit(mib):
    pages = int(open("/proc/self/statm").read().split()[0])
    size = pages * os.sysconf("SC_PAGESIZE") + (mib << 20)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
"""
# Every other module has no parameters, and it is their output that backward needs.
FORWARD = LIMITED + """
net = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(64, 64), nn.ReLU())])
net(torch.randn(8, 64)).sum().backward()
if part == 1:
    limit(400)
for step in range(3):
    loss = net(torch.randn(int(160_000 * part), 64)).square().mean()
    loss.backward()
    net.zero_grad()
"""
EVALUATION = LIMITED + """
net = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(128, 128), nn.ReLU())])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
limit(400)  # the first call of a thread may reserve 128 MiB of it: several forwards must fit beside that
for step in range(6):
    opt.zero_grad(set_to_none=True)
    net(torch.randn(4000, 128)).square().mean().backward()
    opt.step()
if MODE:
    net.eval()
kept = []
with torch.set_grad_enabled(part == 1):
    for i in range(60):
        kept.append(net(torch.randn(4000, 128)).square().mean())
"""


def run(folder, source, *words):
    (folder / "train.py").write_text(source)
    return subprocess.run([*words, PYTHON, "train.py"], env=environment(), cwd=folder, capture_output=True, text=True,
                          timeout=120, check=False)


def explained(folder, source):
    done = run(folder, source, TIDEMARK, "run", "-q", "-o", "a.tmk", "--")
    assert done.returncode == 1 and "can't allocate memory" in done.stderr, done.stderr
    said = subprocess.run([TIDEMARK, "explain", "a.tmk", "--json"], env=environment(), cwd=folder, capture_output=True,
                          text=True, check=False)  # status 1: it did run out
    return json.loads(said.stdout)["ooms"][0]


def lives_with(folder, part):
    done = subprocess.run([PYTHON, "train.py", str(part)], env=environment(), cwd=folder, capture_output=True, text=True,
                          timeout=120, check=False)
    return done.returncode == 0


def peak_without_limit(folder):
    words = [TIDEMARK, "run", "-q", "-o", "b.tmk", "--", PYTHON, "train.py", "0.99999"]
    subprocess.run(words, env=environment(), cwd=folder, capture_output=True, timeout=120, check=True)
    said = subprocess.run([TIDEMARK, "peak", "b.tmk", "--json"], env=environment(), cwd=folder, capture_output=True,
                          text=True, check=True)
    return json.loads(said.stdout)["allocated"]


def test_need_of_an_interrupted_forward(tmp_path):
    """It dies in the middle of the first large forward. What it would have needed is known from the same program without
    a limit; a part of the batch is advised with which that fits."""
    oom = explained(tmp_path, FORWARD)
    assert oom["cause"] == "demand" and oom["evidence"]["need_is_estimate"]
    assert not any(fix["enough"] for fix in oom["fixes"])  # nothing of the rest of a step was seen
    (batch,) = [fix for fix in oom["fixes"] if fix["kind"] == "batch"]
    assert batch["avoids"] and "inputs" not in [fix["kind"] for fix in oom["fixes"]]
    peak, evidence = peak_without_limit(tmp_path), oom["evidence"]
    assert 0.85 * peak < evidence["need"] < 1.15 * peak
    assert 0.2 * evidence["limit"] < batch["factor"] * peak < evidence["limit"]


@pytest.mark.parametrize("mode", [True, False], ids=["eval()", "train()"])
def test_evaluation_with_graphs(tmp_path, mode):
    oom = explained(tmp_path, EVALUATION.replace("MODE", str(mode)))
    assert oom["cause"] == "demand" and oom["evidence"]["keeps_graphs"]
    assert [fix["kind"] for fix in oom["fixes"]] == ["no_grad"] and oom["fixes"][0]["enough"]
    assert lives_with(tmp_path, 0)
