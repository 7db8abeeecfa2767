# SPDX-License-Identifier: MIT
"""The shell examples of Tiny Torch's memory tools, as they stand there but for the program's name and the time."""
import json
import re
import shlex
import signal
import subprocess

from monitor_kit import BUILD, GIB, LIMIT_S, REPO, TIDEMARK, Monitor

TEXT = (REPO / "tests" / "data" / "seeds" / "s1.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```bash\n(.*?)```", TEXT, re.S) for line in block.splitlines()
         if line.startswith("python -m tools.memory ")]

WARNING = """[WARNING] OOM warning: GPU 0
   Risk level: critical
   Current usage: 87.5%
   Predicted OOM time: -
   Confidence: -
"""


def start(machine, line, *more):
    words = shlex.split(line.replace("python -m tools.memory", "/usr/bin/python3 -m tidemark"))
    env = {**machine.environment(), "PYTHONPATH": str(REPO / "python"), "PYTHONDONTWRITEBYTECODE": "1",
           "TIDEMARK_LIBRARY": str(BUILD / "libtidemark.so"), "TIDEMARK_PROGRAM": TIDEMARK}
    process = subprocess.Popen([*words, *more], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               cwd=machine.folder, env=env)
    machine.started.append(process)
    return process


def told(machine, line, *more):
    """(exit status, stdout) of one that ends by itself."""
    process = start(machine, line, *more)
    out, err = process.communicate(timeout=LIMIT_S)
    assert "Traceback" not in err
    return process.returncode, out


def ended(machine, line):
    """(exit status, stdout) of one that goes on until ^C."""
    status, out, _ = Monitor(start(machine, line, "--interval", "0.002")).end(signal.SIGINT)
    return status, out


def short(line, before, after):
    assert before in line
    return line.replace(before, after)


TOO_SHORT = re.compile(r"too short to tell: watched for \d\.\d s; a verdict takes \d+ s and 12 samples")


def test_lines(machine):
    """A card that is at 87.5 %, and an empty one."""
    machine.cards([f"process 41 {14 * GIB}"], [])
    profile, endless, oom, once, leak, everything, five_minutes = LINES

    assert told(machine, short(profile, "--duration 60", "--duration 0.3"))[0] == 0
    written = json.loads((machine.folder / "profile.json").read_text(encoding="utf-8"))
    first = written["devices"]["0"]
    assert first["current_usage"] == {"allocated": 14 * GIB, "free": 2 * GIB, "total": 16 * GIB,
                                      "utilization_percent": 87.5, "reserved": 0}
    assert first["statistics"]["samples_count"] + written["missed_samples"] == 3
    assert written["summary"] == {"total_devices": 2, "total_memory_gb": 32.0, "overall_utilization": 43.75}

    status, out = ended(machine, endless)
    rows = [line.split()[0] for line in out.splitlines()[1:]]
    assert (status, rows) == (0, ["0", "1"])
    status, out = ended(machine, oom)
    assert status == 1 and out.startswith(WARNING)
    assert told(machine, once)[0] == 0  # 87.5 % is below 90 %
    status, out = told(machine, leak, "--duration", "0.3")
    assert status == 1 and TOO_SHORT.match(out)
    for duration in ("1.5", "3", "6"):  # on a busy machine samples may be missed
        status, out = told(machine, leak, "--duration", duration, "--warm-up", "1")
        if not TOO_SHORT.match(out):
            break
    assert status == 0 and out.startswith("clean")
    status, out = ended(machine, everything)
    assert status == 1 and WARNING in out
    status, out = told(machine, short(five_minutes, "--duration 300", "--duration 0.3"))
    assert status == 1 and WARNING in out
