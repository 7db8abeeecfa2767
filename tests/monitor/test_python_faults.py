# SPDX-License-Identifier: MIT
"""The Python front when things go wrong: forks, full disks, programs that die, and strategies that fail.

Without torch (-S leaves out the folder where it is), so that a process costs little.
"""
import json
import subprocess
import tempfile

from monitor_kit import BUILD, GIB, LIMIT_S, REPO, TIDEMARK

FULL = [f"process 41 {14 * GIB}"]

PRELUDE = """
import glob, json, logging, os, signal, sys, threading, time
def until(is_so):
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)
def in_child(function):
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
class Kept(logging.Handler):
    lines = []
    def emit(self, record):
        self.lines.append(record.getMessage())
def said(word):
    return [line for line in Kept.lines if word in line]
from tidemark import *
logging.getLogger("tidemark").addHandler(Kept())
"""


def run(machine, source, **more):
    """Its stdout; it must end well and complain of nothing."""
    machine.cards(FULL)
    script = machine.folder / "script.py"
    script.write_text(PRELUDE + source, encoding="utf-8")
    env = {**machine.environment(), "PYTHONPATH": str(REPO / "python"), "PYTHONDONTWRITEBYTECODE": "1",
           "TIDEMARK_LIBRARY": str(BUILD / "libtidemark.so"), "TIDEMARK_PROGRAM": TIDEMARK, "LC_ALL": "C.UTF-8",
           "TIDEMARK_RUN": str(machine.folder / "run.tmk"), "TIDEMARK_QUIET": "1", **more}
    with tempfile.TemporaryDirectory(prefix="tidemark-test-rings", dir="/dev/shm") as rings:
        done = subprocess.run(["/usr/bin/python3", "-S", str(script)], cwd=machine.folder, text=True,
                              env={"TIDEMARK_RING_DIR": rings, **env}, capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_files(machine):
    """Reports of one second and of several processes do not take each other's place; one that fails leaves nothing."""
    run(machine, """
from tidemark import _files
_files.time.strftime = lambda *form: "20260101_000000"  # all of them within one second
debugger = create_memory_debugger("logs")
def write_three():
    for i in range(3):
        debugger.create_memory_checkpoint(f"{os.getpid()} {i}")
        debugger.generate_memory_report()
        with memory_profiled_training("logs") as profiler:
            profiler.profile_stage("made", dict)
            profiler.generate_training_report()
write_three()
in_child(write_three)
texts = [open(name, encoding="utf-8").read() for name in glob.glob("logs/memory_report_20260101_000000*.txt")]
assert len(set(texts)) == 6 and all(texts)
assert len([json.load(open(name, encoding="utf-8")) for name in glob.glob("logs/training_report_*.json")]) == 6

profiler = GPUMemoryProfiler("logs2", enable_file_logging=False, console=False)
profiler.record("one")
def no_replace(part, path):
    raise OSError(28, "No space left on device")
_files.os.replace, replace = no_replace, os.replace
for path in (None, "mine.json"):
    try:
        profiler.save_to_json(path)
        raise SystemExit("no error")
    except OSError:
        pass
_files.os.replace = replace
assert os.listdir("logs2") == [] and not glob.glob("mine*")
assert list(json.load(open(profiler.save_to_json(), encoding="utf-8"))) == ["one"] and len(os.listdir("logs2")) == 1
""")


def test_forks(machine):
    """While another thread makes profilers: no lock stays taken, in neither process, and each has its lines."""
    run(machine, """
made, is_over = [], threading.Event()
def make():
    while not is_over.is_set():
        made.append(GPUMemoryProfiler("logs", console=False))
        made[-1].record("made")
        if len(made) > 20:
            made.pop(0).cleanup()
def use():
    for profiler in made[-5:]:
        profiler.record("in the child")
        profiler.generate_summary_report()
        profiler.cleanup()
threads = [threading.Thread(target=make) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(60):
    in_child(use)
is_over.set()
for thread in threads:
    thread.join()
last = GPUMemoryProfiler("last", console=False)
for profiler in made:
    profiler.record("the end")
    profiler.cleanup()
    text = open(profiler.log_file, encoding="utf-8").read()
    assert "event: the end" in text and "in the child" not in text
assert not [t.name for t in threading.enumerate() if t.name == "tidemark-log"][1:]
""")


def test_answers_at_once(machine):
    """Whoever asks between two samples that are far apart does not wait for the next; nor does the end."""
    machine.cards(FULL)
    process = subprocess.Popen([TIDEMARK, "monitor", "--follow", "--interval", "1000"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=machine.environment(), text=True)
    machine.started.append(process)
    assert "samples" in json.loads(process.stdout.readline())
    assert "warning" in json.loads(process.stdout.readline())
    for _ in range(2):
        process.stdin.write("\n")
        process.stdin.flush()
        report = json.loads(process.stdout.readline())
        assert report["devices"]["0"]["statistics"]["samples_count"] == 1
    process.stdin.close()
    assert json.loads(process.stdout.readline())["devices"] == report["devices"]
    assert process.wait(LIMIT_S) == 0


def test_forked_monitors(machine):
    """In a child none is monitoring, none has the parent's report, and each can be started anew; the parent's go on."""
    run(machine, """
debugger = MemoryDebugger(threshold=99.0, enable_real_time=True)
profiler = MemoryProfiler(0.01)
profiler.start_monitoring()
pid = profiler._follower._process.pid
assert profiler.generate_report()["devices"]["0"]["current_usage"]["allocated"] == 14 << 30
def use():
    for monitor in (profiler, debugger):
        assert not monitor.is_monitoring and monitor._report()["devices"] == {}
        monitor.stop_monitoring()
    assert debugger.get_status_report()["leak"]["python"] is None
    for monitor in (profiler, debugger):
        monitor.start_monitoring()
        assert monitor.is_monitoring and monitor._follower._process.pid != pid
        assert monitor._report()["devices"]["0"]["current_usage"]["allocated"] == 14 << 30
        monitor.stop_monitoring()
in_child(use)
assert profiler.is_monitoring and debugger.is_monitoring
assert profiler._follower._process.pid == pid and profiler.generate_report()["devices"]["0"]
""")


def test_ended_monitors(machine):
    """One that is killed is no monitor any more, which is said once; one that cannot begin says why; one that does not
    answer has the report of before, which says so."""
    run(machine, """
from tidemark import _follower
_follower.ANSWER_S = 0.5
profiler = MemoryProfiler(0.01)
profiler.start_monitoring()
profiler.generate_report()
os.kill(profiler._follower._process.pid, signal.SIGSTOP)
old = profiler.generate_report()
assert old["devices"]["0"] and old["reason"].startswith("the monitor does not answer: this is its report of 2")
assert said("does not answer") == [old["reason"]]
os.kill(profiler._follower._process.pid, signal.SIGCONT)
assert "reason" not in profiler.generate_report()
os.kill(profiler._follower._process.pid, signal.SIGKILL)
until(lambda: not profiler.is_monitoring)
assert said("ended by itself") == [
    "the monitor has ended by itself (signal 9): nothing is watched any more; start_monitoring() begins anew"]
report = profiler.generate_report()
assert report["devices"]["0"] and report["reason"] == "the monitor has ended by itself: signal 9"
profiler.start_monitoring()
assert profiler.is_monitoring and "reason" not in profiler.generate_report()
profiler.stop_monitoring()
profiler.stop_monitoring()
assert len(said("ended by itself")) == 1

none = MemoryProfiler(devices=[7])
for _ in range(2):
    try:
        none.start_monitoring()
        raise SystemExit("no error")
    except ValueError as reason:
        assert str(reason) == "--devices: there is no device 'visible:7'; there is: 0, host", reason
    assert not none.is_monitoring and none.generate_report()["devices"] == {}
os.environ["TIDEMARK_PROGRAM"] = "/bin/false"
try:
    MemoryProfiler().start_monitoring()
    raise SystemExit("no error")
except RuntimeError as reason:
    assert str(reason) == "the monitor cannot begin: status 1", reason
""")


def test_strategies(machine):
    """One that fails, or returns something else, is named, once, and keeps nothing else from being watched."""
    run(machine, """
seen = []
def fails(samples):
    seen.append(samples[-1].device_id)
    raise KeyError("mine")
def text(samples):
    return "it is full"
class Wrong:
    def __call__(self, samples):
        return OOMPrediction(0, "high", None, None, None, None, [])
debugger = MemoryDebugger(threshold=99.0, strategy=fails)
debugger.start_real_time_monitoring(0.01)
until(lambda: len(debugger.memory_history) > 3 and len(seen) > 3)
debugger.stop_monitoring()
assert [line for line in Kept.lines if "strategy" in line] == ["strategy fails failed (said once): KeyError('mine')"]
for strategy, words in ((text, "strategy text failed (said once): TypeError(\\"it returned 'it is full': "),
                        (Wrong(), "strategy Wrong failed (said once): TypeError(\\"it returned risk_level='high': ")):
    with OOMDetector(99, sampling_interval=0.01, strategy=strategy) as detector:
        until(lambda: said(words) and len(detector._samples["0"]) > 3)
    assert len(said(words)) == 1
def named(samples):
    return OOMPrediction("0", RiskLevel.HIGH, None, None, 50.0, None, None)
with OOMDetector(99, sampling_interval=0.01, strategy=named) as detector:
    until(lambda: detector.warnings)
assert detector.warnings[0].device_id == 0 and detector.warnings[0].recommended_actions == []
detector._kinds[0] = "host"
detector._warn(detector.warnings[0], [])
detector._warn(detector.warnings[0]._replace(device_id=3), [])
assert [line.splitlines()[0] for line in said("OOM warning")] == [
    "OOM warning: GPU 0", "OOM warning: host", "OOM warning: device 3"]
logging.disable(logging.CRITICAL)
logging.getLogger("tidemark").handlers.clear()
from tidemark import _words
_words.say(logging.WARNING, "not to be seen")
""")
