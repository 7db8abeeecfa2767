# SPDX-License-Identifier: MIT
"""Print what a real agent tells of eight cards and a watched rank on each, the kit of tests/fleet beside it."""
import contextlib
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "fleet"))
import agent_kit  # noqa: E402

RANKS = 8
USER = 60000 + os.getpid() % 4000  # nobody's: the agent then sees these jobs only


def start_ranks(machine, folder, prefix):
    """Jobs with blocks of every category in a segment, and forty steps."""
    blocks = [f"alloc 0 {category * 20000000} {(category + 1) * 1000000} {category}" for category in range(1, 9)]
    for i in range(RANKS):
        env = {"RANK": str(i), "WORLD_SIZE": "64", "TIDEMARK_JOB": "bench", "CUDA_VISIBLE_DEVICES": str(i)}
        job = agent_kit.Watched(folder, f"rank{i}.tmk", {**machine.environment(), **env}, prefix=prefix)
        job.do("segment 400000000", *blocks, "steps 40 0")
        yield job


def has_all(metrics):
    return all(len(metrics.of(f"tidemark_job_{name}", job="bench")) >= RANKS
               for name in ("steps_total", "fragmentation_ratio", "oom_risk"))


def main():
    prefix = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups") if os.geteuid() == 0 else ()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = Path(name)
        folder.chmod(0o755)
        if prefix:
            os.chown(folder, USER, USER)
        machine = agent_kit.Machine(folder)
        machine.cards(*[[f"uuid GPU-{i}"] for i in range(RANKS)])
        jobs = list(start_ranks(machine, folder, prefix))
        for job in jobs:
            ends.callback(job.end)
        machine.cards(*[[f"uuid GPU-{i}", f"process {job.pid} {5 << 30}"] for i, job in enumerate(jobs)])
        agent = agent_kit.Agent("--host", "bench", prefix=prefix, environment=machine.environment())
        ends.callback(agent.end)
        agent.wait_metrics("all ranks", has_all)
        print(agent.text(agent_kit.OPENMETRICS), end="")


main()
