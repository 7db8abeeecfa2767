#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: programs that run out of memory for a known reason, and what `explain` says.

    tests/gpu/check_explain.py [--record-only] TIDEMARK OUT [NAME...]

Names: fragmentation, leak, outlier, demand, other_process, oom_growth. Each is run watched until it runs out;
`explain --json` must name the cause first; then what it advises first is done for real, and no OOM may come.
--record-only: no `explain`; a usual fix is tried. Traces (NAME.tmk) and
what the programs said (NAME.txt) stay in OUT. Writes OUT/check_explain.json, exit 1 when a check fails."""
import json
import os
import shutil
import subprocess
import sys
import time

from checks import Checks, command_line

HERE = os.path.dirname(os.path.abspath(__file__))
OOMS = os.path.join(HERE, "ooms")
GROWTH = os.path.join(HERE, "..", "torch", "workloads", "oom_growth.py")
EATER_LEAVES_MIB = 6 * 1024
CONF = "PYTORCH_CUDA_ALLOC_CONF"

# name: the cause, and a fix to try where explain is not asked
PROGRAMS = {
    "fragmentation": ("fragmentation", {"kind": "expandable_segments", "conf": "expandable_segments:True"}),
    "leak": ("leak", {"kind": "leak"}),
    "outlier": ("outlier", {"kind": "outlier"}),
    "demand": ("demand", {"kind": "batch", "factor": 0.5}),
    "other_process": ("other_process", {"kind": "other_process"}),
    "oom_growth": ("fragmentation", {"kind": "alloc_conf", "conf": "max_split_size_mb:32"}),
}


class Eater:
    """Another process with all of the card but a little, while it is entered."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, os.path.join(OOMS, "eater.py"), str(EATER_LEAVES_MIB)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline().startswith("ready"):
            raise RuntimeError("the other process could not take its memory")
        return self.process.pid

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class Nobody:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        pass


class Explained(Checks):
    """Programs that run out, and what is said of them."""

    def __init__(self, tidemark, out):
        super().__init__()
        self.tidemark, self.out = tidemark, out

    def start(self, label, command, **more):
        """Runs a program; (status, whether it ran out, what it said), which is kept in LABEL.txt too."""
        begun = time.monotonic()
        done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, timeout=120,
                              check=False)
        said = done.stdout + done.stderr
        with open(os.path.join(self.out, label + ".txt"), "w", encoding="utf-8") as file:
            file.write(f"{command} {more}\nstatus {done.returncode}, {time.monotonic() - begun:.1f} s\n{said}")
        return done.returncode, "OutOfMemoryError" in said, said

    def watched(self, label, command, **more):
        folder = os.path.join(self.out, label + ".tmk")
        shutil.rmtree(folder, ignore_errors=True)
        result = self.start(label, [self.tidemark, "run", "-o", folder, "--", *command], **more)
        return folder, *result

    def json(self, *arguments):
        done = subprocess.run([self.tidemark, *arguments], capture_output=True, text=True, timeout=120, check=False)
        try:
            return json.loads(done.stdout)
        except ValueError as bad:
            raise RuntimeError(f"{arguments}: {done.stderr[-1000:]}") from bad

    def oom_step(self, folder):
        rows = self.json("query", folder, "SELECT step FROM ooms WHERE source <> 'driver' ORDER BY time_ns LIMIT 1",
                         "--json")["rows"]
        return rows[0]["step"] if rows else None


def program(name):
    return [sys.executable, GROWTH if name == "oom_growth" else os.path.join(OOMS, name + ".py")]


def run_out(checks, name):
    """The program, until it runs out; where its run is, and the step."""
    with Eater() if name == "other_process" else Nobody() as other:
        folder, status, ran_out, said = checks.watched(name, program(name))
    message = [line for line in said.splitlines() if "OutOfMemoryError" in line]
    checks.add(f"{name}: runs out", status != 0 and ran_out, status=status, other=other, message=message[:1],
               said=said[-800:] if not ran_out else None)
    return folder, checks.oom_step(folder)


def try_growth(checks, name, fix, step):
    """The endless program: with the fix it must come further than the step at which it ran out."""
    folder, status, _, said = checks.watched(f"{name}_fixed", program(name), **{CONF: fix.get("conf") or ""})
    further = checks.oom_step(folder)
    checks.add(f"{name}: with the fix it does not run out there", step is not None and further and further > step,
               fix=fix, step=step, further=further, status=status, said=said[-300:])


def try_fix(checks, name, fix, step):
    if name == "oom_growth":
        try_growth(checks, name, fix, step)
        return
    word = fix["kind"] + (f":{fix['factor']}" if fix.get("factor") else "")
    more = {CONF: fix["conf"]} if fix.get("conf") else {}
    status, ran_out, said = checks.start(f"{name}_fixed", [*program(name), "--fix", word], **more)
    checks.add(f"{name}: with the fix it does not run out", status == 0 and not ran_out, fix=fix, status=status,
               ran_out=ran_out, said=said[-400:])


def explained(checks, name, cause, folder):
    """What explain says; the fix that it puts first."""
    ooms = checks.json("explain", folder, "--json")["ooms"]
    first = ooms[0] if ooms else {"cause": None, "fixes": []}
    checks.add(f"{name}: the first cause is the true one", first["cause"] == cause, explained=first)
    return first["fixes"][0] if first["fixes"] else None


def check(checks, name, record_only):
    cause, usual = PROGRAMS[name]
    folder, step = run_out(checks, name)
    fix = usual if record_only else explained(checks, name, cause, folder)
    if fix:
        try_fix(checks, name, fix, step)
    else:
        checks.add(f"{name}: there is a fix", False)


def main():
    words = [word for word in sys.argv[1:] if word != "--record-only"]
    record_only = len(words) < len(sys.argv) - 1
    tidemark, out, names = command_line(__doc__, words)
    checks = Explained(tidemark, out)
    for name in names or PROGRAMS:
        try:
            check(checks, name, record_only)
        except (RuntimeError, subprocess.SubprocessError, ValueError, KeyError, OSError) as reason:
            checks.add(f"{name}: runs", False, why=str(reason)[-1500:])
        checks.save(out, "check_explain")
    sys.exit(checks.exit_status())


main()
