# SPDX-License-Identifier: MIT
"""`run --step-at FILE:LINE`: a step begins each time that Python reaches the line, from CPython 3.12 on."""
import re
import subprocess
import time
from pathlib import Path

import pytest
from torch_kit import TIDEMARK, environment, pythons, query

TARGET = Path(__file__).parent / "step_at_target.py"
LINES = {text.rpartition("# ")[2]: number + 1 for number, text in enumerate(TARGET.read_text().splitlines())
         if "  # " in text}


def watched(python, tmp_path, rings, case, line):
    where = tmp_path / "a.tmk"
    place = f"torch/{TARGET.name}:{line}"
    done = subprocess.run([TIDEMARK, "run", "--quiet", "--step-at", place, "-o", str(where), "--", python, str(TARGET),
                           case], env=environment(TIDEMARK_RING_DIR=str(rings)),
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return where


def can_monitor(python):
    done = subprocess.run([python, "-c", "import sys; sys.monitoring"], capture_output=True, check=False)
    return done.returncode == 0


EXPECTED = {"in a function": ["3"] * 7, "in a generator": ["2"] * 4 + ["1"], "that raises": ["2"] * 5 + ["3"],
            "of the module, in a loop that runs already": ["2"] * 4}


@pytest.mark.parametrize("case", list(EXPECTED))
@pytest.mark.parametrize("python", pythons())
def test_step_at(python, case, tmp_path, rings):
    """Blocks of each step, by the line of the comment; an older Python counts no steps, and the trace says why."""
    where = watched(python, tmp_path, rings, case, LINES[case])
    found = query(where, "SELECT step, count(*) FROM allocations WHERE step IS NOT NULL GROUP BY step ORDER BY step")
    marks = query(where, "SELECT event, info FROM marks")
    if can_monitor(python):
        assert found == [[str(step), n] for step, n in enumerate(EXPECTED[case])]
        assert marks == []
    else:
        assert found == []
        assert marks == [["steps not counted", "--step-at needs Python 3.12 or later"]]


@pytest.mark.parametrize("place", ["train.py", "train.py:", ":41", "train.py:x", "train.py:41x"])
def test_no_place(place):
    done = subprocess.run([TIDEMARK, "run", "--step-at", place, "--", "true"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2
    assert re.search(r"--step-at: '.*' is not a file and a line, such as train.py:41", done.stderr)


LOOP = '''"""Reports a block a round, until there is a line on stdin."""
import ctypes
import select
import sys
import time

report = ctypes.CDLL(sys.argv[1]).report
report.argtypes, report.restype = [ctypes.c_void_p, ctypes.c_int64], None


def loop():
    while not select.select([sys.stdin], [], [], 0.005)[0]:
        report(4096, 64)
        report(4096, -64)


def tools():
    return [sys.monitoring.get_tool(number) for number in range(6)]


print("ready", flush=True)
loop()
end = time.monotonic() + 20  # it is undone when the interpreter's lock is free
while any(tools()) and time.monotonic() < end:
    time.sleep(0.01)
print(tools())
'''


@pytest.mark.parametrize("python", [python for python in pythons() if can_monitor(python)])
def test_attached(python, tmp_path, rings):
    """The function that has the line runs already. After detach nothing is monitored."""
    library, program, where = tmp_path / "libc10.so", tmp_path / "loop.py", tmp_path / "a.tmk"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, str(TARGET.parent / "fake_c10.c"),
                    "-Wl,-soname,libc10.so"], check=True)
    program.write_text(LOOP)
    env = environment(TIDEMARK_RING_DIR=str(rings))
    with subprocess.Popen([python, str(program), str(library)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env=env) as job:
        assert job.stdout.readline() == "ready\n"
        line = 1 + next(i for i, text in enumerate(LOOP.splitlines()) if "report(4096, 64)" in text)
        subprocess.run([TIDEMARK, "attach", "-o", str(where), "--step-at", f"loop.py:{line}", str(job.pid)], env=env,
                       check=True, capture_output=True, timeout=60)
        deadline = time.monotonic() + 60
        while query(where, "SELECT count(*) > 20 FROM allocations") != [["1"]]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        subprocess.run([TIDEMARK, "detach", str(job.pid)], env=env, check=True, capture_output=True, timeout=60)
        out = job.communicate("\n", timeout=60)[0]
    assert out.splitlines() == [str([None] * 6)]
    assert query(where, "SELECT DISTINCT n FROM (SELECT count(*) AS n FROM allocations WHERE step IS NOT NULL "
                        "GROUP BY step)") == [["1"]]
