# SPDX-License-Identifier: MIT
"""What keeps the blocks of a leak, and what Python says holds them: while a training runs and at its exit."""
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from torch_kit import PYTHON, REPO, TIDEMARK, environment, query

FOLDER = Path(__file__).parent / "holders"
#: By program: kept_by and held_by.
TRUTH = {
    "losses_in_function": ("graph", "list `history` in main(), losses_in_function.py:7"),
    "no_grad_metrics": ("container", "list `metrics` in no_grad_metrics.py"),
    "loss_after_step": ("graph", None),  # a sum, which is one tensor
    "detached_feature": ("container", "list `log` of Net"),
    "hook_keeps": ("hook", "list `acts` in hook_keeps.py"),
    "decorated_inference": ("container", "list `kept` in decorated_inference.py"),
    "custom_function": ("graph", "list `out` in custom_function.py"),
    "replay_buffer": ("container", "list `buffer` in replay_buffer.py"),
}


def watched(run, *words, status=0, **variables):
    env = environment(TIDEMARK_RING_DIR=str(run.parent), **variables)
    done = subprocess.run([TIDEMARK, "run", "-q", "-o", str(run), "--", PYTHON, *words], env=env, text=True,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def leaks(tmp_path_factory):
    """By program: what `leak` says of its process."""
    run = tmp_path_factory.mktemp("holders") / "a.tmk"
    watched(run, str(FOLDER / "run_all.py"), *[str(FOLDER / f"{name}.py") for name in TRUTH])
    found = {}
    for trace in run.glob("*.trace"):
        done = subprocess.run([TIDEMARK, "leak", str(trace), "--json"], capture_output=True, text=True, check=False)
        said = json.loads(done.stdout)["leaks"]
        if said:
            found[Path(said[0]["file"]).stem] = said
    return found


@pytest.mark.parametrize("program", TRUTH)
def test_what_keeps_them(leaks, program):
    said = leaks[program]
    assert {leak["kept_by"] for leak in said} == {TRUTH[program][0]}
    assert {leak["held_by"] for leak in said} == {TRUTH[program][1]}


@pytest.mark.parametrize("program", TRUTH)
def test_the_line(leaks, program):
    text = (FOLDER / f"{program}.py").read_text(encoding="utf-8").splitlines()
    assert text[leaks[program][0]["line"] - 1].endswith("  # owner")


def test_people_are_told(leaks, tmp_path):
    run = tmp_path / "a.tmk"
    watched(run, str(FOLDER / "custom_function.py"))
    told = subprocess.run([TIDEMARK, "leak", str(run)], capture_output=True, text=True, check=False).stdout
    assert "    held by    list `out` in custom_function.py\n" in told


SERVER = """
import sys, time, torch
from torch import nn

def serve():
    net, cache = nn.Linear(64, 64).eval(), {}
    for request in range(60):
        with torch.inference_mode():
            cache[request] = torch.randn(64, 64).tanh()
            net(torch.randn(8, 64))
    print("ready", flush=True)
    time.sleep(60)

serve()
"""


def test_a_process_that_runs_is_asked(tmp_path):
    """It has no optimizer, so that nobody asked before, and the dict is a function's."""
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    server = subprocess.Popen([TIDEMARK, "run", "-q", "-o", str(tmp_path / "a.tmk"), "--", PYTHON, str(program)],
                              env=environment(TIDEMARK_RING_DIR=str(tmp_path)), text=True, stdout=subprocess.PIPE)
    assert server.stdout.readline() == "ready\n"
    pid = int(next((tmp_path / "a.tmk").glob("*.trace")).name.split(".")[2])
    done = subprocess.run([TIDEMARK, "leak", str(pid), "--duration", "0", "--threshold", "0", "--json"],
                          env=environment(TIDEMARK_RING_DIR=str(tmp_path)), capture_output=True, text=True, check=False)
    os.kill(pid, signal.SIGKILL)
    server.communicate()
    said = json.loads(done.stdout)["leaks"]
    assert [(leak["kept_by"], leak["held_by"]) for leak in said] == [("container", "dict `cache` in serve(), server.py:5")]


# ---- it does no harm ----

PROGRAM = """
import atexit, gc, os, sys, weakref
import torch
from torch import nn

class Nosy:
    def __getattribute__(self, name):
        print("asked for", name)
        return object.__getattribute__(self, name)
    def __len__(self):
        print("asked for its length")
        return 0

class Things(list):
    def __iter__(self):
        print("gone through")
        return super().__iter__()

class Late:
    pass

kept, nosy, things = [], Nosy(), Things([torch.ones(7), torch.ones(7), torch.ones(7), torch.ones(7), torch.ones(7)])

def train():
    net = nn.Sequential(nn.Linear(64, 64))
    opt = torch.optim.SGD(net.parameters(), 0.01)
    before = None
    for step in range(70):
        late = Late()
        late.batch = torch.randn(64, 64)
        if before is not None and before() is not None:
            print("the batch before is still there in step", step)
        before = weakref.ref(late)
        net(late.batch).mean().backward()
        opt.step()
        kept.append(torch.ones(1000))
        if step == 40:
            inquire = [thing["inquire"] for thing in gc.get_objects() if type(thing) is dict and "name_holders" in thing]
            inquire[0](30)
            del inquire

train()
if os.fork() == 0:
    sys.exit(0)
os.wait()
atexit.register(print, "the end")
sys.exit(7)
"""


def test_it_does_no_harm(tmp_path):
    """No code of the program's is run, nothing lives longer, output and status are the program's."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = watched(tmp_path / "a.tmk", str(program), status=7)
    assert (done.stdout, done.stderr) == ("the end\n", "")
    asked = query(tmp_path / "a.tmk", "SELECT pid, step FROM events WHERE kind = 'holder' AND address = 0 ORDER BY 2")
    assert len({pid for pid, _ in asked}) == 1  # not the child
    steps = [step for _, step in asked if step not in ("15", "63")]  # then only if there was time
    assert len(steps) == 2 and steps[0] == "41" and int(steps[1]) >= 69
    assert ["list `kept` in program.py"] in query(tmp_path / "a.tmk", "SELECT DISTINCT name FROM events WHERE kind = 'holder'")


def test_it_can_be_switched_off(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    watched(tmp_path / "a.tmk", str(program), status=7, TIDEMARK_ASK="0")
    assert query(tmp_path / "a.tmk", "SELECT count(*) FROM events WHERE kind = 'holder' AND step <> 41") == [["0"]]


def test_the_second_reader_agrees(tmp_path):
    run = tmp_path / "a.tmk"
    watched(run, str(FOLDER / "hook_keeps.py"))
    for trace in run.glob("*.trace"):
        subprocess.run([PYTHON, str(REPO / "tests" / "format_reader.py"), "--check", str(trace)], check=True)


# Its folder is gone, a property fails when Python's objects are looked at, and the model's cache is an object whose
# class answers for every attribute.
ODD = """
import os, torch
os.rmdir(os.getcwd())

class Lazy:
    @property
    def __dict__(self):
        raise OSError("not to be asked")

class Cache:
    def __getattribute__(self, name):
        print("asked for", name)
        return object.__getattribute__(self, name)

class Net(torch.nn.Linear):
    def forward(self, x):
        self.cache = CACHE
        return super().forward(x)

CACHE, lazy, kept = Cache(), [Lazy()], []
net = Net(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.no_grad():
    for _ in range(4):
        net(torch.ones(2, 8))
for _ in range(20):
    kept.append(net(torch.ones(2, 8)).sum())
    kept[-1].backward()
    optimizer.step()
    optimizer.zero_grad()
print("done")
"""


def test_objects_that_do_not_like_to_be_asked(tmp_path):
    """They are asked what torch asks them without us, and nothing fails."""
    said = []
    for words in [], [TIDEMARK, "run", "-q", "-o", str(tmp_path / "a.tmk"), "--"]:
        gone = tmp_path / "gone"
        gone.mkdir()
        done = subprocess.run([*words, PYTHON, "-c", ODD], env=environment(TIDEMARK_RING_DIR=str(tmp_path)), text=True,
                              cwd=gone, capture_output=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        said.append(done.stdout)
    assert said[0] == said[1] and said[0].endswith("done\n")
