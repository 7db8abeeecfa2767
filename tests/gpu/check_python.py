#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: the Python package, against torch.cuda's own numbers.

    tests/gpu/check_python.py TIDEMARK OUT [PART...]

Parts: commands, seeds, monitors, costs, fork, reserved, devices, at_exit. commands: the shell examples of Tiny Torch's memory tools on the
real card. seeds: every other example of the tools whose names tidemark has, by the tests that run them on the CPU elsewhere
(tests/torch), with what they compare to torch; without pytest. monitors: the Python examples of Tiny Torch's memory tools on the real card, and what MemoryDebugger says of the run, imported alone and under `tidemark
run`. costs: record() on CUDA both ways, MemoryDebugger at 0.1 s. fork: what is looked at before CUDA is in use leaves it
so, and forked children can use it. reserved: figures are torch's with segments of either kind, before and after
empty_cache, and how often torch was asked for them. devices: record() of each device by every name, JSON, summary and
thresholds, against torch's counts of that device; rows of python.torch_trace too. at_exit: the line and the post-mortem of
a CUDA OOM that `import tidemark` writes, beside DataLoader's workers. Writes each check with its figures to
OUT/check_python.json, exit 1 when one fails. Without a GPU the CPU stands in, which is told, and checks the script
itself."""
import importlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
sys.path[:0] = [str(HERE), str(REPO / "tests" / "torch")]
sys.dont_write_bytecode = True

from checks import Checks, command_line  # noqa: E402

#: Tests that hold the seeds' examples.
SEEDS = [("test_gpu_memory_profiler", ("test_examples", "test_example_program")),
         ("test_quick_memory_debug", ("test_examples",)),
         ("test_lora_training", ("test_examples", "test_commands")),
         ("test_status_report", ("test_report", "test_switched_off", "test_after_attach"))]

MONITORS = """
import json, os, sys, time
import tidemark, torch
IS_CUDA = torch.cuda.is_available()
DEVICE, NAME = ("cuda", "cuda:0") if IS_CUDA else ("cpu", "cpu")
kept = [torch.ones(256 << 20, dtype=torch.uint8, device=DEVICE)]
def until(is_so):
    deadline = time.monotonic() + 30
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_so()
def torch_says():
    return (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) if IS_CUDA else (0, 0)
"""

MONITOR_CHECKS = [
    """
usage, (allocated, reserved) = report["devices"]["0"]["current_usage"], torch_says()
tell("the card has what torch has reserved, and more", reserved <= usage["allocated"] <= usage["total"],
     usage=usage, torch_reserved=reserved)
tell("the card is as large as torch says", not IS_CUDA or
     abs(usage["total"] - torch.cuda.mem_get_info()[1]) <= usage["reserved"] + (64 << 20), total=usage["total"])
tell("samples were taken", report["devices"]["0"]["statistics"]["samples_count"] >= 1,
     samples=report["devices"]["0"]["statistics"]["samples_count"])
""",
    """
written = json.load(open("memory_report.json", encoding="utf-8"))
tell("generate_report() writes what it returns", written == profiler.generate_report())
detector.stop_monitoring()
""",
    "detector.stop_monitoring()\n",
    "debugger.stop_monitoring()\nlogging.disable(logging.INFO)\n",
]

AFTER = """
from tidemark import MemoryDebugger
warned = []
detector = OOMDetector(threshold=0.01, warning_callback=warned.append)
detector.add_callback(lambda prediction: warned.append(prediction))
with detector:
    until(lambda: len(warned) >= 2)
first = warned[0]
tell("both callbacks are called, with the card and its use", len(warned) == 2 and first.device_id == 0 and
     0 < first.current_usage <= 100 and first.risk_level.value == "critical" and len(first.recommended_actions) > 0,
     prediction=str(first))

debugger = MemoryDebugger()
debugger.start_monitoring()
class Kept:
    pass
objects = []
for step in range(20):
    tidemark.step()
    kept.append(torch.ones(2 << 20, dtype=torch.uint8, device=DEVICE))  # the line that leaks
    objects += [Kept() for _ in range(50)]
report, (allocated, reserved) = debugger.get_status_report(), torch_says()
debugger.stop_monitoring()
leaks = [(leak["device"], leak["bytes_per_step"], os.path.basename(leak["file"])) for leak in report["leak"]["leaks"]]
tell("the leak is found, to the byte", leaks == [(NAME, 2 << 20, "script.py")], leaks=leaks)
tell("the forecast knows the device", NAME in [row["device"] for row in report["oom"]["ranks"]], oom=report["oom"])
grown = [row for row in report["leak"]["python"]["growing"] if row["type"] == "__main__.Kept"]
tell("Python's objects are counted", [(row["before"], row["after"]) for row in grown] == [(0, 1000)], grown=grown,
     cost_ms=report["leak"]["python"]["cost_ms"], objects=report["leak"]["python"]["objects"])
frag = report["fragmentation"]
tell("fragmentation has torch's figures", not IS_CUDA or
     [(row["allocated"], row["reserved"]) for row in frag["ranks"]] == [(allocated, reserved)], found=frag,
     torch=[allocated, reserved])
if IS_CUDA and "tidemark run" in WAY:
    (row,) = frag["ranks"]
    pieces = [block["size"] for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]
              if block["state"] == "inactive"]
    tell("and its largest free piece", row["largest_free"] == max(pieces, default=0), found=row["largest_free"],
         torch=max(pieces, default=0))
entry = tidemark.memory_snapshot("now")["gpu_memory"][0]
tell("a snapshot has torch's figures", not IS_CUDA or (entry["allocated"], entry["reserved"]) == torch_says(),
     found=entry, torch=torch_says())
if IS_CUDA:
    kept.clear()
    torch.cuda.empty_cache()
    entry = tidemark.memory_snapshot("emptied")["gpu_memory"][0]
    tell("also after empty_cache()", (entry["allocated"], entry["reserved"]) == torch_says(), found=entry,
         torch=torch_says())
"""

COSTS = """
import gc, json, logging, os, statistics, subprocess, sys, time
import tidemark, torch
logging.getLogger("tidemark").addHandler(logging.NullHandler())
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CALLS, MONITORED_S = 5000, 10.0
kept = torch.ones(1 << 20, device=DEVICE)
gc.freeze()

def record_us():
    profiler = tidemark.GPUMemoryProfiler("logs", enable_file_logging=False, console=False)
    spent = []
    for _ in range(20):
        start = time.thread_time()
        for _ in range(CALLS):
            profiler.record("forward")
        spent.append((time.thread_time() - start) / CALLS * 1e6)
        profiler._rows.clear()
    profiler.cleanup()
    return min(spent), statistics.median(spent)

def ticks(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

def monitor_cost():
    debugger = tidemark.MemoryDebugger(threshold=100.0, sampling_interval=0.1)
    debugger.start_monitoring()
    debugger.get_status_report()
    beside = debugger._follower._process.pid
    start, start_beside = time.process_time(), ticks(beside)
    time.sleep(MONITORED_S)
    spent, spent_beside = time.process_time() - start, ticks(beside) - start_beside
    resident = [line.split()[1] for line in open(f"/proc/{beside}/status") if line.startswith("RssAnon:")]
    debugger.stop_monitoring()
    return 100 * spent / MONITORED_S, 100 * spent_beside / MONITORED_S, int(resident[0]) / 1024

NVML = '''
import ctypes, re
def anonymous():
    return int(re.search("RssAnon:[^0-9]*([0-9]+)", open("/proc/self/status").read())[1])
before = anonymous()
ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2()
print(anonymous() - before)
'''

def nvml_mb():  # what NVML takes of a process by itself
    done = subprocess.run([sys.executable, "-c", NVML], capture_output=True, text=True)
    return int(done.stdout) / 1024 if done.returncode == 0 else 0.0

def n_allocations():
    return torch.cuda.memory_stats()["allocation.all.allocated"] if DEVICE == "cuda" else 0

before = n_allocations()
best, median = record_us()
tell("record() allocates nothing on the device", n_allocations() == before, more=n_allocations() - before)
here, beside, anonymous_mb = monitor_cost()
tell("record() costs at most 2 us", median <= 2.0, best_us=round(best, 3), median_us=round(median, 3))
tell("MemoryDebugger at 0.1 s costs at most 1 % of a core", here + beside <= 1.0, here_percent=round(here, 3),
     beside_percent=round(beside, 3))
nvml = nvml_mb()
tell("and 5 MB a device beside what NVML takes", anonymous_mb - nvml <= 5.0 * max(1, torch.cuda.device_count()),
     anonymous_mb=round(anonymous_mb, 2), nvml_mb=round(nvml, 2))
"""

FORK = """
import logging, os
import tidemark, torch
logging.getLogger("tidemark").addHandler(logging.NullHandler())
IS_CUDA = torch.cuda.device_count() > 0
entry = tidemark.memory_snapshot("before")["gpu_memory"][0]
issues = tidemark.check_memory_status(threshold_mb=1e9)
tidemark.cleanup_memory()
with tidemark.memory_profiled_training() as stages:
    stages.profile_stage("nothing", max, 1, 2)
profiler = tidemark.GPUMemoryProfiler("logs", enable_file_logging=False, console=False)
profiler.record("before")
profiler.cleanup()
tell("CUDA is not in use after snapshots", not torch.cuda.is_initialized())
tell("nothing is allocated", not IS_CUDA or (entry["allocated"], entry["reserved"]) == (0, 0), found=entry)
tell("what is free is known", [issue["type"] for issue in issues][:1] == ["not_free"], issues=issues)
child = os.fork()
if child == 0:
    try:
        ok = torch.ones(4, device="cuda" if IS_CUDA else "cpu").sum().item() == 4.0
    except BaseException as reason:
        os.write(2, repr(reason).encode())
        ok = False
    os._exit(0 if ok else 1)
tell("a forked child can use CUDA", os.waitpid(child, 0)[1] == 0)
if IS_CUDA:
    kept = torch.ones(1 << 20, device="cuda")
    properties, after = torch.cuda.get_device_properties(0), tidemark.memory_snapshot("after")["gpu_memory"][0]
    tell("the card was named as torch names it", entry["name"] == properties.name, found=entry["name"])
    tell("and is as large, but for a hundredth", abs(entry["total"] - properties.total_memory) <=
         properties.total_memory / 100, found=entry["total"], torch=properties.total_memory)
    tell("then figures are torch's", (after["allocated"], after["total"]) ==
         (torch.cuda.memory_allocated(), properties.total_memory), found=after)
"""

RESERVED = """
import logging, os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = f"expandable_segments:{IS_EXPANDABLE}"
import torch
IS_CUDA, MIB = torch.cuda.is_available(), 1 << 20
DEVICE = "cuda" if IS_CUDA else "cpu"
kept, n_asked, ask = [torch.ones(30 * MIB, dtype=torch.uint8, device=DEVICE)], 0, torch.cuda.memory_stats_as_nested_dict

def counted(*arguments):
    global n_asked
    n_asked += 1
    return ask(*arguments)

torch.cuda.memory_stats_as_nested_dict = counted
import tidemark
logging.getLogger("tidemark").addHandler(logging.NullHandler())
profiler = tidemark.GPUMemoryProfiler("logs", enable_file_logging=False, console=False)

def is_expandable():
    return any(segment.get("is_expandable") for segment in torch.cuda.memory_snapshot())

def same(what, asked):
    before = n_asked
    profiler.record(what)
    asks = n_asked - before
    _, _, row, number = profiler._rows[-1]
    found, entry = profiler._lines.figures(row, number)[1:], tidemark.memory_snapshot(what)["gpu_memory"][0]
    right = (torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.max_memory_allocated(),
             torch.cuda.max_memory_reserved()) if IS_CUDA else None
    tell(f"{what}: figures are torch's", not IS_CUDA or found == right and
         (entry["allocated"], entry["reserved"]) == right[:2], found=found, entry=entry, torch=right)
    tell(f"{what}: torch is asked {asked} times", not IS_CUDA or asks == asked, asks=asks)

def go_through(name, asked):
    kept.extend(torch.ones(3 * MIB, dtype=torch.uint8, device=DEVICE) for _ in range(20))
    same(name + ", blocks", asked)
    same(name + ", the same", asked)
    del kept[6:]  # most, so that segments have none: else nothing would be given back
    same(name + ", few of them", asked)
    torch.cuda.empty_cache()
    same(name + ", given back", 1)
    same(name + ", still", asked)
    kept[:] = [torch.ones(1000, device=DEVICE), torch.ones(30 * MIB, dtype=torch.uint8, device=DEVICE)]
    same(name + ", others", asked)
    torch.cuda.empty_cache()
    same(name + ", given back again", 1)
    same(name + ", again still", asked)

tell("torch has the segments asked for", not IS_CUDA or is_expandable() == IS_EXPANDABLE)
seen = "tidemark run" in WAY  # the driver's calls: then torch is asked only when it has given something back
go_through("first", 1 if IS_EXPANDABLE and not seen else 0)

def is_switched():
    try:
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    except (AttributeError, RuntimeError) as reason:  # no promise of torch's
        tell("segments cannot be switched here", True, reason=str(reason))
        return False
    return True

if IS_CUDA and not IS_EXPANDABLE and is_switched():
    kept.append(torch.ones(30 * MIB, dtype=torch.uint8, device=DEVICE))
    tell("now segments are expandable", is_expandable())
    go_through("switched", 0 if seen else 1)
profiler.cleanup()
"""

DEVICES = """
import json, logging, subprocess
import tidemark, torch
logging.getLogger("tidemark").addHandler(logging.NullHandler())
IS_CUDA, MIB = torch.cuda.is_available(), 1 << 20
COUNT = torch.cuda.device_count() if IS_CUDA else 1
DEVICES = [torch.device("cuda", i) for i in range(COUNT)] if IS_CUDA else [torch.device("cpu")]
NAMES = [str(device) for device in DEVICES]
profiler = tidemark.GPUMemoryProfiler("logs", console=False, threshold_mb=600.0)
kept = []

def torch_says(device):
    if not IS_CUDA:
        return sum(t.numel() for t in kept), None, None
    return torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device), torch.cuda.max_memory_allocated(device)

def mb(size):
    return None if size is None else size / MIB

def same(what):
    for index, device in enumerate(DEVICES):
        forms = [index, NAMES[index], device]
        for form in forms:
            profiler.record(what, device=form)
        profiler.record_detailed(what, {"kept": kept[-1]}, device=form)
        right = torch_says(device)
        entries = profiler._entries()[what][-len(forms) - 1:]
        tell(f"{what}, {device}: figures are torch's, by each name", all(
            (e["allocated"], e["reserved"]) == tuple(map(mb, right[:2])) and right[2] in (None, e["max_allocated"] * MIB)
            for e in entries), found=entries[0], torch=right)

for step, size in enumerate((100, 200, 400)):
    for device in DEVICES:
        kept.append(torch.ones(size * MIB, dtype=torch.uint8, device=device))
        if IS_CUDA:
            torch.cuda.set_device(device)
        profiler.record("current")
        tell(f"step {step}: the current device is {device}", profiler._entries()["current"][-1]["allocated"] ==
             mb(torch_says(device)[0]))
    same(f"step {step}")
kept = kept[:COUNT]
if IS_CUDA:
    torch.cuda.empty_cache()
same("given back")
written = json.load(open(profiler.save_to_json(), encoding="utf-8"))
entries = [entry for event in written.values() for entry in event]
tell("each record names its device where there are several", {e.get("device") for e in entries} ==
     (set(NAMES) if COUNT > 1 else {None}))
summary = profiler.generate_summary_report()
right = [torch.cuda.max_memory_allocated(device) / MIB for device in DEVICES] if IS_CUDA else [700.0]
tell("the summary has the highest peak", summary["peak_allocated"] == max(right), found=summary["peak_allocated"],
     torch=right)
tell("and that of each device", COUNT == 1 or [summary["devices"][name]["peak_allocated"] for name in NAMES] == right)
warned = [(w["device"], w["allocated"]) for w in profiler.warnings]
tell("each device was above its threshold once", warned == [(name, 700.0) for name in NAMES], warned=warned)
profiler.cleanup()
try:
    profiler.record("none", device=f"cuda:{COUNT}")
    tell("a device that is not there is refused", False)
except ValueError as reason:
    tell("a device that is not there is refused", all(name in str(reason) for name in NAMES), said=str(reason))

layer = torch.nn.ModuleList([torch.nn.Linear(256, 256, device=device) for device in DEVICES])
tidemark.step(0)

for module, device in zip(layer, DEVICES):
    with tidemark.stage("forward"):
        module(torch.ones(64, 256, device=device))
import os
sql = "SELECT device, count(*), max(max_allocated) FROM python.torch_trace GROUP BY device ORDER BY device"
done = subprocess.run([os.environ["TIDEMARK_PROGRAM"], "query", str(os.getpid()), sql, "--format", "json"],
                      capture_output=True, text=True)
rows = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
tell("python.torch_trace has rows of each device", [row["device"] for row in rows] == NAMES and
     len({row["count(*)"] for row in rows}) == 1, rows=rows, said=done.stderr[-300:])
"""

LAST = """
import sys
import tidemark, torch
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.full((1000,), float(i))
for batch in torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2):
    kept = batch.to(DEVICE)
if len(sys.argv) > 1:
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device=DEVICE)
    except RuntimeError as reason:
        print("caught", type(reason).__name__)
"""

TELL = """
import json as _json
def tell(what, ok, **figures):
    with open("told.jsonl", "a", encoding="utf-8") as file:
        file.write(_json.dumps({"check": what, "ok": bool(ok), **figures}) + "\\n")
"""


class Place:
    """A folder for a script, and one for rings, both gone afterwards."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tidemark-check-"))
        self.rings = Path(tempfile.mkdtemp(prefix="tidemark-rings-", dir="/dev/shm"))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.rings, ignore_errors=True)


def use(tidemark):
    """The tests' kit, with this program and this Python."""
    kit = importlib.import_module("torch_kit")
    folder = Path(tidemark).parent
    library = next(path for path in (folder / "libtidemark.so", folder.parent / "lib" / "libtidemark.so")
                   if path.exists())
    kit.TIDEMARK, kit.LIBRARY, kit.PYTHON = tidemark, str(library), sys.executable
    return importlib.import_module("seeds_kit")


def check_seeds(checks, _kit, _tidemark):
    for name, functions in SEEDS:
        for function in functions:
            with Place() as place:
                try:
                    getattr(importlib.import_module(name), function)(place.folder, place.rings)
                    checks.add(f"seeds, {name}.{function}", True)
                except (Exception, SystemExit):
                    checks.add(f"seeds, {name}.{function}", False, said=traceback.format_exc()[-3000:])


def told_by(checks, part, kit, tidemark, source):
    """Run it imported alone and under `tidemark run`; each tells its checks."""
    for way in ("import tidemark", "tidemark run"):
        with Place() as place:
            script = place.folder / "script.py"
            script.write_text(f"WAY = {way!r}\n{TELL}{source}", encoding="utf-8")
            env = kit.environment(TIDEMARK_RING_DIR=str(place.rings), PYTHONPATH=str(REPO / "python"),
                                  TIDEMARK_LIBRARY=kit.LIBRARY, TIDEMARK_PROGRAM=tidemark, LC_ALL="C.UTF-8")
            run = str(place.folder / "run.tmk")
            command = [sys.executable, str(script)]
            if way == "tidemark run":
                command = [tidemark, "run", "--quiet", "-o", run, "--", *command]
            else:
                env["TIDEMARK_RUN"] = run
            done = subprocess.run(command, cwd=place.folder, env=env, capture_output=True, text=True, timeout=300,
                                  check=False)
            told = place.folder / "told.jsonl"
            for line in told.read_text(encoding="utf-8").splitlines() if told.exists() else ():
                found = json.loads(line)
                checks.add(f"{part}, {way}: {found.pop('check')}", found.pop("ok"), **found)
            checks.add(f"{part}, {way}: it ends well", done.returncode == 0, said=done.stderr[-2000:]
                       if done.returncode else "")


def check_monitors(checks, kit, tidemark):
    blocks = kit.examples("s1.md", ["tools.memory"])
    source = MONITORS + "".join(block + check for block, check in zip(blocks, MONITOR_CHECKS)) + AFTER
    checks.add("monitors: there are four examples", len(blocks) == len(MONITOR_CHECKS))
    told_by(checks, "monitors", kit, tidemark, source)


def check_costs(checks, kit, tidemark):
    told_by(checks, "costs", kit, tidemark, COSTS)


def check_fork(checks, kit, tidemark):
    told_by(checks, "fork", kit, tidemark, FORK)


def check_reserved(checks, kit, tidemark):
    """Of memory that torch had before, with segments that come and go by the runtime's calls or by the driver's."""
    for is_expandable in (False, True):
        told_by(checks, "expandable segments" if is_expandable else "segments", kit, tidemark,
                f"IS_EXPANDABLE = {is_expandable}\n{RESERVED}")


def check_devices(checks, kit, tidemark):
    told_by(checks, "devices", kit, tidemark, DEVICES)


def check_at_exit(checks, kit, tidemark):
    """One line, of the process that imported the package; and after an OOM what `tidemark run` says of it."""
    for words in ([], ["oom"]):
        with Place() as place:
            (place.folder / "train.py").write_text(LAST, encoding="utf-8")
            env = kit.environment(TIDEMARK_RING_DIR=str(place.rings), PYTHONPATH=str(REPO / "python"), LC_ALL="C.UTF-8",
                                  TIDEMARK_LIBRARY=kit.LIBRARY, TIDEMARK_PROGRAM=tidemark, TIDEMARK_QUIET="0")
            done = subprocess.run([sys.executable, "train.py", *words], cwd=place.folder, env=env, capture_output=True,
                                  text=True, timeout=300, check=False)
            runs = [path.name for path in place.folder.glob("*.tmk")]
            what = "at exit, " + ("after an OOM" if words else "without one")
            checks.add(f"{what}: one line names the run", len(runs) == 1 and done.stderr.count("recorded in") == 1 and
                       f"tidemark: recorded in {runs[0]}; next: tidemark " in done.stderr, said=done.stderr[-2000:])
            is_told = "OUT OF MEMORY" in done.stderr and "wanted     16.00 TiB more on " in done.stderr
            checks.add(f"{what}: the post-mortem is there when it is due", is_told == bool(words) and
                       ("caught" in done.stdout) == bool(words), said=done.stderr[-2000:])
            query = importlib.import_module("torch_kit").query
            n = query(place.folder / runs[0], "SELECT count(*) FROM processes") if runs else None
            checks.add(f"{what}: workers are in the run", n == [["3"]], found=n)


def after_interrupt(command, folder, env):
    """(exit status, stdout, stderr) of one that goes on until ^C, after a second of looking."""
    process = subprocess.Popen(command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def check_commands(checks, kit, tidemark):
    """The shell examples of Tiny Torch's memory tools, as they stand there but for the program's name and the time. The
    card is nearly empty: nothing is to warn of."""
    text = (REPO / "tests" / "data" / "seeds" / "s1.md").read_text(encoding="utf-8")
    lines = re.findall(r"^python -m tools[.]memory (.*)$", text, re.M)
    checks.add("commands: there are seven", len(lines) == 7, lines=lines)
    with Place() as place:
        env = kit.environment(PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=kit.LIBRARY, TIDEMARK_PROGRAM=tidemark,
                              LC_ALL="C.UTF-8")
        for line in lines:
            short = re.sub(r"--duration (60|300)", "--duration 1", line)
            command = [sys.executable, "-m", "tidemark", *short.split()]
            if "leak" in line:
                command += ["--duration", "2", "--warm-up", "1"]
            if "--duration 0" in line or line.endswith(("--monitor", "monitor --all")):
                status, out, err = after_interrupt(command, place.folder, env)
            else:
                done = subprocess.run(command, cwd=place.folder, env=env, capture_output=True, text=True, timeout=60,
                                      check=False)
                status, out, err = done.returncode, done.stdout, done.stderr
            checks.add(f"commands: {short}", status == 0 and "Traceback" not in err and (out or "oom" in line),
                       status=status, out=out[-700:], err=err[-300:])
        found = json.loads((place.folder / "profile.json").read_text(encoding="utf-8"))["devices"]["0"]
        checks.add("commands: the report has the card's memory and samples of a second", found["current_usage"]["total"] >
                   found["current_usage"]["allocated"] and found["statistics"]["samples_count"] >= 5, found=found)


PARTS = {"commands": check_commands, "seeds": check_seeds, "monitors": check_monitors, "costs": check_costs, "fork": check_fork,
         "reserved": check_reserved, "devices": check_devices, "at_exit": check_at_exit}


def main():
    tidemark, out, parts = command_line(__doc__, needs_gpu=False)
    kit, checks = use(tidemark), Checks()
    device = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.get_device_name(0) if "
                             "torch.cuda.is_available() else 'no GPU: the CPU stands in')"], capture_output=True,
                            text=True, check=False)
    print(device.stdout.strip() or device.stderr[-500:], flush=True)
    try:
        for part in parts or PARTS:
            PARTS[part](checks, kit, tidemark)
    finally:
        checks.save(out, "check_python")
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
