# SPDX-License-Identifier: MIT
"""What the tests of this folder share: where things are, and how a run is asked."""
import csv
import glob
import io
import os
import re
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TIDEMARK_BUILD", REPO / "build"))
TIDEMARK = str(BUILD / "tidemark")
LIBRARY = str(BUILD / "libtidemark.so")
WORKLOADS = Path(__file__).parent / "workloads"
PYTHON = "/usr/bin/python3"  # the one that has torch


def pythons(known=True):
    """Every CPython that can be found here, Debian's own and those of pyenv: of the versions whose
    frames are read, or of the others."""
    found = [PYTHON, *glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))]
    paths = sorted({os.path.realpath(path) for path in found if os.path.exists(path)})
    minors = {path: int(re.search(r"python3[.](\d+)", path)[1]) for path in paths}
    return [path for path in paths if (9 <= minors[path] <= 14) == known]


def environment(**more):
    """Of a program that is watched; what `import tidemark` says at its end (test_at_exit.py) is left out."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("TIDEMARK_") and name not in ("LD_PRELOAD", "PYTHONPATH")}
    env.update({"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "TIDEMARK_QUIET": "1", **more})
    return env


def query(run, sql):
    """Rows of a query, as lists of texts."""
    done = subprocess.run([TIDEMARK, "query", str(run), sql, "--format", "csv"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


def check(run):
    done = subprocess.run([TIDEMARK, "check", str(run)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def frames(run, allocation_sql):
    """For each allocation that `allocation_sql` (a WHERE) picks: [(file, line, function)], innermost
    first; by allocation id."""
    rows = query(run, "SELECT a.id, f.file, f.line, f.function FROM allocations a JOIN frames f ON "
                      f"f.stack_id = a.stack_id WHERE {allocation_sql} ORDER BY a.id, f.depth")
    stacks = {}
    for number, file, line, function in rows:
        stacks.setdefault(int(number), []).append((file, int(line or 0), function))
    return stacks


def compiled(folder, name):
    library = folder / (name + ".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", str(library),
                    str(Path(__file__).parent / (name + ".c"))], check=True)
    return str(library)


class Job:
    """A training that prints a line a step."""

    def __init__(self, script, *args, env, stdin=None):
        self.process = subprocess.Popen([PYTHON, "-u", str(script), *args], env=env, text=True, stdin=stdin,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []

    def until(self, n):
        """Wait until n lines more have come."""
        for _ in range(n):
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.lines.append(line)

    def end(self):
        out, err = self.process.communicate(timeout=240)
        assert self.process.returncode == 0, err
        return self.lines + out.splitlines(keepends=True)


def tidemark(*args, rings, status=0):
    done = subprocess.run([TIDEMARK, *map(str, args)], capture_output=True, text=True, timeout=240,
                          env=environment(TIDEMARK_RING_DIR=str(rings)), check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr
