# SPDX-License-Identifier: MIT
"""The commands of docs/monitors.md run as they stand there, but for their duration."""
import json
import os
import re
import subprocess

import pytest
from monitor_kit import BUILD, GIB, REPO

TEXT = (REPO / "docs" / "monitors.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.S) for line in block.splitlines()]


def test_there_are_some():
    assert len(LINES) == 6 and all(line.startswith("tidemark ") for line in LINES)


@pytest.mark.parametrize("line", LINES)
def test_line(machine, line):
    """On a machine without a card, of which a quarter is used."""
    environment = machine.environment()
    environment["PATH"] = f"{BUILD}{os.pathsep}{environment['PATH']}"
    short = re.sub(r"--duration \d+", "--duration 1.5", line)
    if line.startswith("tidemark leak"):
        short += " --duration 1.5 --warm-up 1"
    done = subprocess.run(["sh", "-c", short], cwd=machine.folder, env=environment, text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def keys_of(thing):
    """Keys and kinds of values, all the way down; unknown values have any kind."""
    if isinstance(thing, dict):
        return {key: keys_of(value) for key, value in thing.items()}
    return [keys_of(value) for value in thing] if isinstance(thing, list) else type(thing) in (str, bool)


def test_report_of_profile(machine):
    """The example has the keys of the report, all of them, in its order."""
    machine.cards([f"process 41 {GIB}"])
    (text,) = [block for block in re.findall(r"```json\n(.*?)```", TEXT, re.S) if '"forecast"' in block]
    told, report = json.loads(text), machine.json("profile", "--duration", "0.1", "--interval", "0.01", "--json")
    assert keys_of(told["devices"]["0"]) == keys_of(report["devices"]["0"])
    assert [list(part) for part in (told, told["summary"])] == [list(part) for part in (report, report["summary"])]


def test_times_of_leak():
    """The example says that it took as long as the command asks for: a minute, when nothing is."""
    (command,) = [line for line in LINES if line.startswith("tidemark leak")]
    assert "--duration" not in command
    assert f"$ {command}" not in TEXT and "100 MB or more in 60.000 s\n" in TEXT
