# SPDX-License-Identifier: MIT
"""Real trainings with Debian's torch: every block is recorded, with the line that asked for it, and
the training computes the same numbers.

The truth is counter.c, a library that is preloaded beside ours and writes down what torch says.
"""
import json
import subprocess
from pathlib import Path

import pytest
from torch_kit import LIBRARY, PYTHON, REPO, TIDEMARK, WORKLOADS, check, environment, frames, query

PROGRAMS = {
    "encoder": [str(WORKLOADS / "encoder.py"), "--device", "cpu", "--steps", "3", "--layers", "2",
                "--dim", "64", "--batch", "4", "--seq", "32"],
    "leak_graph": [str(WORKLOADS / "leak_graph.py"), "--device", "cpu", "--steps", "12"],
}
# The workload with `import tidemark` before it, and after torch.
IMPORT_FIRST = "import tidemark, runpy, sys; sys.argv = sys.argv[1:]; " \
               "runpy.run_path(sys.argv[0], run_name='__main__')"
IMPORT_LATE = "import torch, " + IMPORT_FIRST[len("import "):]


def plain(program):
    done = subprocess.run([PYTHON, *PROGRAMS[program]], env=environment(), capture_output=True,
                          text=True, timeout=120, check=True)
    return done.stdout


def watched(way, program, tmp_path, rings, counter):
    """Run it; (stdout, run, what the counter wrote as [(what, address, size)])."""
    run, log = tmp_path / "a.tmk", tmp_path / "counter.log"
    env = environment(TIDEMARK_RING_DIR=str(rings), COUNTER_FILE=str(log), LD_PRELOAD=counter,
                      PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=LIBRARY)
    if way == "run":
        command = [TIDEMARK, "run", "--quiet", "-o", str(run), "--", PYTHON, *PROGRAMS[program]]
    elif way == "run, counter first":
        env["LD_PRELOAD"] = f"{counter}:{LIBRARY}"
        command = [TIDEMARK, "run", "--quiet", "-o", str(run), "--", PYTHON, *PROGRAMS[program]]
    else:
        env["TIDEMARK_RUN"] = str(run)
        code = IMPORT_FIRST if way == "import first" else IMPORT_LATE
        command = [PYTHON, "-c", code, *PROGRAMS[program]]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    events = [line.split() for line in log.read_text().splitlines()]
    return done.stdout, run, [(e[0], int(e[1]), int(e[2]) if e[0] == "a" else 0) for e in events]


def recorded(run):
    """Blocks as the trace has them: what the counter would have written, in order of time."""
    rows = query(run, "SELECT kind, address, size FROM events")
    return [("a", int(address), int(size)) if kind == "allocate" else ("f", int(address), 0)
            for kind, address, size in rows if kind in ("allocate", "free")]


WAYS = ["run", "run, counter first", "import first", "import late"]


@pytest.mark.parametrize("program", list(PROGRAMS))
@pytest.mark.parametrize("way", WAYS)
def test_every_block(way, program, tmp_path, rings, counter):
    out, run, truth = watched(way, program, tmp_path, rings, counter)
    got = recorded(run)
    check(run)
    assert len(got) > 400
    assert got == truth
    live = {}
    for what, address, size in truth:
        if what == "a":
            live[address] = size
        else:
            live.pop(address, None)
    n_live, live_bytes = query(
        run, "SELECT count(*), coalesce(sum(size), 0) FROM allocations WHERE free_ns IS NULL")[0]
    assert (int(n_live), int(live_bytes)) == (len(live), sum(live.values()))
    assert out == plain(program), "the same numbers, to the last digit"


@pytest.mark.parametrize("program", list(PROGRAMS))
def test_every_block_has_a_line(program, tmp_path, rings, counter):
    """All of this is asked for by Python code on the main thread: the outermost frame is the
    script's."""
    _, run, _ = watched("run", program, tmp_path, rings, counter)
    n_without = query(run, "SELECT count(*) FROM allocations WHERE stack_id IS NULL")[0][0]
    assert n_without == "0"
    script = PROGRAMS[program][0]
    outermost = {stack[-1][0] for stack in frames(run, "1").values()}
    assert outermost <= {script, "", "<frozen importlib._bootstrap>"} | outermost_of_import(run)
    lines = {stack[-1][1] for stack in frames(run, "1").values() if stack[-1][0] == script}
    text = Path(script).read_text().splitlines()
    expected = {n for n, line in enumerate(text, 1) if "model(" in line or "loss.backward" in line}
    assert expected <= lines


def outermost_of_import(run):
    """Files in which a thread of the interpreter's own begins."""
    return {stack[-1][0] for stack in frames(run, "1").values() if "importlib" in stack[-1][0]}


SITES = '''
import torch, sys, traceback, json
sites = {}
def make(n):
    t = torch.empty(n, dtype=torch.uint8); sites[n] = [(f.filename, f.lineno, f.name) for f in traceback.extract_stack()[::-1]]
    return t
class Model:
    def forward(self, n):
        return [make(n + i) for i in range(2)]
def generate():
    yield make(100003)
    yield (
        make(100005)
    )
keep = Model().forward(100001) + list(generate()) + [(lambda: make(100007))()]
print(json.dumps(sites))
'''


def test_lines_are_tracebacks(tmp_path, rings):
    """At known call sites of real torch: file, line and function of every frame, exactly."""
    script, run = tmp_path / "sites.py", tmp_path / "a.tmk"
    script.write_text(SITES)
    done = subprocess.run([TIDEMARK, "run", "--quiet", "-o", str(run), "--", PYTHON, str(script)],
                          env=environment(TIDEMARK_RING_DIR=str(rings)), capture_output=True,
                          text=True, timeout=60, check=True)
    truth = json.loads(done.stdout)
    assert len(truth) == 5
    for size, stack in truth.items():
        (got,) = frames(run, f"size = {size}").values()
        assert [(file, line, function.rsplit(".", 1)[-1]) for file, line, function in got] == \
            [tuple(frame) for frame in stack]


PROFILED = '''
import torch
from torch.profiler import profile, ProfilerActivity
model = torch.nn.Linear(64, 64)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
    for _ in range(3):
        model(torch.ones(8, 64)).sum().backward()
memory = [e.nbytes() for e in p.profiler.kineto_results.events() if e.name() == "[memory]"]
print(len(memory), memory)
'''


@pytest.mark.parametrize("how", ["run", "import"])
def test_profiler_hears_the_same(how, tmp_path, rings):
    """torch.profiler's memory events are unchanged when both run, and each block is ours once."""
    script, run = tmp_path / "profiled.py", tmp_path / "a.tmk"
    script.write_text(PROFILED)
    alone = subprocess.run([PYTHON, str(script)], env=environment(), capture_output=True, text=True,
                           timeout=120, check=True).stdout
    env = environment(TIDEMARK_RING_DIR=str(rings), TIDEMARK_LIBRARY=LIBRARY)
    command = [TIDEMARK, "run", "--quiet", "-o", str(run), "--", PYTHON, str(script)]
    if how == "import":
        script.write_text("import torch, tidemark\n" + PROFILED)
        env.update(PYTHONPATH=str(REPO / "python"), TIDEMARK_RUN=str(run))
        command = [PYTHON, str(script)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True)
    assert int(alone.split()[0]) > 20
    assert done.stdout == alone
    check(run)
    assert query(run, "SELECT sum(free_ns IS NOT NULL) = count(*) FROM allocations") == [["1"]]


