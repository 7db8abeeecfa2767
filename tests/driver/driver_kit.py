# SPDX-License-Identifier: MIT
"""Machines with made-up cards, and programs on them, watched or not.

The cards are those of tests/fake_cuda: a text says what there is (fake_machine.h).
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fault"))
from fault_kit import REPO, Watch, fresh_rings, program, watch  # noqa: E402,F401

MIB = 1 << 20
GIB = 1 << 30
PYTHON = "/usr/bin/python3"  # the system's: another may be first on the PATH
SCRIPTS = REPO / "tests" / "fake_cuda" / "programs"
CONTEXT_BYTES = 300 * MIB  # what the stand-in's context costs


class Cards:
    """A machine: the text that says what cards it has, and how programs get to them."""

    def __init__(self, folder):
        self.state = folder / "cards"
        self.libraries = os.path.dirname(program("tests/fake_cuda/libcuda.so.1"))
        self.make(GIB * 4)

    def make(self, *totals, more=""):
        """Cards of these sizes; `more`: lines about the last."""
        cards = "".join(f"device {total} NVIDIA H200\n" for total in totals)
        self.state.write_text("driver 580.95.05\ncuda 13000\n" + cards + more, encoding="utf-8")

    def environment(self, **more):
        return {"FAKE_CUDA_STATE": str(self.state), "LD_LIBRARY_PATH": self.libraries, **more}

    def program(self, name):
        return program("tests/fake_cuda/programs/" + name)

    def run(self, *command, **more):
        """Not watched; its list."""
        env = {**os.environ, **self.environment(**more)}
        env.pop("LD_PRELOAD", None)
        done = subprocess.run([str(word) for word in command], env=env, capture_output=True,
                              text=True, timeout=240, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return listed(done.stdout)


def listed(text):
    """What a program printed of what it allocated (cuda_list.h)."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(name="cards")
def fixture_cards(tmp_path):
    return Cards(tmp_path)
