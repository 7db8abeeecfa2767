# SPDX-License-Identifier: MIT
"""Hooks that leave no trace in the program: objects, references, files; options that leave them out;
and what the script says itself."""
import subprocess

import pytest
from owners_kit import NAMED, blocks_of, check_same, rows_of, run, script, watched
from torch_kit import PYTHON, REPO, TIDEMARK, check, environment, query

HERE_PYTHON = str(REPO / "python")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory, counter):
    return watched(tmp_path_factory.mktemp("untouched"), counter, script("untouched.py"), PYTHONWARNINGS="ignore")


def test_untouched(untouched):
    """No hook, attribute, reference or byte in a pickle more; objects die at the same moment. The
    script prints what it finds."""
    alone = run([PYTHON, *script("untouched.py")], environment(PYTHONWARNINGS="ignore")).stdout
    out, where, _ = untouched
    assert out == alone
    assert alone.splitlines()[-3:-1] == ["[True, True, False, False]", "[True, True, True, True]"]
    check(where)
    assert int(query(where, "SELECT count(*) FROM ranges WHERE kind = 'module'")[0][0]) > 50


def test_names_of_modules_that_come_and_go(untouched):
    """Fifty modules one after the other share a name; none is taken for one that is gone."""
    names = [row[0] for row in query(untouched[1], "SELECT name FROM ranges WHERE kind = 'module' AND stage = 'forward' "
                                            "ORDER BY start_ns")]
    assert len(set(names[-50:])) == 1 and "Linear" in names[-1]


@pytest.fixture(scope="module")
def plain(tmp_path_factory, counter):
    return watched(tmp_path_factory.mktemp("plain"), counter, script("mlp.py"))


def test_without_modules(tmp_path, counter, plain):
    """Steps, stages and categories stay; no module has a name."""
    out, where, events = watched(tmp_path, counter, script("mlp.py"), "--no-modules")
    assert out == plain[0]
    check_same(events, plain[2])
    check(where)
    assert query(where, "SELECT count(*) FROM ranges WHERE kind = 'module'") == [["0"]]
    assert rows_of(where) == []
    found, whole = blocks_of(where), blocks_of(plain[1])
    check_same([(b.size, b.step, b.stage, b.category) for b in found],
               [(b.size, b.step, b.stage, b.category) for b in whole])
    assert {b.module for b in found if b.category not in NAMED} == {""}


WORKER = """
import ctypes, threading, torch
inner = torch.nn.Linear(4, 4)
called = [0]

def work():
    ctypes.CDLL(None).prctl(15, b"pt_autograd_0", 0, 0, 0)
    with torch.no_grad():
        inner(x)
    called[0] += 1

class Hop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return gradient

torch.set_num_threads(1)
x, model = torch.ones(2, 4), torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    Hop.apply(model(x)).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
assert called == [5]
"""


def test_worker_calls_a_module_first(tmp_path):
    """As checkpointing does: what a thread of autograd's calls before it has made a block is no second training."""
    where = tmp_path / "a.tmk"
    subprocess.run([TIDEMARK, "run", "--quiet", "--no-modules", "-o", str(where), "--", PYTHON, "-c", WORKER], check=True)
    check(where)
    assert query(where, "SELECT step, group_concat(tensor) FROM (SELECT step, tensor FROM allocations WHERE category = "
                        "'gradient' AND tensor != '' ORDER BY step, tensor) GROUP BY step") == [
        [str(step), "bias,weight"] for step in range(5)]
    assert query(where, "SELECT DISTINCT step FROM steps WHERE step >= 0 ORDER BY step") == [[str(n)] for n in range(5)]
    assert query(where, "SELECT name, count(*) FROM ranges WHERE kind = 'stage' AND thread != pid GROUP BY 1") == [
        ["backward", "5"], ["eval", "5"]]


def test_without_categories(tmp_path, counter, plain):
    """No tag and no parameter; steps, stages and modules stay."""
    out, where, events = watched(tmp_path, counter, script("mlp.py"), "--no-categories")
    assert out == plain[0]
    check_same(events, plain[2])
    check(where)
    assert query(where, "SELECT count(*) FROM events WHERE kind = 'tag'") == [["0"]]
    assert query(where, "SELECT count(*) FROM parameters") == [["0"]]
    found, whole = blocks_of(where), blocks_of(plain[1])
    check_same([(b.size, b.step, b.stage) for b in found], [(b.size, b.step, b.stage) for b in whole])
    check_same([b.module for b, known in zip(found, whole) if known.category not in NAMED],
               [known.module for known in whole if known.category not in NAMED])
    check_same(rows_of(where), rows_of(plain[1]))


def test_without_both(tmp_path, counter, plain):
    out, where, events = watched(tmp_path, counter, script("mlp.py"), "--no-modules", "--no-categories")
    assert out == plain[0]
    check_same(events, plain[2])
    assert query(where, "SELECT count(*) FROM events WHERE kind = 'tag'") == [["0"]]
    assert query(where, "SELECT count(*) FROM ranges WHERE kind = 'module'") == [["0"]]


def test_threads(tmp_path):
    """Whoever holds a tensor that torch has given up makes it print warnings: we hold none. A matter of
    moments, so it is tried some times."""
    for i in range(4):
        done = subprocess.run([TIDEMARK, "run", "--quiet", "-o", str(tmp_path / f"{i}.tmk"), "--", PYTHON,
                               *script("threads.py")], env=environment(), capture_output=True, text=True,
                              timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
        check(tmp_path / f"{i}.tmk")


def run_both(tmp_path, name, **more):
    """What a script prints alone, and watched; must be the same. Returns the run."""
    env = environment(PYTHONWARNINGS="ignore", **more)
    alone = run([PYTHON, *script(name)], env)
    done = subprocess.run([TIDEMARK, "run", "--quiet", "-o", str(tmp_path / "a.tmk"), "--", PYTHON, *script(name)],
                          env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, alone.stdout, "")
    check(tmp_path / "a.tmk")
    return tmp_path / "a.tmk"


def test_trainers_side_by_side(tmp_path):
    """Torch breaks when a thread looks at the gradients of another's model."""
    where = run_both(tmp_path, "side_by_side.py")
    counts = dict(query(where, "SELECT name, count(*) FROM ranges WHERE kind = 'stage' GROUP BY name"))
    assert int(counts["backward"]) > 100
    assert abs(int(counts["backward"]) - int(counts["optimizer"])) <= 2  # when it began, and at the end


def test_by_hand(tmp_path):
    """torch.jit.trace records nothing of ours; each forward after a backward is a step, as each of the
    trace's before."""
    where = run_both(tmp_path, "by_hand.py")
    counts = query(where, "SELECT step, count(*) FROM ranges WHERE name = 'backward' GROUP BY step ORDER BY step")
    first = int(counts[0][0])
    assert counts == [[str(step), "1"] for step in range(first, first + 6)]
    assert query(where, "SELECT name, shape FROM parameters ORDER BY block_id") == \
        [["0.weight", "[4, 4]"], ["0.bias", "[4]"], ["2.weight", "[2, 4]"], ["2.bias", "[2]"]]


def test_by_turns(tmp_path):
    """An optimizer that is never used is not waited for for ever, and is again when it is used. Where that
    changes, a step may be cut late. Of a class that comes late the first update is not seen."""
    where = run_both(tmp_path, "by_turns.py")
    counts = [int(n) for _, n in query(where, "SELECT step, sum(name = 'optimizer') FROM ranges WHERE kind = 'stage' "
                                              "GROUP BY step ORDER BY step")]
    assert sum(counts) == 14 and max(counts) == 1


def test_interrupted(tmp_path):
    """What a signal's handler raises reaches the program, wherever we are."""
    run_both(tmp_path, "interrupted.py")


@pytest.mark.parametrize("way", ["run", "alone"])
def test_what_the_script_says(way, tmp_path):
    """tidemark.step() and stage() count in place of what would be found; watch() gives names to what
    no module call shows."""
    where = tmp_path / "a.tmk"
    env = environment(PYTHONPATH=HERE_PYTHON)
    command = [PYTHON, *script("named.py")]
    if way == "run":
        command = [TIDEMARK, "run", "--quiet", "-o", str(where), "--", *command]
    else:
        env["TIDEMARK_RUN"] = str(where)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    check(where)
    assert query(where, "SELECT DISTINCT step FROM steps WHERE step IS NOT NULL ORDER BY step") == \
        [["10"], ["20"], ["30"]]
    assert query(where, "SELECT step, name FROM ranges WHERE kind = 'stage' ORDER BY start_ns") == \
        [[str(step), name] for step in (10, 20, 30) for name in ("data", "sample", "backward", "optimizer")]
    weight, bias = 33 * 17 * 4, 17 * 4
    assert query(where, "SELECT tensor, size FROM allocations WHERE category = 'parameter' ORDER BY id") == \
        [["weight", str(weight)], ["bias", str(bias)]]
    assert query(where, "SELECT tensor, size FROM allocations WHERE category = 'optimizer_state' AND size > 4 "
                        "ORDER BY id") == \
        [[f"{name}.{state}", str(size)] for name, size in (("weight", weight), ("bias", bias))
         for state in ("exp_avg", "exp_avg_sq")]
    assert query(where, "SELECT tensor, step, stage, size FROM allocations WHERE category = 'gradient' AND "
                        "tensor IN ('weight', 'bias') ORDER BY step, tensor") == \
        [[name, str(step), "backward", str(size)] for step in (10, 20, 30)
         for name, size in (("bias", bias), ("weight", weight))]
    assert query(where, "SELECT step, stage, category IN ('input', 'other') FROM allocations WHERE "
                        "size = 19 * 33 * 4 ORDER BY step") == [[str(step), "data", "1"] for step in (10, 20, 30)]


def test_stage_by_the_stack(tmp_path, counter):
    """Outside forward, backward and optimizer the Python stack says what is being done."""
    _, where, _ = watched(tmp_path, counter, script("loader.py"))
    stages = {}
    for size, stage in query(where, "SELECT size, stage FROM allocations"):
        stages.setdefault(int(size), set()).add(stage)
    assert stages[21 * 23 * 4] == {"model_load"}, "as float32, by nn.Linear"
    assert stages[21 * 23 * 8] >= {"model_load"}, "as float64, by Module.double()"
    assert stages[54321] == {"other"}
    batches = query(where, "SELECT stage, count(*) FROM allocations WHERE size = 4 * 21 * 4 GROUP BY stage")
    assert batches == [["data", "3"]]
    assert query(where, "SELECT DISTINCT category FROM allocations WHERE size = 4 * 21 * 4") == [["input"]]
