#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: the wheel that `./dev package` made, installed by pip beside that machine's own torch.

    tests/gpu/check_pip.py TIDEMARK OUT

TIDEMARK is the program of an unpacked package; the wheel lies beside the package, as `./dev package` leaves them. Without a
GPU the CPU stands in. Writes each check with its figures to OUT/check_pip.json, exit 1 when one fails, or when there is no
wheel beside a package. Of a build folder there is none: it says so, and exits with 77."""
import glob
import json
import os
import re
import site
import subprocess
import sys

from check_diff import BUDGETS
from checks import Checks, command_line

# What is allocated before and after tidemark is imported, by tidemark and by torch.
FIGURES = """
import json, sys, torch
device = sys.argv[1]
before = torch.ones(3 << 20, dtype=torch.uint8, device=device)
import tidemark
after = torch.ones(5 << 20, dtype=torch.uint8, device=device)
with tidemark.stage("forward"):
    work = torch.ones(1024, 1024, device=device) @ torch.ones(1024, 1024, device=device)
shot = tidemark.memory_snapshot()["gpu_memory"][0]
print(json.dumps({"watched": tidemark.is_watched(), "allocated": shot["allocated"], "library": tidemark._library.find(),
                  "torch": torch.cuda.memory_allocated() if device == "cuda" else None, "run": tidemark.run}))
"""


def run(*command, cwd):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TIDEMARK", "PYTHONPATH"))}
    return subprocess.run([str(word) for word in command], env=env, cwd=cwd, capture_output=True, text=True, timeout=300,
                          check=False)


def install(wheel, out):
    """The environment: this Python's packages and the wheel. Where this Python is of an environment itself, whose
    packages a second one does not have, they are named to it."""
    place = os.path.join(out, "pip_env")
    made = run(sys.executable, "-m", "venv", "--clear", "--without-pip", "--system-site-packages", place, cwd=out)
    if made.returncode != 0:
        return place, made
    for folder in glob.glob(os.path.join(place, "lib", "python*", "site-packages")):
        with open(os.path.join(folder, "packages_beside.pth"), "w", encoding="utf-8") as file:
            file.writelines(path + "\n" for path in site.getsitepackages())
    return place, run(sys.executable, "-m", "pip", "--python", os.path.join(place, "bin", "python"), "install", "--no-index",
                      "--no-deps", "--force-reinstall", wheel, cwd=out)


def check_program(checks, place, out):
    program = os.path.join(place, "bin", "tidemark")
    done = run(program, "doctor", cwd=out)
    inside = re.search(r"^ok +library +(\S+/site-packages/tidemark/lib/libtidemark.so)$", done.stdout, re.M)
    checks.add("pip: the program finds its library in the package", inside, said=done.stdout[-1500:] + done.stderr[-500:])


def check_import(checks, place, out, device):
    done = run(os.path.join(place, "bin", "python"), "-c", FIGURES, device, cwd=out)
    found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 and done.stdout else {}
    checks.add("pip: import records", found.get("watched") and place in found.get("library", ""), figures=found,
               said=done.stderr[-1500:])
    if device == "cuda":
        checks.add("pip: allocated is what torch says", found.get("allocated") == found.get("torch"))
    peak = run(os.path.join(place, "bin", "tidemark"), "peak", found.get("run", "none"), "--json", cwd=out)
    checks.add("pip: the run can be read", peak.returncode == 0 and json.loads(peak.stdout)["allocated"] >= 17 << 20,
               said=peak.stdout[-500:] + peak.stderr[-500:])


def check_budgets(checks, place, out, device):
    """Found by pytest's entry point, not named."""
    path = os.path.join(out, "test_pip_budgets.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(BUDGETS if device == "cuda" else BUDGETS.replace('"cuda"', '"cpu"').replace("64 << 20", "0"))
    done = run(os.path.join(place, "bin", "python"), "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", path,
               cwd=out)
    wanted = re.search(r"^12[.]0 MiB allocated on \S+ at the peak, 4[.]0 MiB more than the budget of 8[.]0 MiB$", done.stdout,
                       re.M)
    checks.add("pip: pytest finds the budgets by itself", wanted and "1 failed, 1 passed" in done.stdout,
               said=done.stdout[-1500:] + done.stderr[-500:])


def check(checks, wheel, out):
    place, done = install(wheel, out)
    checks.add("pip: the wheel is installed", done.returncode == 0, said=done.stdout[-500:] + done.stderr[-500:])
    if done.returncode != 0:
        return
    asked = run(sys.executable, "-c", "import torch; print(torch.cuda.is_available())", cwd=out).stdout.strip()
    device = "cuda" if asked == "True" else "cpu"
    check_program(checks, place, out)
    check_import(checks, place, out, device)
    check_budgets(checks, place, out, device)


def main():
    tidemark, out, _ = command_line(__doc__, needs_gpu=False)
    wheels = glob.glob(os.path.join(os.path.dirname(tidemark), "..", "..", "tidemark-*.whl"))
    checks = Checks()
    if not wheels and os.path.basename(os.path.dirname(tidemark)) == "bin":
        checks.add("pip: there is a wheel beside the package", False, looked_for=tidemark)
    elif not wheels:
        checks.skip("pip", "no wheel: this is no package; ./dev package makes both")
    try:
        for wheel in wheels[-1:]:
            check(checks, os.path.realpath(wheel), out)
    finally:
        checks.save(out, "check_pip")
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
