#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: whose memory it is, against figures of PyTorch's own tools.

    tests/gpu/check_owners.py TIDEMARK OUT [WORKLOAD...]

Workloads are encoder, lora and compiled. Each is run unwatched and watched: losses, counts and the
peak must be the same to the byte. At the peak, bytes by category must be those of MemTracker (encoder)
or of the model itself (lora); bytes made in forward and backward must have a module; a compiled model
must break as often as it does alone. Writes each check with its figures to OUT/check_owners.json, exit
1 when one fails."""
import csv
import io
import json
import os
import subprocess
import sys

from checks import Checks, command_line

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "..", "torch", "workloads")
DEVICE = "cuda:0"
SCRIPTS = {"encoder": os.path.join(WORKLOADS, "encoder.py"), "lora": os.path.join(WORKLOADS, "lora.py"),
           "compiled": os.path.join(HERE, "compiled.py")}
# At the peak, by torch 2.11.0+cu130 on an H200, the scripts with their own settings but for the number of
# steps, which changes nothing from the second on. Encoder: torch.distributed._tools.mem_tracker.MemTracker.
# Lora: sizes of the parameters, and twice those that are trained; MemTracker fails on frozen parameters.
# Two of lora's tensors, of 16,384,000 bytes, are in blocks of 16 MiB: tensors and blocks are compared apart.
EXACT = {"encoder": {"parameter": 18954240, "optimizer_state": 37908480},
         "lora": {"parameter": 100157440, "optimizer_state": 524288}}
ACTIVATION = {"encoder": 232834048}
NO_OWNER = ("unknown", "other")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


class Run:
    """A watched run that can be asked."""

    def __init__(self, tidemark, folder):
        self.tidemark, self.folder = tidemark, folder

    def rows(self, sql):
        return list(csv.reader(io.StringIO(run([self.tidemark, "query", self.folder, sql, "--format", "csv"]))))[1:]

    def peak(self, by):
        said = json.loads(run([self.tidemark, "peak", self.folder, "--by", by, "--device", DEVICE, "--json"]))
        return said, {row["key"]: row["bytes"] for row in said["by"]}

    def named_share(self, stage):
        """Of the bytes made in that stage: the part that has a module."""
        ((named, every),) = self.rows(
            "SELECT sum(CASE WHEN module IS NOT NULL AND module <> '' THEN size ELSE 0 END), sum(size) FROM "
            f"allocations WHERE device = '{DEVICE}' AND stage = '{stage}'")
        return int(named or 0) / int(every or 1), int(every or 0)


def losses(text):
    return [line for line in text.splitlines() if line.startswith("step ")]


def stats(text):
    """What with_stats.py prints last, and what compiled.py counted."""
    counted = [json.loads(line[8:]) for line in text.splitlines() if line.startswith("counted ")]
    return json.loads(text.splitlines()[-1]), counted[0] if counted else None


def check_unchanged(checks, name, alone, watched):
    checks.add(f"{name}: losses are the same", losses(alone) == losses(watched) and losses(alone),
               n_losses=len(losses(watched)), last=(losses(watched) or [""])[-1])
    (before, counted_before), (after, counted_after) = stats(alone), stats(watched)
    checks.add(f"{name}: blocks, bytes and peaks are the same", before == after, alone=before, watched=after)
    if counted_before is not None:
        checks.add(f"{name}: the compiler does the same", counted_before == counted_after, alone=counted_before,
                   watched=counted_after)


def check_peak(checks, name, job, truth):
    said, categories = job.peak("category")
    checks.add(f"{name}: peak is torch's max_memory_allocated", said["allocated"] == truth["peak_bytes"],
               found=said["allocated"], torch=truth["peak_bytes"])
    checks.add(f"{name}: categories add up to the peak", sum(categories.values()) == said["allocated"], **categories)
    ((tensors,),) = job.rows(f"SELECT sum(bytes) FROM parameters WHERE kind = 'parameter' AND NOT tied AND device = '{DEVICE}'")
    checks.add(f"{name}: parameter is exact", int(tensors) == EXACT[name]["parameter"], found=int(tensors),
               expected=EXACT[name]["parameter"])
    checks.add(f"{name}: blocks of parameters are torch's", categories.get("parameter") == truth["parameter_blocks"],
               found=categories.get("parameter"), torch=truth["parameter_blocks"])
    checks.add(f"{name}: optimizer_state is exact", categories.get("optimizer_state") == EXACT[name]["optimizer_state"],
               found=categories.get("optimizer_state"), expected=EXACT[name]["optimizer_state"])
    if name in ACTIVATION:
        ratio = categories.get("activation", 0) / ACTIVATION[name]
        checks.add(f"{name}: activation within 1 %", abs(ratio - 1) <= 0.01, found=categories.get("activation"),
                   expected=ACTIVATION[name], ratio=round(ratio, 5))
    nobody = sum(categories.get(category, 0) for category in NO_OWNER)
    share = nobody / said["allocated"]
    checks.add(f"{name}: unknown and other at most 1 %", share <= 0.01, bytes=nobody, share=round(share, 5))


def check_owners(checks, name, job):
    for stage, least in (("forward", 0.99), ("backward", 0.95)):
        share, size = job.named_share(stage)
        checks.add(f"{name}: {stage}: bytes with a module at least {least:.0%}", share >= least and size > 0,
                   share=round(share, 5), bytes=size)
    components = job.peak("component")[1]
    wanted = {"encoder": {"attention", "mlp", "normalization"},
              "lora": {"lora", "attention", "mlp", "head"}}[name]
    checks.add(f"{name}: components", wanted <= set(components), **components)


def check_steps(checks, name, job, n_steps):
    found = [int(row[0]) for row in job.rows(
        f"SELECT step FROM steps WHERE device = '{DEVICE}' AND step IS NOT NULL ORDER BY step")]
    stages = job.rows("SELECT step, count(*) FROM ranges WHERE kind = 'stage' AND name = 'optimizer' GROUP BY step")
    is_each = found == list(range(n_steps)) and [row[1] for row in stages] == ["1"] * n_steps
    checks.add(f"{name}: a step for each of the optimizer's", is_each, steps=len(found), updates=len(stages))


def check_workload(checks, tidemark, out, name):
    command = [sys.executable, os.path.join(HERE, "with_stats.py"), SCRIPTS[name]]
    alone = run(command)
    if name == "compiled":  # the first one may have compiled, and chosen kernels by their times
        alone = run(command)
    folder = os.path.join(out, f"owners_{name}.tmk")
    watched = run([tidemark, "run", "--quiet", "-o", folder, "--", *command])
    job = Run(tidemark, folder)
    check_unchanged(checks, name, alone, watched)
    check_steps(checks, name, job, len(losses(watched)))
    if name == "compiled":
        names = {row[0] for row in job.rows("SELECT DISTINCT name FROM ranges WHERE kind = 'module'")}
        checks.add(f"{name}: the compiled model is a named region", bool(names & {"OptimizedModule", "Broken"}),
                   names=sorted(names)[:20])
        return
    check_peak(checks, name, job, stats(watched)[0])
    check_owners(checks, name, job)
    run([tidemark, "check", folder])


def main():
    tidemark, out, names = command_line(__doc__)
    checks = Checks()
    for name in names or SCRIPTS:
        try:
            check_workload(checks, tidemark, out, name)
        except (RuntimeError, subprocess.TimeoutExpired, ValueError, IndexError, KeyError) as reason:
            checks.add(f"{name}: runs", False, why=str(reason))
    checks.save(out, "check_owners")
    sys.exit(checks.exit_status())


main()
