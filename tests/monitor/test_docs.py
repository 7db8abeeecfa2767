# SPDX-License-Identifier: MIT
"""The commands of docs/monitors.md run as they stand there, but for their duration."""
import os
import re
import subprocess

import pytest
from monitor_kit import BUILD, REPO

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
