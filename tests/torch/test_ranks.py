# SPDX-License-Identifier: MIT
"""Four ranks of a real distributed training (gloo, on the CPU): the verdict about them in the summary,
report and explain. One has twice the batch; one is killed; one runs out of memory and the others die
of it."""
import json
import re
import socket
import subprocess

import pytest
from torch_kit import PYTHON, TIDEMARK, check, environment

RANKS = 4
STEPS = 14
TRAINING = """
import os, signal, sys
import torch, torch.distributed as dist
fate, its_rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
layers = [torch.nn.Linear(64, 128), *(torch.nn.Linear(128, 128) for _ in range(4)), torch.nn.Linear(128, 64)]
model = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = 2048 if fate == "batch" and rank == its_rank else 1024
for step in range(STEPS):
    if fate == "killed" and rank == its_rank and step == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    if fate == "oom" and rank == its_rank and step == 9:
        torch.empty(1 << 50, dtype=torch.uint8)
    model(torch.randn(batch, 64)).square().mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    optimizer.zero_grad()
""".replace("STEPS", str(STEPS))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Training:
    """The run of four ranks, what `run` said at the end, and the verdict."""

    def __init__(self, folder, rings, fate, rank):
        script, launcher = folder / "train.py", folder / "launch.sh"
        script.write_text(TRAINING)
        launcher.write_text(f"""
export MASTER_ADDR=127.0.0.1 MASTER_PORT={free_port()} WORLD_SIZE={RANKS}
for r in 0 1 2 3; do RANK=$r LOCAL_RANK=$r {PYTHON} {script} {fate} {rank} 2> $r.err & done
wait
""")
        self.run = folder / f"{fate}.tmk"
        env = environment(TIDEMARK_RING_DIR=str(rings), GLOO_SOCKET_IFNAME="lo")
        done = subprocess.run([TIDEMARK, "run", "-o", str(self.run), "--", "sh", str(launcher)], cwd=folder, env=env,
                              capture_output=True, text=True, timeout=240, check=False)
        self.errors = {r: (folder / f"{r}.err").read_text() for r in range(RANKS)}
        self.summary = " ".join(done.stderr.split())
        report = subprocess.run([TIDEMARK, "report", str(self.run), "--json"], capture_output=True, text=True,
                                check=True)
        self.ranks = json.loads(report.stdout)["ranks"]
        check(self.run)

    def told(self, command, *options):
        done = subprocess.run([TIDEMARK, command, str(self.run), *options], capture_output=True, text=True, check=False)
        return " ".join(done.stdout.split())


@pytest.fixture(name="training")
def fixture_training(tmp_path, rings):
    return lambda fate, rank: Training(tmp_path, rings, fate, rank)


def test_twice_the_batch(training):
    it = training("batch", 2)
    ranks = it.ranks
    assert (ranks["verdict"], ranks["n"], ranks["world_size"], ranks["missing"]) == ("imbalanced", 4, 4, None)
    assert ranks["highest"]["rank"] == 2
    assert ranks["why"]["category"]["key"] == "activation"
    assert ranks["why"]["batch_factor"] == 2
    assert (ranks["first_oom"], ranks["ended_early"]) == (None, None)
    alike = [(group["ranks"], group["processes"]) for group in ranks["groups"] if group["ranks"]]
    assert alike == [("0, 1, 3", 3), ("2", 1)]
    for text in (it.summary, it.told("report"), it.told("explain")):
        assert "IMBALANCED: rank 2 has the largest peak" in text
        assert "category activation" in text
        assert "2 times as large: it has a larger batch" in text
    assert "ranks 0, 1, 3" in it.told("report")
    line = re.fullmatch(r"peak ([\d.]+) MiB of [\d.]+ GiB of CPU memory on rank 2; IMBALANCED, ([\d.]+) times the median",
                        it.told("report", "--format", "line"))
    assert line and line[1] == f"{ranks['highest']['peak'] / 2**20:.1f}"
    assert line[2] == f"{ranks['highest']['times_median']:.2f}"


def test_killed(training):
    it = training("killed", 1)
    assert it.ranks["ended_early"]["rank"] == 1
    assert it.ranks["ended_early"]["end"] == "killed"
    assert it.ranks["ended_early"]["all"] == "1"
    assert it.ranks["first_oom"] is None
    assert "ENDED EARLY: rank 1" in it.summary
    assert "a signal killed it" in it.told("report")
    assert it.told("report", "--format", "line").endswith("; ENDED EARLY: 1")


def test_out_of_memory(training):
    it = training("oom", 3)
    assert "DefaultCPUAllocator" in it.errors[3]
    assert all(it.errors[rank] and "DefaultCPUAllocator" not in it.errors[rank] for rank in range(3))
    first = it.ranks["first_oom"]
    assert (first["rank"], first["only_died_of_it"]) == (3, "0-2")
    assert it.ranks["ended_early"] is None
    assert "OUT OF MEMORY: rank 3 was the first" in it.summary
    assert "Ranks 0-2 only ended because of that" in it.told("explain")
    assert it.told("report", "--format", "line").endswith(f"; OUT OF MEMORY on rank 3 in step {first['step']}")
