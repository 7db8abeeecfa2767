# SPDX-License-Identifier: MIT
"""MemoryDebugger's report of a recorded run: all ranks, Python's objects, fragmentation; keys in every language."""
import json
import subprocess

from seeds_kit import run_python, seed_environment
from torch_kit import PYTHON, REPO, TIDEMARK

# Rank 1 keeps a MiB more with every step, and is alive while rank 0 asks.
OTHER_RANK = """
import sys
import tidemark, torch
kept = []
for step in range(20):
    tidemark.step()
    kept.append(torch.ones(1 << 20, dtype=torch.uint8))  # leaks
try:
    torch.empty(1 << 60, dtype=torch.uint8)
except RuntimeError:
    pass
print("ready", flush=True)
sys.stdin.read()
"""

RANKS = """
import json, os, subprocess, sys, time
open("other.py", "w").write(OTHER_RANK)
os.environ.update(RANK="1", WORLD_SIZE="2")
other = subprocess.Popen([sys.executable, "other.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
os.environ["RANK"] = "0"
import tidemark, torch
from tidemark import MemoryDebugger, _object_growth
_object_growth.GAP_S = 1e9  # none but those that are asked for

class Kept:
    pass

debugger = MemoryDebugger(threshold=100.0)
debugger.start_monitoring()
objects = []
for step in range(20):
    tidemark.step()
    torch.ones(1 << 20, dtype=torch.uint8)
    objects += [Kept() for _ in range(25)]
block = torch.ones(64 << 20, dtype=torch.uint8)
assert other.stdout.readline() == "ready\\n"
time.sleep(2)  # a report is that of the last sample, and samples come ten times a second
report = debugger.get_status_report()
other.communicate("")
debugger.stop_monitoring()
again = debugger.get_status_report()

assert report["run"] == os.environ["TIDEMARK_RUN"] and list(report)[:3] == ["timestamp", "devices", "summary"]
(leak,) = report["leak"]["leaks"]
assert (leak["rank"], leak["bytes_per_step"], leak["blocks_per_step"]) == (1, 1 << 20, 1)
assert leak["file"].endswith("other.py") and leak["line"] == 7
assert report["leak"]["verdict"] == "leak" and report["leak"]["reason"] is None
assert {(row["rank"], row["device"]) for row in report["oom"]["ranks"]} == {(0, "cpu"), (1, "cpu")}
assert [(row["rank"], row["requested"]) for row in report["oom"]["refused"]] == [(1, 1 << 60)]
assert report["oom"]["reason"] is None and report["fragmentation"]["ranks"] == []
assert report["fragmentation"]["reason"].startswith("no process of the run has memory on a GPU, and torch keeps no")
host = report["leak"]["host"]
assert host["pid"] == os.getpid() and host["rss"] - host["rss_before"] > 60 << 20
python = report["leak"]["python"]
(kept,) = [row for row in python["growing"] if row["type"] == "__main__.Kept"]
assert kept == {"type": "__main__.Kept", "before": 0, "after": 500, "verdict": None}
assert python["objects"] > python["objects_before"] and python["looks"] == 2 and python["verdict"] is None
assert python["verdict_reason"].startswith("too short to tell: 2 looks in ") and python["growing"][0] == kept
assert again["leak"]["python"]["looks"] == 3 and "process" not in again
json.dumps(report)
page = str(report).splitlines()
assert len(page) < 40 and max(map(len, page)) <= 100, page
assert page[0].startswith("memory status, 2") and "    lines that leak: 1" in page, page
assert any(line.endswith(f"other.py:7 <module>  +{leak['growth_bytes'] / 1048576:.1f} MB, 1.0 MB a step") for line in page), page
assert any(line.startswith("    Python objects: ") and "too short to tell: 2 looks" in line for line in page), page
assert page[-1] == f"  advice: tidemark leak {report['run']}" and f"{report}" == str(report) != repr(report)
"""

OBJECTS = """
_object_growth.GAP_S = 1.0
from tidemark._growth import steady_rise
from tidemark._object_growth import JUDGED_LOOKS, MOST_LOOKS, ObjectGrowth
for series, rise in [(range(0, 700, 100), 500), ([0, 100, 200], 0), (range(700, 0, -100), 0),
                     ([0, 0, 0, 900, 900, 900, 900], 0),          # one step up
                     ([0, 300, 600, 900, 900, 900, 900], 0),      # has ended
                     ([0, 900, 0, 900, 0, 900, 0, 900], 0),       # swings
                     ([0, 200, 100, 300, 200, 400, 300, 500], 300)]:  # swings, and its floor rises
    assert steady_rise(series) == rise, (list(series), steady_rise(series))

class Leaked:
    pass

growth, kept = ObjectGrowth(), []
for look in range(JUDGED_LOOKS):
    kept += [Leaked() for _ in range(50)]
    growth.look()
    swing = [Kept() for _ in range(1000 * (look == 3))]
report = growth.report()
verdicts = {row["type"]: row["verdict"] for row in report["growing"]}
assert verdicts["__main__.Leaked"] == "leak" and report["verdict"] == "leak"
assert [name for name, verdict in verdicts.items() if verdict == "leak"] == ["__main__.Leaked"], verdicts
from tidemark.memory_debugger import leaking_types
(issue,) = leaking_types(report)
assert (issue["type"], issue["object_type"], issue["before"], issue["after"]) == (
    "python_leak", "__main__.Leaked", 0, 50 * JUDGED_LOOKS) and leaking_types(None) == []
# An import takes the first looks; growth begins after it.
verdict = ObjectGrowth._verdict
assert verdict([0, 0, 0, 1000, 2500, 4000, 5500, 7000, 9850]) == "leak"
assert verdict([0, 0, 0, 0, 2500, 4000, 5500, 7000, 9850]) is None
assert verdict([0, 0, 0, 0, 0, 0, 0, 0, 9850]) == verdict([0, 0, 0, 900, 900, 900, 900, 900, 900]) == "clean"
late, grown = ObjectGrowth(), []
for look in range(10):
    grown += [Leaked() for _ in range(100 if look > 2 else 0)]
    late.look()
told = late.report()
assert (told["looks"], told["verdict"], told["growing"][0]["type"]) == (11, "leak", "__main__.Leaked"), told["growing"][:3]
late._more = late._more[:9]
told = late.report()
assert (told["verdict"], told["verdict_reason"]) == (
    None, "too short to tell: __main__.Leaked grows for fewer than 7 looks"), told
del grown

imports, names = ObjectGrowth(), ["made_by_import"]
with open("made_by_import.py", "w") as file:
    file.write("class Registered:\\n    pass\\nregistry = [Registered() for _ in range(3000)]\\nmade = {}\\n"
               "for number in range(500):\\n    exec(f'def function_{number}(): pass', made)\\n")
import made_by_import
mine = [Kept() for _ in range(300)]
imports.look()
grown = {row["type"]: row["after"] - row["before"] for row in imports.report()["growing"]}
assert grown["__main__.Kept"] == 300 and "made_by_import.Registered" not in grown and "function" not in grown, grown
made_by_import.registry.extend(made_by_import.Registered() for _ in range(7))
imports.look()
(row,) = [row for row in imports.report()["growing"] if row["type"] == "made_by_import.Registered"]
assert (row["before"], row["after"]) == (3000, 3007)

debugger._objects = growth
debugger.create_memory_checkpoint("with a leak")
assert "python_leak" in [found["type"] for found in debugger._check_memory_anomalies()]
debugger._objects = None
for look in range(100):
    growth._add({})
assert len(growth._more) <= MOST_LOOKS and growth._spacing == 64.0
asked = []
_object_growth.ObjectGrowth.look = lambda self: asked.append(1)
growth.look_if_due()  # it has just looked
assert asked == []
growth._last_s -= 1e6
growth.look_if_due()
assert asked == [1]
"""

FRAGMENTATION = """
from tidemark import _program, _run_answers
from tidemark.memory_debugger import BlockQuestion, fragmented
assert fragmented(_program.rows(TRACE, _run_answers.FRAGMENTATION), 1.0) == []  # at the end all is free
sql = _run_answers.FRAGMENTATION.replace(f"({_run_answers.END})", "")  # when that run was refused memory for it
rows = _program.rows(TRACE, sql)
told = _program.ask("frag", TRACE, "--json")
(row,) = rows
assert [row[key] for key in ("free", "releasable", "largest_allocatable")] == [
    told[key] for key in ("free", "releasable", "largest_allocatable")]
stuck_mb, largest_mb = (row["free"] - row["releasable"]) / 1048576, row["largest_allocatable"] / 1048576
assert stuck_mb > 4 * largest_mb, (stuck_mb, largest_mb)
(issue,) = fragmented(rows, stuck_mb - 1)
assert issue["type"] == "fragmentation" and issue["device_id"] == 0
assert (issue["stuck_mb"], issue["largest_mb"]) == (stuck_mb, largest_mb)
half = (row["free"] - row["releasable"]) // 2
assert fragmented(rows, stuck_mb) == [] == fragmented([{**row, "largest_allocatable": half + 1}], 1.0)
assert fragmented([{**row, "largest_allocatable": None}], 1.0) == []

def snapshot(reserved, allocated):
    return {"gpu_memory": [{"reserved": reserved, "allocated": allocated}]}
questions = []
_program.rows = lambda *question: questions.append(question) or rows
question = BlockQuestion()
assert question.rows(snapshot(200 << 20, 100 << 20), 100.0) == [] == question.rows(snapshot(None, None), 100.0)
assert questions == []  # nothing that could be fragmented: nothing is asked
assert question.rows(snapshot(300 << 20, 100 << 20), 100.0) == rows
assert questions == [(str(os.getpid()), _run_answers.FRAGMENTATION)]
question._due_s += 1000
assert question.rows(snapshot(300 << 20, 100 << 20), 100.0) == rows and len(questions) == 1
debugger._blocks = question
debugger.memory_history = [{"gpu_memory": [{"device_id": 0, "kind": "GPU", "allocated_mb": 100.0, "utilization": 1.0,
                                            "reserved": 300 << 20, "allocated": 100 << 20}]}]
assert [found["type"] for found in debugger._check_memory_anomalies(1.0)] == ["fragmentation"]
assert [found["type"] for found in debugger.issues] == ["fragmentation"]
"""

LOCALE = """
import contextlib, io, logging
from tidemark import *
logging.getLogger("tidemark").addHandler(logging.NullHandler())

def keys(thing):
    if isinstance(thing, dict):
        return {key: keys(value) for key, value in thing.items()}
    return [keys(value) for value in thing[:3]] if isinstance(thing, (list, tuple)) else type(thing).__name__

def shapes(language):
    os.environ["LC_ALL"] = language
    before = memory_snapshot("a")
    with memory_profiled_training() as stages:
        stages.profile_stage("one", torch.ones, 10)
        stage_report = stages.generate_training_report()
    profiler = GPUMemoryProfiler("logs", console=False)
    profiler.record_detailed("step", {"x": block}, {"total_params": 1}, "loss=1")
    summary = profiler.generate_summary_report()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        profiler.print_report()
    saved = json.load(open(profiler.save_to_json(), encoding="utf-8"))
    with MemoryProfiler(0.01) as monitor:
        status = monitor.generate_report()
    profiler.cleanup()
    found = keys([before, compare_snapshots(before, before), analyze_model(torch.nn.Linear(3, 3), "m"),
                  check_memory_status(1e-6), cleanup_memory(), stage_report, summary, saved, status])
    return found, text.getvalue()

english, chinese = shapes("C.UTF-8"), shapes("zh_CN.UTF-8")
assert english == chinese
assert english[1].startswith("==== GPU Memory Timeline =====\\n初始化               | Allocated: "), english[1]
"""


def test_report(tmp_path, rings):
    trace = REPO / "tests" / "data" / "ooms" / "fragmentation.trace"
    source = f"OTHER_RANK = {OTHER_RANK!r}\nTRACE = {str(trace)!r}\n" + RANKS + OBJECTS + FRAGMENTATION + LOCALE
    done = run_python(source, tmp_path, rings)
    assert "Traceback" not in done.stderr
    assert "[WARNING] cuda:0 is fragmented: " in done.stderr
    assert "[WARNING] Python objects grow steadily, a leak? __main__.Leaked: 0 -> 350" in done.stderr


QUICK_START = """
import re, sys
sys.path.insert(0, PACKAGE)
from tidemark import MemoryDebugger

debugger = MemoryDebugger()
debugger.start_monitoring()
import torch
model = torch.nn.Linear(64, 64)
for step in range(20):
    model(torch.ones(8, 64)).sum().backward()
debugger.stop_monitoring()
report = debugger.get_status_report()
print(f"监控摘要: {report}")
assert report["leak"]["verdict"] != "leak" and report["verdict"] is None and report["leaks"] == []
assert report["verdict_reason"].startswith("too short to tell: watched for ")
assert sum(row["after"] - row["before"] for row in report["leak"]["python"]["growing"]) < 2000
for device in report["devices"].values():
    oom = device["oom"]
    assert oom["risk_level"] not in ("low", None) or (oom["predicted_oom_time"], oom["recommended_actions"] or []) == (None, [])
    assert device["fragmentation"] is None and device["fragmentation_reason"]
"""


def test_quick_start(tmp_path, rings):
    """The seed's first example, with torch imported while it watches: a page, and no alarm about what starts."""
    done = run_python(f"PACKAGE = {str(REPO / 'python')!r}\n" + QUICK_START, tmp_path, rings)
    page = done.stdout.splitlines()
    assert page[0].startswith("监控摘要: memory status, 2") and len(page) < 30, done.stdout
    assert "LEAK" not in done.stdout and "\n  growth of devices: not known: too short to tell" in done.stdout


def test_nothing_allocated(tmp_path, rings):
    """The reason is what is so, and not how a run is made."""
    source = """
import tidemark
report = tidemark.MemoryDebugger().get_status_report()
nothing = "nothing is recorded yet: no process of the run has allocated a block"
assert [report[part]["reason"] for part in ("oom", "leak", "fragmentation")] == [nothing] * 3, report
assert f"    lines that leak: {nothing}" in str(report).splitlines()
"""
    run_python(source, tmp_path, rings)


def test_switched_off(tmp_path, rings):
    """TIDEMARK=0: the library is not loaded, no thread and no process is there, and the keys are."""
    source = """
import json, os, sys, threading
import tidemark
from tidemark import *
profiler = GPUMemoryProfiler("logs")
profiler.record("a")
with create_memory_debugger("logs", enable_real_time=True) as debugger, OOMDetector() as detector:
    debugger.start_real_time_monitoring(0.01)
    debugger.create_memory_checkpoint("a")
    assert debugger._check_memory_anomalies() == []
    assert debugger.generate_memory_report() == "TIDEMARK=0: nothing was watched\\n"
    assert debugger.generate_memory_report("file") == open("file", encoding="utf-8").read() != ""
    report = debugger.get_status_report()
    assert not debugger.is_monitoring and not detector.is_monitoring
with memory_profiled_training("logs") as stages:
    assert stages.profile_stage("one", max, 1, 2) == 2
    stages.generate_training_report("stages.json")
    assert json.load(open("stages.json", encoding="utf-8"))["reason"] == "TIDEMARK=0"
tidemark.step()
with tidemark.stage("forward"):
    tidemark.mark("a", "b")
assert tidemark.watch() is None and not tidemark.is_watched() and tidemark.run is None
assert "libtidemark" not in open("/proc/self/maps").read() and "torch" not in sys.modules
assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
assert open(f"/proc/self/task/{os.getpid()}/children").read() == ""
print(json.dumps(report))
"""
    done = run_python(source, tmp_path, rings, TIDEMARK="0", TIDEMARK_RUN="")
    report = json.loads(done.stdout)
    assert done.stderr == ""  # files are there that were named, and no others
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "script.py", "stages.json"]
    assert report["devices"] == {} and report["leak"]["verdict"] is None
    assert {report[part]["reason"] for part in ("oom", "leak", "fragmentation")} == {"TIDEMARK=0"}


def test_after_attach(tmp_path, rings):
    """The run folder is known then too: the program is asked whose it is."""
    source = """
import sys
import torch
print("ready", flush=True)
sys.stdin.readline()
import tidemark
kept = []
for step in range(20):
    tidemark.step()
    kept.append(torch.ones(1 << 20, dtype=torch.uint8))
report = tidemark.MemoryDebugger().get_status_report()
print(tidemark.run, report["run"], [leak["bytes_per_step"] for leak in report["leak"]["leaks"]], report["devices"])
"""
    (tmp_path / "script.py").write_text(source, encoding="utf-8")
    env = seed_environment(tmp_path, rings)
    del env["TIDEMARK_RUN"]
    run = tmp_path / "attached.tmk"
    with subprocess.Popen([PYTHON, "script.py"], cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as job:
        assert job.stdout.readline() == "ready\n"
        subprocess.run([TIDEMARK, "attach", str(job.pid), "-o", str(run)], env=env, check=True, capture_output=True,
                       timeout=60)
        assert job.communicate("go\n", timeout=60)[0] == f"None {run} [1048576] {{}}\n"
