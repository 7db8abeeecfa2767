#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: what monitors say of it, against torch and against a process that fills it.

    tests/gpu/check_monitors.py TIDEMARK OUT [PART...]

Parts: fragmentation, alarm. fragmentation: a watched process makes blocks of all sizes and frees every
other; what `monitor --all` and MemoryDebugger say of its GPU is compared to torch.cuda.memory_snapshot().
alarm: a watched process fills the GPU at an even pace until it runs out of memory, which takes half a
minute and is 100 GiB or more of an H200, while the OOMDetector of Tiny Torch's page, as it stands there,
watches: it must say critical before, when how much time is left, and that it ran out. Writes each check
with its figures to OUT/check_monitors.json, exit 1 when one fails."""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from checks import Checks, command_line

REPO = Path(__file__).resolve().parents[2]
GIB, MIB = 1 << 30, 1 << 20
LIMIT_S = 120
FILL_S = 35.0      # from empty to full, unless the driver is slower
LEAST_FILL = 100 * GIB

FRAGMENTED = """
import json, sys
import tidemark, torch
device = torch.device("cuda:0")
torch.ones(1, device=device)
blocks = [torch.empty(size, dtype=torch.uint8, device=device)
          for _ in range(40) for size in (1000, 300 << 10, 3 << 20, 7 << 20, 12 << 20, 33 << 20)]
del blocks[::2]
torch.cuda.synchronize()
def truth():
    segments = [s for s in torch.cuda.memory_snapshot() if s["device"] == device.index]
    free = [[b["size"] for b in s["blocks"] if b["state"] == "inactive"] for s in segments]
    whole = [s["total_size"] for s in segments if all(b["state"] == "inactive" for b in s["blocks"])]
    return {"reserved": sum(s["total_size"] for s in segments), "allocated": sum(s["allocated_size"] for s in segments),
            "free": sum(map(sum, free)), "largest_free": max((size for sizes in free for size in sizes), default=0),
            "releasable": sum(whole), "segments": len(segments), "free_blocks": sum(map(len, free)),
            "blocks": sum(b["state"].startswith("active") for s in segments for b in s["blocks"])}
from tidemark import MemoryDebugger
print(json.dumps({"truth": truth()}), flush=True)
sys.stdin.readline()
debugger = MemoryDebugger(python_objects=False)
debugger.start_monitoring()
report = debugger.get_status_report()
debugger.stop_monitoring()
print(json.dumps({"python": report["devices"]["0"], "page": str(report), "truth": truth()}), flush=True)
"""

FILLER = """
import json, sys, time
import torch
torch.ones(1, device="cuda:0")
free, total = torch.cuda.mem_get_info(0)
part, pause = free // 140, FILL_S / 140
kept = []
def tell(what):
    print(json.dumps({what: time.time(), "bytes": torch.cuda.memory_allocated(0), "total": total}), flush=True)
tell("ready")
sys.stdin.readline()
tell("begun")
start = time.monotonic()
try:
    for i in range(300):
        kept.append(torch.empty(part, dtype=torch.uint8, device="cuda:0"))
        time.sleep(max(0, start + (i + 1) * pause - time.monotonic()))
        if time.monotonic() - start > 2 * FILL_S:
            break
except RuntimeError:
    tell("oom")
tell("filled")
time.sleep(6)  # full, for the monitor to see
"""

DETECTOR = """
import json, sys, time
from tidemark import OOMDetector
def told(prediction):
    print("TOLD " + json.dumps({"t": time.time(), "risk": prediction.risk_level.value, "cause": prediction.cause,
                                "left": prediction.predicted_oom_time, "usage": prediction.current_usage,
                                "device": prediction.device_id, "confidence": prediction.confidence}), flush=True)
"""

DETECTOR_END = """
detector.add_callback(told)
print("READY", flush=True)
sys.stdin.readline()
detector.stop_monitoring()
"""


class Place:
    """A folder for scripts and runs, and one for rings; programs started there are ended with it."""

    def __init__(self, tidemark):
        self.tidemark, self.started = tidemark, []

    def __enter__(self):
        self.folders = [tempfile.TemporaryDirectory(prefix="tidemark-check-"),
                        tempfile.TemporaryDirectory(prefix="tidemark-rings-", dir="/dev/shm")]
        self.folder = Path(self.folders[0].name)
        program = Path(self.tidemark)
        library = next((path for path in (program.parent / "libtidemark.so", program.parent.parent / "lib" /
                                          "libtidemark.so") if path.exists()), program)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
        self.env.update(TIDEMARK_RING_DIR=self.folders[1].name, TIDEMARK_PROGRAM=self.tidemark, LC_ALL="C.UTF-8",
                        TIDEMARK_LIBRARY=str(library), PYTHONPATH=str(REPO / "python"), PYTHONDONTWRITEBYTECODE="1")
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for folder in self.folders:
            folder.cleanup()

    def start(self, name, source, watched):
        script = self.folder / name
        script.write_text(source, encoding="utf-8")
        front = [self.tidemark, "run", "--quiet", "-o", str(self.folder / (name + ".tmk")), "--"] if watched else []
        env = self.env if watched else {**self.env, "TIDEMARK_OFF": "1"}
        self.started.append(subprocess.Popen([*front, sys.executable, str(script)], cwd=self.folder, env=env, text=True,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return self.started[-1]


def said(process):
    """The end of what a program that failed complained of."""
    process.kill()
    return process.communicate()[1][-1500:]


def line_of(process):
    """Its next line as JSON; None: it has ended."""
    text = process.stdout.readline()
    return json.loads(text) if text else None


# ---- fragmentation

def same(checks, what, found, truth):
    """All figures are torch's; a device on which it is not known has none, and `reason` why."""
    figures = {key: (found or {}).get(key) for key in truth}
    checks.add(what, figures == truth, found=figures, torch=truth)


def monitored(place):
    done = subprocess.run([place.tidemark, "monitor", "--all", "--duration", "1", "--json"], env=place.env, text=True,
                          capture_output=True, timeout=LIMIT_S, check=False)
    try:
        return json.loads(done.stdout)["devices"]
    except (ValueError, KeyError):
        return {"0": {"fragmentation": None, "fragmentation_reason": done.stderr[-500:]}}


def check_fragmentation(checks, tidemark):
    with Place(tidemark) as place:
        job = place.start("fragmented.py", FRAGMENTED, True)
        first = line_of(job)
        checks.add("fragmentation: the job runs", first is not None, said=said(job) if first is None else "")
        if first is None:
            return
        devices = monitored(place)
        known = {label: device for label, device in devices.items() if device["fragmentation"]}
        checks.add("fragmentation: of one device it is known", len(known) == 1, devices={
            label: device.get("fragmentation_reason") for label, device in devices.items()})
        for device in known.values():
            found = device["fragmentation"]
            same(checks, "fragmentation: monitor --all has torch's figures", found, first["truth"])
            checks.add("fragmentation: what is stuck is free and cannot be given back", found["stuck"] ==
                       found["free"] - found["releasable"] and found["stuck"] > 0 and abs(
                           found["percent"] - 100 * found["stuck"] / found["reserved"]) < 0.01, found=found["stuck"])
            checks.add("fragmentation: it is that of the one process", [p["device"] for p in found["processes"]] ==
                       ["cuda:0"], processes=found["processes"])
        job.stdin.write("go\n")
        job.stdin.flush()
        second = line_of(job)
        checks.add("fragmentation: MemoryDebugger reports", second is not None, said=said(job) if second is None else "")
        if second is not None:
            same(checks, "fragmentation: get_status_report() has torch's figures", second["python"]["fragmentation"],
                 second["truth"])
            checks.add("fragmentation: its page is one", second["page"].count("\n") < 40 and "lie free between blocks" in
                       second["page"], page=second["page"])


# ---- the alarm

def detector_source():
    """The seed's example of a callback, with only the import line added."""
    text = (REPO / "tests" / "data" / "seeds" / "s1.md").read_text(encoding="utf-8")
    (block,) = [found for found in re.findall(r"^```python\n(.*?)^```", text, re.S | re.M) if "custom_oom_callback" in found]
    return DETECTOR + block + DETECTOR_END


def read_lines(process, lines):
    thread = threading.Thread(target=lambda: lines.extend((time.time(), line) for line in process.stdout), daemon=True)
    thread.start()
    return thread


def judge_alarm(checks, filler, seen):
    """`filler`: moments by name, `seen`: the lines of the detector."""
    told = [json.loads(line[5:]) for _, line in seen if line.startswith("TOLD ")]
    oom = filler.get("oom")
    begun, ready = filler["begun"], filler["ready"]
    filled = filler["filled"]["bytes"]
    if ready["total"] > LEAST_FILL + 8 * GIB:
        checks.add("alarm: 100 GiB were filled", filled >= LEAST_FILL, bytes=filled)
    else:
        checks.skip("alarm: 100 GiB were filled", f"the GPU has {ready['total'] / GIB:.1f} GiB")
    checks.add("alarm: it ran out of memory within a minute", oom is not None and oom["oom"] - begun["begun"] < 75,
               begun=begun, oom=oom)
    if oom is None:
        return
    end = oom["oom"]
    critical = [found for found in told if found["risk"] == "critical" and found["t"] < end]
    checks.add("alarm: critical came before", bool(critical) and end - critical[0]["t"] >= 2.0, told=told,
               before_s=round(end - critical[0]["t"], 2) if critical else None)
    timed = [found for found in critical if found["left"] is not None]
    checks.add("alarm: it said how much time was left", bool(timed) and
               abs(timed[0]["left"] - (end - timed[0]["t"])) <= max(2.0, 0.4 * (end - timed[0]["t"])),
               first=timed[:1], left_s=round(end - timed[0]["t"], 2) if timed else None)
    after = [found for found in told if found["cause"] in ("full", "out_of_memory")]
    checks.add("alarm: it said when it was full, or had run out", bool(after), told=after)
    ran_out = [found for found in told if found["cause"] == "out_of_memory"]
    checks.add("alarm: it said that it ran out of memory", bool(ran_out) and ran_out[0]["t"] - end < 15, told=ran_out)
    printed = [line for _, line in seen if line.startswith("Critical OOM risk on GPU ")]
    checks.add("alarm: the seed's callback acted", len(printed) == len([f for f in told if f["risk"] == "critical"]) > 0,
               printed=printed[:3])


def check_alarm(checks, tidemark):
    with Place(tidemark) as place:
        job = place.start("filler.py", f"FILL_S = {FILL_S}\n{FILLER}", True)
        ready = line_of(job)
        checks.add("alarm: the job runs", ready is not None, said=said(job) if ready is None else "")
        if ready is None:
            return
        detector = place.start("detector.py", detector_source(), False)
        first = detector.stdout.readline()
        checks.add("alarm: the seed's example watches", first == "READY\n", said=said(detector) if first != "READY\n" else "")
        if first != "READY\n":
            return
        seen, filler = [], {"ready": ready}
        reader = read_lines(detector, seen)
        time.sleep(1)
        checks.add("alarm: an idle GPU warns of nothing", not seen, seen=seen[:3])
        job.stdin.write("go\n")
        job.stdin.flush()
        while (moment := line_of(job)) is not None:
            filler[next(iter(moment))] = moment
        checks.add("alarm: the job told what it filled", {"begun", "filled"} <= set(filler), moments=filler)
        if not {"begun", "filled"} <= set(filler):
            return
        time.sleep(2)
        detector.stdin.write("end\n")
        detector.stdin.flush()
        reader.join(LIMIT_S)
        judge_alarm(checks, filler, seen)


PARTS = {"fragmentation": check_fragmentation, "alarm": check_alarm}


def main():
    tidemark, out, parts = command_line(__doc__)
    checks = Checks()
    try:
        for part in parts or PARTS:
            PARTS[part](checks, tidemark)
    finally:
        checks.save(out, "check_monitors")
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
