# SPDX-License-Identifier: MIT
"""The scripts that run by hand, those of tests/gpu and bench, start: an undefined name, a module
that has gone or an argument that has changed its name shows here, and not on a machine with a GPU.

Without a GPU a script that needs one says so in one line and ends with status 77. With the stand-in
for the driver (tests/fake_cuda) the checks go on until torch, which has no CUDA here, ends their
programs: then they report failures, as they would on a machine where something is wrong, and never
a traceback of their own. What needs no GPU runs.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "fault"))
from fault_kit import program  # noqa: E402

PYTHON = "/usr/bin/python3"  # the system's, which has torch
GPU, BENCH = REPO / "tests" / "gpu", REPO / "bench"
SKIPPED = 77

# Without a GPU: what these are given, which is enough for them to say that there is none.
NEED_GPU = {
    "tests/gpu/allocator_programs.py": ["streams"],
    "tests/gpu/card_cupy.py": [],
    "tests/gpu/card_jax.py": [],
    "tests/gpu/card_torch.py": [],
    "tests/gpu/checks.py": [],
    "tests/gpu/compiled.py": [],
    "tests/gpu/owned.py": ["halved"],
    "tests/gpu/profiled.py": [],
    "tests/gpu/with_stats.py": [],
    **{f"tests/gpu/ooms/{name}.py": [] for name in ("demand", "eater", "fragmentation", "leak", "other_process",
                                                    "outlier")},
    **{f"tests/gpu/check_{name}.py": ["TIDEMARK", "OUT"] for name in (
        "agent", "attach", "card", "diff", "explain", "lora", "monitors", "names", "owners", "requested", "seeds",
        "torch", "workers")},
    "tests/gpu/record_allocator.py": ["TIDEMARK", "OUT"],
    "tests/gpu/run": ["FOLDER", "OUT"],
    "bench/torch_steps.py": [],
}

# With the stand-in's GPU: what they are given, their status, and what one line begins with. FALSE
# is a program that fails at once, where the real one would run what CI runs anyway (check_frames,
# check_gradients) or too long.
WITH_STAND_IN = {
    "tests/gpu/check_agent.py": (["TIDEMARK", "OUT"], 1, "FAIL the job runs"),
    "tests/gpu/check_attach.py": (["TIDEMARK", "OUT"], 1, "check_attach: the job ended before it was ready"),
    "tests/gpu/check_card.py": (["TIDEMARK", "OUT", "encoder", "cupy"], 1, "FAIL encoder: runs"),
    "tests/gpu/check_diff.py": (["FALSE", "OUT"], 1, "FAIL diff: the trainings are recorded and compared"),
    "tests/gpu/check_explain.py": (["TIDEMARK", "OUT", "demand", "other_process"], 1, "FAIL demand: runs out"),
    "tests/gpu/check_frames.py": (["FALSE", "OUT"], 1, "FAIL stacks within calls of modules, all on"),
    "tests/gpu/check_gradients.py": (["FALSE", "OUT"], 1, "FAIL gradients.py  runs"),
    "tests/gpu/check_lora.py": (["TIDEMARK", "OUT"], SKIPPED, "SKIPPED: no GPU"),
    "tests/gpu/check_monitors.py": (["TIDEMARK", "OUT"], 1, "FAIL alarm: the job runs"),
    "tests/gpu/check_names.py": (["TIDEMARK", "OUT", "halved"], 1, "FAIL halved: runs"),
    "tests/gpu/check_owners.py": (["TIDEMARK", "OUT", "encoder"], 1, "FAIL encoder: runs"),
    "tests/gpu/check_pip.py": (["TIDEMARK", "OUT"], SKIPPED, "SKIPPED pip"),
    "tests/gpu/check_python.py": (["TIDEMARK", "OUT", "fork"], 0, "ok   fork, tidemark run: it ends well"),
    "tests/gpu/check_requested.py": (["TIDEMARK", "OUT"], SKIPPED, "SKIPPED the CUDA allocator"),
    "tests/gpu/check_seeds.py": (["TIDEMARK", "OUT"], SKIPPED, "SKIPPED: no GPU"),
    "tests/gpu/check_sweep.py": (["FALSE", "OUT"], 1, "FAIL sweep: it runs to the end"),
    "tests/gpu/check_torch.py": (["TIDEMARK", "OUT", "leak_graph"], 1, "leak_graph DIFFERS"),
    "tests/gpu/check_workers.py": (["TIDEMARK", "OUT"], SKIPPED, "SKIPPED 200 epochs, 8 workers"),
    "tests/gpu/run": (["FOLDER", "OUT", "nothing"], 2, "tests/gpu/run: 'nothing' is none of own"),
}

WITH_HELP = sorted(name for name in WITH_STAND_IN if name.endswith(".py")) + [
    "tests/gpu/allocator_programs.py", "tests/gpu/compiled.py", "tests/gpu/record_allocator.py", "bench/module_cost.py",
    "bench/package_cost.py", "bench/run", "bench/torch_steps.py"]

# What needs no GPU, as small as it gets, and what it prints.
WHOLE = {
    "bench/forecast_record.py": (["TIDEMARK", "OUT", "flat"], r"flat \d+ steps, \d+ MiB, quiet\n"),
    "bench/fleet_targets.py": (["LICENSE", "3"], r"\d+\n"),
    "bench/fleet_text.py": ([], r"(?s)# HELP .*tidemark_job_category_bytes\{.*\n# EOF\n"),
    "bench/make_snapshot.py": (["SNAPSHOT", "3000", "OUT/long.pickle"], r'\{"events": \d+, "times": \d+, "bytes": \d+\}\n'),
    "bench/torch_children.py": (["2"], r'\{"seconds": [\d.e-]+, "kept": 10\}\n'),
}
STEPS = "--device cpu --steps 16 --peer-steps 0 --layers 1 --dim 16 --batch 1 --seq 4".split()
# Run by those above, or whole by tests/torch/test_bench.py; fleet_load.py is a part of bench/run.
ELSEWHERE = {"bench/forecast_workloads.py", "bench/torch_cost.py", "tests/gpu/ooms/oom_kit.py", "bench/fleet_load.py",
             "bench/page_speed.py"}
BENCH_PARTS = ["event", "native", "size", "replay", "whatif", "report", "page", "sql", "memory", "children", "sampling", "top",
               "fleet", "forecast", "package", "model"]


class Starter:
    """Starts scripts, as many at once as there are processors."""

    def __init__(self, folder, pool):
        self.folder, self.pool, self.running = folder, pool, {}
        self.state = folder / "cards"
        self.state.write_text("driver 580.95.05\ncuda 13000\ndevice 4294967296 NVIDIA H200\n", encoding="utf-8")

    def out(self, name, kind):
        return self.folder / kind / name.replace("/", "_")

    def words(self, name, kind, arguments):
        meanings = {"TIDEMARK": program("tidemark"), "FOLDER": os.path.dirname(program("tidemark")),
                    "FALSE": "/bin/false", "OUT": str(self.out(name, kind)),
                    "SNAPSHOT": str(REPO / "tests" / "data" / "torch_snapshots" / "lora.pickle.gz")}
        return [re.sub("^[A-Z]+", lambda match: meanings.get(match[0], match[0]), word) for word in arguments]

    def environment(self, kind):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("TIDEMARK_", "FAKE_", "CUDA_")) and key != "PYTHONPATH"}
        env.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", TIDEMARK_RING_DIR=str(self.folder),
                   TIDEMARK_PROGRAM=program("tidemark"), PYTHONPATH=str(REPO / "python"),
                   PATH=f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}", COLUMNS="100")
        if kind == "stand-in":
            env.update(FAKE_CUDA_STATE=str(self.state),
                       LD_LIBRARY_PATH=os.path.dirname(program("tests/fake_cuda/libcuda.so.1")))
        else:
            env["CUDA_VISIBLE_DEVICES"] = ""  # nor is the GPU that this machine may have
        return env

    def run(self, name, kind, arguments, front=()):
        self.out(name, kind).mkdir(parents=True, exist_ok=True)
        is_python = name.endswith(".py") or name == "bench/run"
        command = [*front, *([PYTHON] if is_python else []), name, *self.words(name, kind, arguments)]
        return subprocess.run(command, cwd=REPO, env=self.environment(kind), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False)

    def start(self, name, kind, arguments, front=()):
        self.running[name, kind] = self.pool.submit(self.run, name, kind, arguments, front)

    def ended(self, name, kind):
        return self.running[name, kind].result()


@pytest.fixture(name="starter", scope="module")
def fixture_starter(tmp_path_factory, request):
    """All that the selected tests are about is started at once."""
    wanted = {item.callspec.params["name"] for item in request.session.items
              if item.path == request.path and hasattr(item, "callspec")}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        starter = Starter(tmp_path_factory.mktemp("scripts"), pool)
        for name in wanted & set(WITH_STAND_IN):
            starter.start(name, "stand-in", WITH_STAND_IN[name][0])
        for name in wanted & set(NEED_GPU):
            starter.start(name, "no GPU", NEED_GPU[name])
        for name in wanted & set(WHOLE):
            starter.start(name, "whole", WHOLE[name][0])
        for name in wanted & set(WITH_HELP):
            starter.start(name, "help", ["--help"])
        yield starter


def has_own_traceback(name, text):
    return f"{Path(name).name}\", line" in text


@pytest.mark.parametrize("name", sorted(NEED_GPU))
def test_without_gpu(starter, name):
    done = starter.ended(name, "no GPU")
    assert (done.returncode, done.stdout, done.stderr) == (SKIPPED, "SKIPPED: no GPU\n", "")


@pytest.mark.parametrize("name", sorted(WITH_STAND_IN))
def test_with_stand_in(starter, name):
    _, status, said = WITH_STAND_IN[name]
    done = starter.ended(name, "stand-in")
    assert not has_own_traceback(name, done.stderr), done.stderr
    assert done.returncode == status, done.stdout + done.stderr
    assert any(line.startswith(said) for line in (done.stdout + done.stderr).splitlines()), done.stdout + done.stderr
    saved = starter.out(name, "stand-in") / (Path(name).stem + ".json")
    if said.startswith(("FAIL", "ok")):  # by checks.py, which saves what it prints
        assert len(json.loads(saved.read_text(encoding="utf-8"))) > 0


@pytest.mark.parametrize("name", WITH_HELP)
def test_help(starter, name):
    done = starter.ended(name, "help")
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(name).name in done.stdout


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_whole(starter, name):
    done = starter.ended(name, "whole")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(WHOLE[name][1], done.stdout)


def test_steps(starter):
    """bench/torch_steps.py, watched, on the CPU."""
    trace = starter.folder / "steps.tmk"
    done = starter.run("bench/torch_steps.py", "whole", STEPS,
                       [program("tidemark"), "run", "--quiet", "-o", str(trace), "--"])
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["workload"], result["tidemark"]["n_steps"]) == ("encoder", 16)


def test_parts_of_bench(starter):
    """Each part of bench/run that needs a program begins, and says that it is not built."""
    folder = starter.folder / "build"
    folder.mkdir()
    (folder / "tidemark").symlink_to(program("tidemark"))
    done = starter.run("bench/run", "whole", ["--quick", "--only", ",".join(BENCH_PARTS), "--build", str(folder)])
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    assert re.findall(r"^bench: WRONG: (\w+): \S+ is not built", done.stderr, re.M) == BENCH_PARTS
    wrong = json.loads((folder / "bench.json").read_text(encoding="utf-8"))["wrong"]
    assert [row["part"] for row in wrong] == BENCH_PARTS


def test_how_scripts_ended(starter):
    """tests/gpu/run says of each script how it ended, keeps its log, and fails when one does."""
    folder, out = starter.folder / "false", starter.folder / "ended"
    folder.mkdir()
    (folder / "tidemark").symlink_to("/bin/false")
    done = starter.run("tests/gpu/run", "stand-in", [str(folder), str(out), "check_diff", "check_lora"])
    assert re.findall(r"^== .*", done.stdout, re.M) == [
        "== check_diff: FAILED with status 1", "== check_lora: nothing was checked"]
    assert done.returncode == 1, done.stdout + done.stderr
    log = (out / "check_diff.log").read_text(encoding="utf-8")
    assert log and all(f"check_diff: {line}" in done.stdout for line in log.splitlines())
    assert (out / "check_diff.json").is_file()
    assert "SKIPPED: no GPU" in (out / "check_lora.log").read_text(encoding="utf-8")


def test_every_script_is_run():
    """tests/gpu/run knows each script of checks."""
    text = (GPU / "run").read_text(encoding="utf-8")
    names = {path.stem for path in GPU.glob("check_*.py")}
    assert names == set(re.findall(r"check_(?!NAME)[a-z]+", text))


def test_all_are_here():
    """A new script gets a line in one of the tables."""
    found = {str(path.relative_to(REPO)) for folder in (GPU, GPU / "ooms", BENCH) for path in folder.glob("*.py")}
    found |= {"bench/run", "tests/gpu/run"}
    assert found == {*NEED_GPU, *WITH_STAND_IN, *WITH_HELP, *WHOLE, *ELSEWHERE}


def test_wrong_arguments(tmp_path):
    """With too few words there is the usage, and no traceback."""
    done = subprocess.run([PYTHON, "-B", str(GPU / "check_card.py"), str(tmp_path)], capture_output=True, text=True,
                          timeout=240, check=False)
    assert done.returncode == 2
    assert "tests/gpu/check_card.py TIDEMARK OUT" in done.stderr
    done = subprocess.run([str(GPU / "run")], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 2
    assert "tests/gpu/run FOLDER OUT" in done.stdout
