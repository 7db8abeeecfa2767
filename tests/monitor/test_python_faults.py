# SPDX-License-Identifier: MIT
"""The Python front when things go wrong: forks, full disks, programs that die, and strategies that fail.

Without torch (-S leaves out the folder where it is), so that a process costs little.
"""
import json
import subprocess

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
           "TIDEMARK_RUN": str(machine.folder / "run.tmk"), **more}
    done = subprocess.run(["/usr/bin/python3", "-S", str(script)], cwd=machine.folder, env=env, text=True,
                          capture_output=True, timeout=LIMIT_S, check=False)
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
