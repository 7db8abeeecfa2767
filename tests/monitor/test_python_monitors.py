# SPDX-License-Identifier: MIT
"""MemoryProfiler, OOMDetector, MemoryDebugger: their seed's examples, on cards that are made up."""
import json
import os
import re
import subprocess
import time

from monitor_kit import BUILD, GIB, LIMIT_S, REPO, TIDEMARK

FULL = [f"process 41 {2 * GIB}", f"process 42 {12 * GIB}"]
BLOCK = re.compile(r"^```python\n(.*?)^```\s*$", re.S | re.M)
SEED = REPO / "tests" / "data" / "seeds" / "s1.md"

UNTIL = """
import json, os, sys, threading, time
def until(is_so):
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)
GIB = 1 << 30
"""

CHECKS = [
    """
device = report["devices"]["0"]
assert device["current_usage"]["allocated"] == 14 * GIB and device["current_usage"]["total"] == 16 * GIB
assert device["current_usage"]["free"] == 2 * GIB and device["current_usage"]["utilization_percent"] == 87.5
assert device["statistics"]["max_utilization"] == 87.5 and device["statistics"]["samples_count"] >= 1
assert report["summary"] == {"total_devices": 2, "total_memory_gb": 32.0, "overall_utilization": 43.75}
assert device["oom"]["over_threshold"] is True and device["fragmentation"] is None and report["leaks"] == []
for part in ("oom", "leak", "fragmentation"):
    assert report[part]["reason"].startswith("this process is not recorded")
assert report["run"] is None and report["leak"]["host"] is not None
assert not debugger.is_monitoring
debugger.stop_monitoring()
""",
    """
written = json.load(open("memory_report.json", encoding="utf-8"))
assert written == profiler.generate_report() and written["devices"]["1"]["current_usage"]["allocated"] == 0
until(lambda: detector.warnings)
detector.stop_monitoring()
""",
    """
until(lambda: detector.warnings)
detector.stop_monitoring()
(prediction,) = detector.warnings
assert (prediction.device_id, prediction.risk_level.value, prediction.current_usage) == (0, "critical", 87.5)
assert (prediction.predicted_oom_time, prediction.confidence, prediction.trend_slope) == (None, None, None)
assert len(prediction.recommended_actions) == 2
""",
    """
logging.disable(logging.CRITICAL)
until(lambda: debugger.warnings)
running = debugger.get_status_report()  # while it runs
assert running["devices"]["0"]["statistics"]["samples_count"] >= 1
debugger.stop_monitoring()
logging.disable(logging.NOTSET)
""",
]

MORE = """
from tidemark import OOMPrediction, RiskLevel
seen, calls = [], []
def strategy(samples):
    seen.append((threading.current_thread().name, [s.allocated for s in samples], samples[-1].device_id))
    if samples[-1].device_id == 1 and len(samples) == 3:
        return OOMPrediction(1, RiskLevel.CRITICAL, 45.2, 0.82, 99.5, 1e9, ["stop"])
def wrong(prediction):
    raise KeyError("mine")
reports = []
with OOMDetector(99, wrong, sampling_interval=0.01, strategy=strategy) as detector:
    detector.add_callback(lambda prediction: reports.append(detector._report()))  # on the thread that reads
    detector.add_callback(calls.append)
    until(lambda: calls)
    pid = detector._follower._process.pid
    child = os.fork()
    if child == 0:
        detector.stop_monitoring()  # the parent's goes on
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    n = len(seen)
    until(lambda: len(seen) > n + 2)
assert calls[0].predicted_oom_time == 45.2 and len(calls) == 1
assert reports[0]["devices"]["0"]["current_usage"]["allocated"] == 14 * GIB

def levels(*values):
    left = iter(values)
    return lambda samples: OOMPrediction(0, next(left, RiskLevel.LOW), None, None, None, None, [])
H, C, M = RiskLevel.HIGH, RiskLevel.CRITICAL, RiskLevel.MEDIUM
detector = OOMDetector(99, devices=[0], sampling_interval=0.01, strategy=levels(M, H, H, C, H, M, H))
with detector:  # each time that it gets higher, not each time that it is
    until(lambda: len(detector.warnings) == 3 and detector._said.get(0) is RiskLevel.LOW)
assert [prediction.risk_level for prediction in detector.warnings] == [H, C, H]
assert seen[0] == ("tidemark-monitor", [14 * GIB], 0)
assert not os.path.exists(f"/proc/{pid}")

class Device:  # as torch.device
    def __str__(self):
        return "cuda:1"
for devices, names in (([Device()], ["1"]), (["cuda:0", 1], ["0", "1"])):
    with MemoryProfiler(sampling_interval=0.01, devices=devices) as profiler:
        assert list(profiler.generate_report()["devices"]) == names

stopped = OOMDetector(1, lambda prediction: stopped.stop_monitoring(), sampling_interval=0.01, devices=[0])
from tidemark import _follower
started = _follower.threading.Thread.start
def start_and_wait(thread):  # until the callback was called, which may be that soon
    started(thread)
    until(lambda: stopped.warnings)
_follower.threading.Thread.start = start_and_wait
stopped.start_monitoring()
_follower.threading.Thread.start = started
until(lambda: not stopped.is_monitoring and stopped._last)  # by the callback; its last report is there
assert stopped._last["devices"]["0"]["current_usage"]["allocated"] == 14 * GIB

for mistake in (lambda: OOMDetector(threshold=0), lambda: MemoryProfiler(sampling_interval=0)):
    try:
        mistake()
        raise SystemExit("no error")
    except ValueError:
        pass
only = MemoryProfiler(devices=[1])
with only:
    assert list(only.generate_report()["devices"]) == ["1"]
import gc
lost = OOMDetector()
lost.start_monitoring()
process = lost._follower._process
del lost
gc.collect()
until(lambda: process.poll() is not None)  # its thread may just have been looking at a sample, and ends it then
left_running = MemoryDebugger()
left_running.start_monitoring()
assert "torch" not in sys.modules
"""


def python(machine, source, **more):
    script = machine.folder / "script.py"
    script.write_text(source, encoding="utf-8")
    env = {**machine.environment(), "PYTHONPATH": str(REPO / "python"), "PYTHONDONTWRITEBYTECODE": "1",
           "PYTHONUTF8": "1", "TIDEMARK_LIBRARY": str(BUILD / "libtidemark.so"), "TIDEMARK_PROGRAM": TIDEMARK,
           "TIDEMARK_OFF": "1", "LC_ALL": "zh_CN.UTF-8", **more}
    return subprocess.Popen(["/usr/bin/python3", str(script)], cwd=machine.folder, env=env, text=True,
                            encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_examples(machine):
    machine.cards(FULL, [])
    blocks = [block.replace("from tools.memory import", "from tidemark import")
              for block in BLOCK.findall(SEED.read_text(encoding="utf-8"))]
    assert len(blocks) == len(CHECKS)
    source = UNTIL + "".join(block + check for block, check in zip(blocks, CHECKS)) + MORE
    out, err = (process := python(machine, source)).communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert out.startswith("监控摘要: 显存状态, 20"), out
    assert "  GPU 0  14.00 GB / 16.00 GB (87.5%)  平均 87.5%  最高 87.5%\n    OOM风险: critical\n" in out
    assert """[WARNING] OOM警告: GPU 0
   风险等级: critical
   当前使用率: 87.5%
   预测OOM时间: -
   置信度: -
   建议: 准备释放缓存
   建议: 考虑减少batch size
""" in err
    assert "风险等级: critical\n   当前使用率: 99.5%\n   预测OOM时间: 45.2秒后\n   置信度: 0.82\n   建议: stop\n" in err
    assert "DEBUG:tidemark:sample: {'device': '0'" in err and "KeyError('mine')" in err
    assert "DEBUG:tidemark:decision: device 0 at 87.5 %, over the threshold of 85.0 %, risk unknown\n" in err


def test_killed(machine):
    """What watches for a program that is killed does not outlive it."""
    machine.cards(FULL)
    process = python(machine, UNTIL + """
from tidemark import MemoryProfiler
profiler = MemoryProfiler(0.01)
profiler.start_monitoring()
profiler.generate_report()
print(profiler._follower._process.pid, flush=True)
time.sleep(60)
""")
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate()
    deadline = time.monotonic() + LIMIT_S
    while os.path.exists(f"/proc/{pid}") and open(f"/proc/{pid}/stat", encoding="ascii").read().split()[2] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_switched_off(machine):
    """TIDEMARK=0: nothing is started, the report has its keys, and the seed's examples run to their end."""
    blocks = [block.replace("from tools.memory import", "from tidemark import")
              for block in BLOCK.findall(SEED.read_text(encoding="utf-8"))]
    process = python(machine, "import json\n" + "".join(blocks) + """
assert json.load(open("memory_report.json", encoding="utf-8"))["summary"]["total_devices"] == 0
assert not detector.is_monitoring
""", TIDEMARK="0", TIDEMARK_PROGRAM="/bin/false")
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "") and out.startswith("监控摘要: 显存状态, 20")
    process = python(machine, """
import json
from tidemark import MemoryDebugger, MemoryProfiler
debugger = MemoryDebugger()
debugger.start_monitoring()
assert not debugger.is_monitoring
debugger.stop_monitoring()
print(json.dumps(debugger.get_status_report()))
MemoryProfiler().generate_report("file")
""", TIDEMARK="0", TIDEMARK_PROGRAM="/bin/false")
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["devices"] == {}
    written = json.loads((machine.folder / "file").read_text(encoding="utf-8"))
    assert (written["devices"], written["reason"]) == ({}, "TIDEMARK=0")


def test_follow(machine):
    """What the program itself says: a report for each line, the last at the end of stdin."""
    machine.cards(FULL)
    (machine.folder / "lines").write_text("\n\n")  # all there when the first sample is taken, unlike in a pipe
    with open(machine.folder / "lines", encoding="ascii") as lines:
        done = subprocess.run([TIDEMARK, "monitor", "--follow", "--interval", "0.01"], stdin=lines, text=True,
                              capture_output=True, timeout=LIMIT_S, env=machine.environment(), check=False)
    assert (done.returncode, done.stderr) == (0, "")
    samples, warning, *more = [json.loads(line) for line in done.stdout.splitlines()]
    assert samples == {"samples": [{"device": "0", "kind": "nvidia", "time_s": samples["samples"][0]["time_s"],
                                    "allocated": 14 * GIB, "total": 16 * GIB, "utilization_percent": 87.5,
                                    "over_threshold": True, "risk_level": None}]}
    assert warning["warning"]["device_id"] == 0 and warning["warning"]["over_threshold"] is True
    reports = [found for found in more if "devices" in found]
    assert len(reports) == 3 and reports[2] is more[-1]
    assert [found["devices"]["0"]["statistics"]["samples_count"] for found in reports] == [1, 1, 1]


def test_follow_seldom(machine):
    """Samples are written no more often than asked for, the first always; all are taken."""
    machine.cards([])
    process = subprocess.Popen([TIDEMARK, "monitor", "--follow", "--tell-every", "100", "--interval", "0.01",
                                "--duration", "0.3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=machine.environment())
    machine.started.append(process)
    samples, report = [json.loads(line) for line in process.stdout]
    process.communicate()
    assert "samples" in samples and report["devices"]["0"]["statistics"]["samples_count"] + report["missed_samples"] == 30


def test_follow_process(machine):
    """The host's memory of a process: first, now, most; one that is not there is not known."""
    pages = 64 * 1024  # of 4 KiB
    machine.cards(FULL)
    machine.put(machine.folder / "proc" / "77" / "statm", f"900000 {pages} 0 0 0 0 0\n")

    def ask(pid):
        done = subprocess.run([TIDEMARK, "monitor", "--follow", "--process", pid, "--interval", "0.01"], input="\n",
                              text=True, capture_output=True, timeout=LIMIT_S, env=machine.environment(), check=False)
        return done.returncode, done.stderr, json.loads((done.stdout.splitlines() or ["{}"])[-1]).get("process")

    size = pages * os.sysconf("SC_PAGESIZE")
    unknown = {"growth_bytes": None, "bytes_per_second": None, "window_s": None, "verdict": None}
    assert ask("77") == (0, "", {"pid": 77, "rss_before": size, "rss": size, "rss_max": size, **unknown})
    assert ask("78") == (0, "", {"pid": 78, "rss_before": None, "rss": None, "rss_max": None, **unknown})
    assert ask("0") == (2, "tidemark: --process: '0' is no process number\n", None)


def test_ends(machine):
    """With an exception that nobody catches, and in a forked child that ends as programs do: the child lets go of the
    parent's monitors and may have its own; nothing is left behind, and no thread complains."""
    machine.cards(FULL)
    process = python(machine, UNTIL + """
from tidemark import MemoryDebugger, MemoryProfiler
debugger = MemoryDebugger(threshold=99)
debugger.start_real_time_monitoring(interval=0.05)
pids = [debugger._follower._process.pid]
child = os.fork()
if child == 0:
    own = MemoryProfiler(0.01)
    own.start_monitoring()
    assert own.generate_report()["devices"]["0"]["current_usage"]["allocated"] == 14 * GIB
    print(own._follower._process.pid, flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert debugger.get_status_report()["devices"]["0"]["statistics"]["samples_count"] >= 1
print(*pids, flush=True)
raise KeyError("the training's")
""", LC_ALL="C.UTF-8")
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1 and err.splitlines()[-1] == "KeyError: \"the training's\""
    assert err.count("Traceback") == 1 and "Exception" not in err
    assert len(out.split()) == 2
    assert not [pid for pid in out.split() if os.path.exists(f"/proc/{pid}")]


def test_without_torch(machine):
    """What needs no torch works; -S leaves out the folder where it is."""
    source = """
import sys
import tidemark
from tidemark import *
try:
    import torch
    raise SystemExit("torch is here")
except ImportError:
    pass
snapshot = memory_snapshot("now")
assert [entry["kind"] for entry in snapshot["gpu_memory"]] == ["CPU"] and snapshot["system_memory"]["total"] > 0
assert monitor_function(max, 3, 4)[0] == 4 and check_memory_status(threshold_mb=1.0) == []
assert cleanup_memory()["gpu_changes"][0]["device_id"] == 0 and "now" in generate_report()
with memory_profiled_training() as stages:
    assert stages.profile_stage("made", dict) == {}
    assert stages.generate_training_report()["stages"][0]["name"] == "made"
with create_memory_debugger("logs") as debugger:
    debugger.create_memory_checkpoint("a")
    assert "a" in debugger.generate_memory_report()
profiler = GPUMemoryProfiler("logs", console=False)
profiler.record("one")
profiler.print_report()
profiler.cleanup()
with MemoryDebugger(threshold=99.0) as watched:
    watched.start_monitoring()
    assert watched.get_status_report()["devices"]["0"]["current_usage"]["total"] == 16 << 30
try:
    analyze_model(object())
    raise SystemExit("no error")
except ImportError as reason:
    assert str(reason) == "analyze_model needs torch, which is not installed: pip install torch"
tidemark.step()
with tidemark.stage("forward"):
    tidemark.mark("here")
"""
    machine.cards(FULL)
    script = machine.folder / "script.py"
    script.write_text(source, encoding="utf-8")
    env = {**machine.environment(), "PYTHONPATH": str(REPO / "python"), "PYTHONDONTWRITEBYTECODE": "1",
           "TIDEMARK_LIBRARY": str(BUILD / "libtidemark.so"), "TIDEMARK_PROGRAM": TIDEMARK, "LC_ALL": "C.UTF-8",
           "TIDEMARK_RUN": str(machine.folder / "run.tmk")}
    done = subprocess.run(["/usr/bin/python3", "-S", str(script)], cwd=machine.folder, env=env, text=True,
                          capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "one                  | Allocated: " in done.stdout and "Traceback" not in done.stderr


def test_follow_is_silent(machine):
    """Its stderr is the training's: no progress line there, which would come after two seconds, on a terminal."""
    machine.cards([])
    ours, theirs = os.openpty()
    process = subprocess.Popen([TIDEMARK, "monitor", "--follow", "--interval", "0.05"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=theirs, env=machine.environment())
    machine.started.append(process)
    last_s = 0.0
    while last_s < 2.3:
        last_s = json.loads(process.stdout.readline())["samples"][0]["time_s"]
    process.communicate(timeout=LIMIT_S)
    os.write(theirs, b"end\n")
    assert os.read(ours, 1000) == b"end\r\n"
    os.close(ours)
    os.close(theirs)
