#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: what `tidemark diff` says of LoRA trainings of another rank and with checkpointing, and
whether pytest's budget counts the GPU's memory.

    tests/gpu/check_diff.py TIDEMARK OUT

Runs that are in OUT already (lora_rank8.tmk, lora_rank64.tmk, lora_checkpointing.tmk) are not recorded again. Writes
each check with its figures to OUT/check_diff.json, exit 1 when one fails."""
import json
import os
import subprocess
import sys

from checks import Checks, command_line

HERE = os.path.dirname(os.path.abspath(__file__))
LORA = os.path.join(HERE, "..", "torch", "workloads", "lora.py")
RUNS = {"lora_rank8": [], "lora_rank64": ["--rank", "64"], "lora_checkpointing": ["--checkpointing"]}
# Four layers, adapters at q_proj and v_proj, two matrices of 512 times the rank each, in float32.
MORE_IN_MATRICES = 4 * 2 * 2 * 512 * (64 - 8) * 4
LEAST_ATTRIBUTED = 0.95

BUDGETS = '''
import pytest, torch

@pytest.mark.limit_gpu_memory("8 MiB")
def test_fits():
    host = torch.empty(64 << 20, dtype=torch.uint8)
    torch.empty(8 << 20, dtype=torch.uint8, device="cuda")

@pytest.mark.limit_gpu_memory("8 MiB")
def test_too_much(gpu_memory):
    torch.empty(12 << 20, dtype=torch.uint8, device="cuda")
    assert gpu_memory.peak == 12 << 20
'''


def record(tidemark, out):
    for name, args in RUNS.items():
        folder = os.path.join(out, name + ".tmk")
        if not os.path.isdir(folder):
            subprocess.run([tidemark, "run", "--quiet", "-o", folder, "--", sys.executable, LORA, *args],
                           stdout=subprocess.DEVNULL, timeout=400, check=True)


def diff(tidemark, out, a, b):
    done = subprocess.run([tidemark, "diff", os.path.join(out, a + ".tmk"), os.path.join(out, b + ".tmk"), "--json"],
                          stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    return json.loads(done.stdout)


def check_runs(checks, tidemark, out):
    for name in ("lora_rank64", "lora_checkpointing"):
        found = diff(tidemark, out, "lora_rank8", name)
        whole = found["peak"]["change"]
        checks.add(f"{name}: the change is attributed", found["attributed"] >= LEAST_ATTRIBUTED,
                   attributed=found["attributed"], change=whole)
        checks.add(f"{name}: causes add up", sum(cause["change"] for cause in found["causes"]) +
                   found["unexplained"] == whole, causes=len(found["causes"]), split=found["split"])
        if name == "lora_rank64":
            by = {row["key"]: row["change"] for row in found["by"]}
            checks.add(f"{name}: parameters and Adam's state, by hand", by["parameter"] == MORE_IN_MATRICES and
                       by["optimizer_state"] == 2 * MORE_IN_MATRICES, parameter=by["parameter"],
                       optimizer_state=by["optimizer_state"])


def package_environment(tidemark):
    """With the Python package of this program: a package has it below lib, a build folder stands in a source tree."""
    package = os.path.join(os.path.dirname(tidemark), "..", "lib", "tidemark", "python")
    python = package if os.path.isdir(package) else os.path.join(HERE, "..", "..", "python")
    env = dict(os.environ, TIDEMARK_PROGRAM=tidemark, PYTHONPATH=python)
    library = os.path.join(os.path.dirname(tidemark), "libtidemark.so")
    if os.path.exists(library):
        env["TIDEMARK_LIBRARY"] = library
    return env


def check_budgets(checks, tidemark, out):
    path = os.path.join(out, "test_gpu_budgets.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(BUDGETS)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "tidemark.pytest_plugin", path],
                          env=package_environment(tidemark), capture_output=True, text=True, timeout=200, check=False)
    wanted = "12.0 MiB allocated on cuda:0 at the peak, 4.0 MiB more than the budget of 8.0 MiB"
    checks.add("budget: the GPU's memory, not the host's", wanted in done.stdout and
               "1 failed, 1 passed" in done.stdout, said=done.stdout[-1500:] + done.stderr[-500:])


def main():
    tidemark, out, _ = command_line(__doc__)
    checks = Checks()
    try:
        record(tidemark, out)
        check_runs(checks, tidemark, out)
    except (subprocess.SubprocessError, ValueError, KeyError) as reason:
        checks.add("diff: the trainings are recorded and compared", False, why=str(reason)[-1500:])
    try:
        check_budgets(checks, tidemark, out)
    finally:
        checks.save(out, "check_diff")
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
