# SPDX-License-Identifier: MIT
"""What monitors say of watched processes: fragmentation from their real blocks and segments, and that they ran out."""
import json
import os
import re
import subprocess
import tempfile

import pytest
from monitor_kit import BUILD, GIB, LIMIT_S, MIB, REPO, TIDEMARK

# Three segments of 20 MiB on its first GPU: one with a block of 12 MiB at its start and one of 2 MiB at its end, one
# with a block in the middle, one without any. Then it does what stdin says.
JOB = """
import ctypes, sys
class Site(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("function", ctypes.c_char_p), ("line", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]
MIB, CUDA_0 = 1 << 20, 0x100
site = ctypes.byref(Site(b"job.py", b"main", 7, 0))
cuda, tidemark = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)
def segment(size):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address.value
def block(address, size):
    tidemark.tidemark_record_alloc(CUDA_0, ctypes.c_void_p(address), ctypes.c_uint64(size), site)
context, device = ctypes.c_void_p(), ctypes.c_int()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
first, second, third = (segment(20 * MIB) for _ in range(3))
block(first, 12 * MIB)
block(first + 18 * MIB, 2 * MIB)
block(second + 8 * MIB, 4 * MIB)
print("ready", flush=True)
for line in sys.stdin:
    if line == "oom\\n":
        tidemark.tidemark_record_oom(CUDA_0, ctypes.c_uint64(3 << 30), ctypes.c_uint64(0), site)
    print("done", flush=True)
"""

FIGURES = {"reserved": 60 * MIB, "allocated": 18 * MIB, "free": 42 * MIB, "largest_free": 20 * MIB,
           "largest_allocatable": 20 * MIB, "releasable": 20 * MIB, "stuck": 22 * MIB, "percent": 36.67, "segments": 3,
           "blocks": 3, "free_blocks": 4}


class Job:
    """A watched program on the second of two GPUs, which it numbers as its first."""

    def __init__(self, machine, *words):
        self.machine = machine
        machine.cards([], [])
        self.rings = tempfile.TemporaryDirectory(prefix="tidemark-test-rings", dir="/dev/shm")
        script = machine.folder / "site-packages" / "torch" / "job.py"  # whose segments these are goes by the file
        script.parent.mkdir(parents=True)
        script.write_text(JOB, encoding="utf-8")
        env = {name: value for name, value in machine.environment().items() if name != "TIDEMARK_PROC_DIR"}
        self.process = subprocess.Popen(
            [TIDEMARK, "run", "--quiet", "-o", "run.tmk", *words, "--", "/usr/bin/python3", "-S", str(script)],
            cwd=machine.folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**env, "TIDEMARK_RING_DIR": self.rings.name, "CUDA_VISIBLE_DEVICES": "1"})
        machine.started.append(self.process)
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()
        listed = json.loads(subprocess.run([TIDEMARK, "ps", "--json"], text=True, capture_output=True, check=True,
                                           timeout=LIMIT_S).stdout)["processes"]
        run = str(machine.folder / "run.tmk")
        self.pid = next(found["pid"] for found in listed if found["run"] == run)
        (machine.folder / "proc" / str(self.pid)).symlink_to(f"/proc/{self.pid}")

    def does(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def ends(self):
        self.process.communicate(timeout=LIMIT_S)
        (self.machine.folder / "proc" / str(self.pid)).unlink()


@pytest.fixture(name="job")
def job_fixture(machine):
    job = Job(machine)
    yield job
    job.process.kill()
    job.process.communicate()
    job.rings.cleanup()


def test_fragmentation(machine, job):
    """By device, as `frag` says it of the process; another GPU, and the host, say why not."""
    report = machine.json("monitor", "--all", "--duration", "0.2", "--devices", "all,host", "--json")
    first, second, host = (report["devices"][name] for name in ("0", "1", "host"))
    assert second["fragmentation"] == {**FIGURES, "processes": [
        {"pid": job.pid, "rank": None, "device": "cuda:0", **FIGURES}]}
    assert second["fragmentation_reason"] is None
    told = json.loads(subprocess.run([TIDEMARK, "frag", str(job.pid), "--at", "end", "--json"], text=True, check=True,
                                     capture_output=True, timeout=LIMIT_S).stdout)
    for key in ("reserved", "allocated", "free", "largest_free", "largest_allocatable", "releasable", "segments",
                "blocks", "free_blocks"):
        assert told[key] == FIGURES[key], key
    assert first["fragmentation"] is None and first["fragmentation_reason"].startswith("no watched process")
    assert host["fragmentation"] is None and "no cache of the host's memory" in host["fragmentation_reason"]
    text = machine.run("monitor", "--all", "--duration", "0.2").stdout
    assert ("fragmentation of 1: 22.0 MiB of 60.0 MiB reserved (36.7 %) lie free between blocks; the largest free "
            "block is 20.0 MiB\n") in text
    assert "fragmentation of 0: not known: no watched process has memory on it" in text


def test_oom(machine, job):
    """One that comes while the monitor looks is said, with who and how much; and in the report; one of before is not."""
    job.does("oom")
    monitor = machine.start("oom", "--monitor")
    lines = []
    job.does("oom")
    while not lines or not lines[-1].startswith("   Advice"):
        lines.append(monitor.process.stdout.readline())
    text = "".join(lines)
    assert text.startswith("[WARNING] OOM warning: GPU 1\n   Risk level: critical\n"), text
    assert re.search(rf"\n   Out of memory: {job.pid} asked for 3.00 GB at \d+-\d\d-\d\dT\d\d:\d\d:\d\d\n", text), text
    assert "   Advice: see why it ran out and what would have helped: tidemark explain RUN\n" in text
    status, out, _ = monitor.end()
    assert status == 1 and "[WARNING]" not in out


def test_oom_that_ends_the_job(machine, job):
    """Its trace is read once more when it has gone, at the end of the monitor too."""
    monitor = machine.start("monitor", "--all", "--json")
    monitor.wait(lambda: int(monitor.field("io", "syscr:")) > 200)
    job.does("oom")
    job.ends()
    status, out, err = monitor.end()
    device = json.loads(out)["devices"]["1"]["oom"]
    assert status == 1 and err.count("[WARNING]") == 1 and "   Out of memory: " in err
    assert device["ooms"] == 1 and device["last_oom"]["requested"] == 3 * GIB
    assert device["last_oom"]["pid"] == job.pid and device["cause"] == "out_of_memory"
    assert device["risk_level"] == "critical" and len(device["recommended_actions"]) == 2


def test_in_python(machine, job):
    """The callback is told, with its cause; the report has both."""
    (machine.folder / "script.py").write_text("""
import json, sys, time
from tidemark import MemoryDebugger
told = []
debugger = MemoryDebugger(warning_callback=told.append, devices=[0, 1], python_objects=False)
debugger.start_monitoring()
print("ready", flush=True)
sys.stdin.readline()
deadline = time.monotonic() + 30
while not told and time.monotonic() < deadline:
    time.sleep(0.01)
report = debugger.get_status_report()
debugger.stop_monitoring()
(prediction,) = told
print(json.dumps([prediction.device_id, prediction.risk_level.value, prediction.cause, report["devices"]["1"]]))
""", encoding="utf-8")
    env = {**machine.environment(), "PYTHONPATH": str(REPO / "python"), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C",
           "TIDEMARK_LIBRARY": str(BUILD / "libtidemark.so"), "TIDEMARK_PROGRAM": TIDEMARK, "TIDEMARK_OFF": "1"}
    process = subprocess.Popen(["/usr/bin/python3", "-S", "script.py"], cwd=machine.folder, env=env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    machine.started.append(process)
    assert process.stdout.readline() == "ready\n"
    job.does("oom")
    out, err = process.communicate("go\n", timeout=LIMIT_S)
    assert process.returncode == 0, err
    device_id, risk, cause, device = json.loads(out)
    assert (device_id, risk, cause) == (1, "critical", "out_of_memory")
    assert f"   Out of memory: process {job.pid} asked for 3.00 GB at " in err
    assert device["oom"]["ooms"] == 1
    assert {key: device["fragmentation"][key] for key in FIGURES} == FIGURES
    assert os.path.exists(f"/proc/{job.pid}")
