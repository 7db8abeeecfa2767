# SPDX-License-Identifier: MIT
"""leak RUN on programs that leak and programs that do not: verdict, line, bytes a step, what keeps them.

What is true is said by the programs themselves (leaks/leak_truth.py), each of which is a process of one run."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from torch_kit import BUILD, PYTHON, REPO, TIDEMARK, WORKLOADS, environment, query

FOLDER = Path(__file__).parent / "leaks"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("all_leaks", "leak_truth"))
LEAKS = ("autograd_cycle", "closure", "eval_with_graph", "graph_kept", "hidden_state", "hooks_kept", "kv_cache",
         "list_of_tensors", "loader_held")
BY_STEP = tuple(name for name in LEAKS if name != "hidden_state")


def leak(target, *options):
    done = subprocess.run([TIDEMARK, "leak", str(target), "--json", *options], capture_output=True, text=True,
                          check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def truths(tmp_path_factory):
    """By program: its trace and what it says of itself."""
    folder = tmp_path_factory.mktemp("leaks")
    run, told = folder / "a.tmk", folder / "truth"
    programs = [str(FOLDER / (name + ".py")) for name in PROGRAMS] + [str(WORKLOADS / "leak_graph.py")]
    done = subprocess.run([TIDEMARK, "run", "-q", "-o", str(run), "--", PYTHON, str(FOLDER / "all_leaks.py"), *programs],
                          env=environment(LEAK_TRUTH=str(told), TIDEMARK_RING_DIR=str(folder)), capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in told.read_text(encoding="utf-8").splitlines():
        truth = json.loads(line)
        found[Path(truth["program"]).stem] = truth
    traces = {int(path.name.split(".")[2]): path for path in run.iterdir()}
    for truth in found.values():
        truth["trace"] = traces.pop(truth["pid"])
    assert len(traces) == 1  # of leak_graph.py, which knows nothing of this
    found["leak_graph"] = {"trace": traces.popitem()[1], "run": run}
    return found


def owner_of(program):
    lines = (FOLDER / (program + ".py")).read_text(encoding="utf-8").splitlines()
    return 1 + next(i for i, line in enumerate(lines) if line.endswith("# owner"))


def test_programs():
    assert len(PROGRAMS) == 20


@pytest.mark.parametrize("program", PROGRAMS)
def test_verdict(truths, program):
    truth = truths[program]
    status, told = leak(truth["trace"])
    assert told["verdict"] == truth["verdict"] == ("leak" if program in LEAKS else truth["verdict"])
    assert status == (0 if told["verdict"] == "clean" else 1)
    assert len(told["leaks"]) == (1 if program in LEAKS else 0)
    assert bool(told["falls_back"]) == truth["falls_back"]
    assert [doubt["reason"] for doubt in told["not_judged"]] == ([truth["not_judged"]] if truth["not_judged"] else [])


@pytest.mark.parametrize("program", BY_STEP)
def test_leak(truths, program):
    truth = truths[program]
    found = leak(truth["trace"])[1]["leaks"][0]
    assert Path(found["file"]).name == program + ".py"
    assert found["line"] == owner_of(program)
    assert found["bytes_per_step"] == pytest.approx(truth["bytes_per_step"], rel=0.01)
    assert found["kept_by"] == truth["kept_by"]
    assert found["first_step"] in (0, 1)
    assert 0.9 < found["confidence"] < 1
    assert any(f"{program}.py:{found['line']} " in frame for frame in found["stack"])
    assert sum(part["bytes_per_step"] for part in found["parts"]) == pytest.approx(found["bytes_per_step"])


def test_without_steps(truths):
    """Nothing is per step then. The graph is shown by what is largest in it, not by what a backward made last."""
    told = leak(truths["hidden_state"]["trace"])[1]
    (found,) = told["leaks"]
    assert (Path(found["file"]).name, found["kept_by"], told["steps"]) == ("hidden_state.py", "graph", None)
    assert found["line"] in (owner_of("hidden_state"), owner_of("hidden_state") + 2)  # or where the loss is made
    assert found["bytes_per_second"] > 0 and 0.5 <= found["confidence"] < 1
    for key in ("bytes_per_step", "blocks_per_step", "first_step", "steps_left"):
        assert found[key] is None
    assert (found["parts"][0]["category"], found["parts"][0]["bytes_per_step"]) == ("activation", None)
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(1)
    assert not any("backward" in frame for frame in found["stack"])


def test_few(truths):
    (doubt,) = leak(truths["few_evaluations"]["trace"])[1]["not_judged"]
    assert (Path(doubt["file"]).name, doubt["line"], doubt["rises"]) == ("few_evaluations.py", 12, 3)
    done = subprocess.run([TIDEMARK, "leak", str(truths["few_evaluations"]["trace"])], capture_output=True, text=True,
                          check=True)
    assert "3 steps kept something, too few to judge" in " ".join(done.stdout.split())


def test_leak_graph(truths):
    """The inputs of six layers of 64 rows of 256 floats each are saved; the sum itself is four bytes."""
    status, told = leak(truths["leak_graph"]["trace"])
    assert status == 1 and len(told["leaks"]) == 1
    found = told["leaks"][0]
    assert Path(found["file"]).name == "leak_graph.py"
    assert (found["line"], found["function"]) == (21, "<module>")
    assert found["bytes_per_step"] == 6 * 64 * 256 * 4 + 4
    assert found["blocks_per_step"] == 7
    assert (found["kept_by"], found["category"], found["first_step"]) == ("graph", "activation", 1)
    parts = [(part["category"], part["module"], part["bytes_per_step"]) for part in found["parts"]]
    assert parts == [("input", None, 65536), *[("activation", str(i), 65536) for i in range(5)], ("activation", None, 4)]


def test_run_of_many(truths):
    """A folder of traces: all leaks, the largest first, each with its process."""
    status, told = leak(truths["leak_graph"]["run"])
    assert status == 1
    rates = [found["bytes_per_second"] for found in told["leaks"]]  # one has no steps
    assert len(rates) == len(LEAKS) + 1 and rates == sorted(rates, reverse=True)
    pids = {truth["pid"] for program, truth in truths.items() if program in LEAKS}
    assert pids < {found["pid"] for found in told["leaks"]}


def test_threshold(truths):
    """leak_graph.py grows by 22 MiB in all."""
    status, told = leak(truths["leak_graph"]["trace"], "--threshold", "25")
    assert (status, told["verdict"], told["leaks"], told["below_threshold"]) == (0, "clean", [], 1)
    done = subprocess.run([TIDEMARK, "leak", str(truths["leak_graph"]["trace"]), "--devices", "cuda:0"], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tidemark: --devices: no process of this run used cuda:0; it used cpu\n"
    assert leak(truths["leak_graph"]["trace"], "--devices", "host")[0] == 1


def test_sql(truths):
    rows = query(truths["leak_graph"]["trace"], "SELECT line, bytes_per_step, blocks_per_step, kept_by, category, "
                                                "first_step, confidence > 0.9 FROM leaks")
    assert rows == [["21", "393220", "7.0", "graph", "activation", "1", "1"]]


def test_text(truths):
    done = subprocess.run([TIDEMARK, "leak", str(truths["leak_graph"]["trace"])], capture_output=True, text=True,
                          check=False, env={**os.environ, "NO_COLOR": "1"})
    lines = done.stdout.splitlines()
    assert lines[0] == "leak: memory kept after a step GROWS by 384.0 KiB at leak_graph.py:21 (60 steps)"
    assert lines[2].endswith("leak_graph.py:21 <module>")
    assert "detach()" in done.stdout
    assert all(len(line) <= 80 for line in lines if "leak_graph.py" not in line)


def test_docs(truths, tmp_path):
    """The commands of docs/leaks.md run as they stand there."""
    (tmp_path / "leak.tmk").symlink_to(truths["leak_graph"]["trace"])
    (tmp_path / "a.tmk").symlink_to(truths["bounded_cache"]["trace"])
    text = (REPO / "docs" / "leaks.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        done = subprocess.run(["sh", "-c", line.replace("cuda:0", "cpu")], cwd=tmp_path, capture_output=True, text=True, check=False,
                              env=environment(PATH=f"{BUILD}{os.pathsep}{os.environ['PATH']}"))
        assert done.returncode == 0 and done.stdout, done.stderr


def test_replaced_after_the_last_step(tmp_path, rings):
    """What the last step makes anew takes the place of what goes: that is not let go, however long the end takes."""
    script, trace = tmp_path / "cache.py", tmp_path / "a.tmk"
    script.write_text((FOLDER / "kv_cache.py").read_text(encoding="utf-8") + "import time\ntime.sleep(0.1)\n", encoding="utf-8")
    subprocess.run([TIDEMARK, "run", "-q", "-o", str(trace), "--", PYTHON, str(script)], check=True, env=environment(
        TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(FOLDER), LEAK_TRUTH=str(tmp_path / "truth")))
    status, told = leak(trace)
    assert (status, told["verdict"], told["not_judged"]) == (1, "leak", [])
    assert told["leaks"][0]["bytes_per_step"] == 32 * 1024 * 4
