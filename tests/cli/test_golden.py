# SPDX-License-Identifier: MIT
"""Golden tests of the command line: each file NAME.exact or NAME.glob here is one.

    # what it shows
    $ tidemark peak a.tmk
    exit 0
    stdout:
    ...
    stderr:
    ...

The line after `$` goes to a shell, in a folder with the runs of RUNS, which are recorded when a
case first names them. In a .glob file `*` stands for anything within a line and a line `...` for
any number of lines; in an .exact file nothing is special. An empty stderr may be left out.

`/usr/bin/python3 tests/cli/test_golden.py NAME...` prints what those cases give now.
"""
import functools
import os
import re
import shlex
import subprocess
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
BUILD = os.environ.get("TIDEMARK_BUILD", os.path.join(ROOT, "build"))

SMALL = "--layers 1 --dim 8 --heads 1 --seq 8 --batch 1 --quiet"
RUNS = {
    "a.tmk": "tidemark run -q -o a.tmk -- tinytrain --steps 12 --quiet",
    "deep.tmk": "tidemark run -q -o deep.tmk -- tinytrain --steps 12 --layers 4 --quiet",
    "leak.tmk": "tidemark run -q -o leak.tmk -- tinytrain --steps 20 --leak 64KiB --quiet",
    "oom.tmk": "tidemark run -q -o oom.tmk -- tinytrain --spike 5 --capacity 12MiB --quiet",
    "killed.tmk": "tidemark run -q -o killed.tmk -- "
                  f"sh -c 'tinytrain --steps 1000000 {SMALL} & sleep 0.5; kill -9 $!; wait'",
    "ring.tmk": "tidemark run -q -o ring.tmk --max-size 4MiB -- "
                f"tinytrain --steps 12000 --spike 3 {SMALL}",
    "ranks.tmk": "tidemark run -q -o ranks.tmk -- sh -c 'RANK=0 WORLD_SIZE=2 tinytrain --quiet "
                 "--steps 2; RANK=1 WORLD_SIZE=2 tinytrain --quiet --steps 2 --batch 16'",
    "empty.tmk": "mkdir empty.tmk",
}
TIME_LIMIT_S = 60


def environment():
    kept = {name: value for name, value in os.environ.items()
            if name in ("HOME", "TMPDIR", "XDG_RUNTIME_DIR") or name.endswith("SAN_OPTIONS")}
    return {**kept, "PATH": BUILD + ":/usr/bin:/bin", "TERM": "xterm",
            "LC_ALL": "C.UTF-8"}


def shell(line, folder):
    return subprocess.run(["bash", "-c", line], cwd=folder, env=environment(), text=True,
                          capture_output=True, timeout=TIME_LIMIT_S, check=False,
                          stdin=subprocess.DEVNULL, errors="surrogateescape")


@functools.lru_cache(maxsize=None)
def workshop():
    """The folder in which cases run; gone when the tests are."""
    return tempfile.TemporaryDirectory(prefix="tidemark-golden.")


@functools.lru_cache(maxsize=None)
def need(run):
    """Record a run, once."""
    done = shell(RUNS[run], workshop().name)
    assert os.path.isdir(os.path.join(workshop().name, run)), f"{RUNS[run]}:\n{done.stderr}"


def run_case(line):
    for run in RUNS:
        if run in line:
            need(run)
    return shell(line, workshop().name)


# ---- cases

def parse(path):
    """{command, exit, stdout, stderr} of a case file."""
    case = {"exit": 0, "stdout": [], "stderr": []}
    section = None
    with open(path, encoding="utf-8") as source:
        for line in source.read().splitlines():
            if line in ("stdout:", "stderr:"):
                section = line[:-1]
            elif section:
                case[section].append(line)
            elif line.startswith("$ "):
                case["command"] = line[2:]
            elif line.startswith("exit "):
                case["exit"] = int(line[5:])
            else:
                assert line.startswith("#"), f"{path}: {line!r} is none of: # $ exit stdout: stderr:"
    return case


def pattern_of(lines):
    """A regular expression for a section of a .glob file."""
    out = ""
    for line in lines:
        if line == "...":
            out += r"(?:.*\n)*?"
        else:
            out += ".*".join(re.escape(part) for part in line.split("*")) + r"\n"
    return re.compile(out)


def explain(wanted, got, is_glob):
    """The first line that does not fit, for people."""
    for i, line in enumerate(wanted):
        if line == "..." and is_glob:
            return "..."
        here = got[i] if i < len(got) else None
        fits = here is not None and (pattern_of([line]).fullmatch(here + "\n") if is_glob
                                     else line == here)
        if not fits:
            return f"line {i + 1}\n  wanted: {line}\n  got:    {here}"
    return f"line {len(wanted) + 1}: got {got[len(wanted):][:1]}"


def check(name, wanted, text, is_glob):
    got = text.splitlines()
    good = pattern_of(wanted).fullmatch("".join(line + "\n" for line in got)) if is_glob \
        else wanted == got
    assert good, f"{name}: {explain(wanted, got, is_glob)}\n---- all of it:\n{text}"


CASES = sorted(name for name in os.listdir(HERE) if name.endswith((".exact", ".glob")))


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    case = parse(os.path.join(HERE, name))
    done = run_case(case["command"])
    is_glob = name.endswith(".glob")
    check("stdout", case["stdout"], done.stdout, is_glob)
    check("stderr", case["stderr"], done.stderr, is_glob)
    assert done.returncode == case["exit"], f"exit status\n{done.stderr}"


def test_runner_can_fail():
    """A pattern must not fit what it should not."""
    assert pattern_of(["a *", "...", "z"]).fullmatch("a b\nc\nd\nz\n")
    assert pattern_of(["a *", "...", "z"]).fullmatch("a b\nz\n")
    assert not pattern_of(["a *", "z"]).fullmatch("a b\nc\nz\n")
    assert not pattern_of(["a.c"]).fullmatch("abc\n")
    with pytest.raises(AssertionError):
        check("stdout", ["a"], "a\nb\n", False)
    with pytest.raises(AssertionError):
        check("stdout", ["a*"], "b\n", True)


def main(names):
    for name in names:
        case = parse(os.path.join(HERE, name))
        done = run_case(case["command"])
        print(f"$ {case['command']}\nexit {done.returncode}\nstdout:\n{done.stdout}", end="")
        print(f"stderr:\n{done.stderr}" if done.stderr else "", end="")
    return 0 if names else print("usage:", shlex.join(sys.argv[:1]), "NAME...", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
