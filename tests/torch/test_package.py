# SPDX-License-Identifier: MIT
"""`import tidemark`: under run, after attach, alone; what it says reaches the trace."""
import re
import subprocess

import pytest
from torch_kit import LIBRARY, PYTHON, REPO, TIDEMARK, check, environment, query

SCRIPT = """
import tidemark, torch
assert tidemark.is_watched() is WATCHED
model = torch.nn.Linear(1000, 10)
optimizer = torch.optim.Adam(model.parameters())
assert tidemark.watch(model, optimizer) is model
for step in range(3):
    tidemark.step()
    with tidemark.stage("forward"):
        loss = model(torch.ones(77, 1000)).sum()
    with tidemark.stage("backward"):
        loss.backward()
    optimizer.step()
    tidemark.watch(model, optimizer)
tidemark.mark("saved", "checkpoint 3")

class Unspeakable:
    def __str__(self):
        raise ValueError("no words")

tidemark.mark("\\ud800", Unspeakable())  # neither may end the training

@tidemark.stage("eval")
def evaluate():
    return torch.empty(70001, dtype=torch.uint8)

kept = evaluate()
tidemark.step(100)
more = torch.empty(70003, dtype=torch.uint8)
"""


def run_script(tmp_path, rings, way):
    script, run = tmp_path / "script.py", tmp_path / "a.tmk"
    script.write_text(SCRIPT.replace("WATCHED", "False" if way == "off" else "True"))
    env = environment(TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(REPO / "python"),
                      TIDEMARK_LIBRARY=LIBRARY)
    command = [PYTHON, str(script)]
    if way == "run":
        command = [TIDEMARK, "run", "--quiet", "-o", str(run), "--", *command]
    elif way == "named":
        env["TIDEMARK_RUN"] = str(run)
    elif way == "off":
        env["TIDEMARK_OFF"] = "1"
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return run


def look(run):
    check(run)
    assert query(run, "SELECT DISTINCT step FROM steps WHERE step IS NOT NULL ORDER BY step") == \
        [["0"], ["1"], ["2"], ["100"]]
    assert query(run, "SELECT step, stage FROM allocations WHERE size IN (70001, 70003) ORDER BY size") \
        == [["2", "eval"], ["100", "other"]]
    assert query(run, "SELECT event, info FROM marks WHERE event = 'saved'") == [["saved", "checkpoint 3"]]
    assert query(run, "SELECT event, info FROM marks WHERE info LIKE '<%'") == [["\\ud800", "<Unspeakable>"]]
    assert query(run, "SELECT tensor, category, size FROM allocations WHERE category IN "
                      "('parameter', 'optimizer_state') AND size >= 40000 ORDER BY tensor") == [
        ["weight", "parameter", "40000"],
        ["weight.exp_avg", "optimizer_state", "40000"],
        ["weight.exp_avg_sq", "optimizer_state", "40000"]]


def test_under_run(tmp_path, rings):
    look(run_script(tmp_path, rings, "run"))


def test_alone_with_a_name(tmp_path, rings):
    look(run_script(tmp_path, rings, "named"))


def test_alone(tmp_path, rings):
    run_script(tmp_path, rings, "alone")
    (run,) = tmp_path.glob("script.py-*.tmk")
    look(run)


@pytest.mark.parametrize("command, name", [
    (["-m", "parts.early", "-m", "other"], "parts.early"),  # the package imports tidemark
    (["-Bmparts.early"], "parts.early"),
    (["-m", "late"], "late"),                               # the module does
    (["-m", "whole"], "whole"),                             # its __main__ does
    (["late.py", "-m", "other"], "late.py"),
    (["whole"], "whole"),
    (["-c", "import late", "-m", "other"], "python"),
])
def test_name_of_a_run(tmp_path, rings, command, name):
    for path, text in {"parts/__init__.py": "import tidemark", "parts/early.py": "import tidemark",
                       "late.py": "import tidemark", "whole/__main__.py": "import tidemark"}.items():
        text += "\ntidemark.step()"  # what has nothing to record leaves nothing
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    env = environment(TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=LIBRARY)
    subprocess.run([PYTHON, *command], env=env, cwd=tmp_path, timeout=60, check=True)
    (run,) = tmp_path.glob("*.tmk")
    assert re.fullmatch(re.escape(name) + r"-\d{8}-\d{6}[.]tmk", run.name)


def test_alone_with_settings(tmp_path, rings):
    """The same variables as under `tidemark run`."""
    env = environment(TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(REPO / "python"), TIDEMARK_NO_STACKS="1",
                      TIDEMARK_LIBRARY=LIBRARY)
    subprocess.run([PYTHON, "-c", "import tidemark, torch; torch.ones(1000)"], env=env, cwd=tmp_path,
                   timeout=60, check=True)
    (run,) = tmp_path.glob("*.tmk")
    assert query(run, "SELECT count(*) > 0, count(stack_id) FROM allocations") == [["1", "0"]]


def test_off(tmp_path, rings):
    run_script(tmp_path, rings, "off")
    assert list(tmp_path.glob("*.tmk")) == []


def test_rank_left_out(tmp_path, rings):
    """It says so, and the program goes on."""
    env = environment(TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=LIBRARY,
                      TIDEMARK_RANKS="0,8", RANK="3", WORLD_SIZE="16")
    done = subprocess.run([PYTHON, "-c", "import tidemark; print(tidemark.is_watched())"], env=env,
                          cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n")
    assert "this rank is not among TIDEMARK_RANKS" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_library(tmp_path):
    """It warns, and the program goes on."""
    done = subprocess.run([PYTHON, "-c", "import tidemark; tidemark.step(); print(tidemark.is_watched())"],
                          env=environment(PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY="/dev/null"),
                          cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stdout == "False\n"
    assert "tidemark does not record" in done.stderr


def test_library_of_another_version(tmp_path):
    """Preloaded, so that it records: it is not said that it does not."""
    library = tmp_path / "libtidemark.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), "-x", "c", "-"], input="int tidemark_attach(void) { return 0; }",
                   text=True, check=True)
    done = subprocess.run([PYTHON, "-c", "import tidemark; tidemark.step(); print(tidemark.is_watched())"],
                          env=environment(PYTHONPATH=str(REPO / "python"), LD_PRELOAD=str(library)), cwd=tmp_path,
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n")
    assert "tidemark: the libtidemark.so that is in this process already is of another version than this package" in done.stderr
    assert "does not record" not in done.stderr


def test_the_program(tmp_path):
    """It is no program to be watched."""
    env = environment(PYTHONPATH=str(REPO / "python"), TIDEMARK_PROGRAM=TIDEMARK, TIDEMARK_LIBRARY=LIBRARY)
    done = subprocess.run([PYTHON, "-m", "tidemark", "--version"], capture_output=True, text=True, env=env,
                          cwd=tmp_path, timeout=60, check=True)
    assert list(tmp_path.iterdir()) == []
    assert done.stdout == subprocess.run([TIDEMARK, "--version"], capture_output=True, text=True,
                                         check=True).stdout


def test_odd_tensors_and_settings(tmp_path, rings):
    """What has no memory of its own is passed over; a size may have a unit."""
    code = """
import tidemark, torch
class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lazy = torch.nn.LazyLinear(3)
        self.register_buffer("sparse", torch.eye(3).to_sparse())
tidemark.watch(Odd())
print(tidemark.is_watched())
"""
    env = environment(TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(REPO / "python"), TIDEMARK_MAX_SIZE="16MiB",
                      TIDEMARK_LIBRARY=LIBRARY, TIDEMARK_RUN=str(tmp_path / "a.tmk"), PYTHONWARNINGS="ignore")
    done = subprocess.run([PYTHON, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    (trace,) = (tmp_path / "a.tmk").glob("*.trace")
    assert b"max_size=16777216\n" in trace.read_bytes()[:4096]
