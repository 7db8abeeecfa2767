# SPDX-License-Identifier: MIT
"""The fixtures of these tests: see top_kit.py."""
import pytest
from top_kit import Terminal, usual_machine


@pytest.fixture(name="machine", scope="module")
def fixture_machine(tmp_path_factory):
    """(the machine, {PID: what to call it})"""
    machine, pids = usual_machine(tmp_path_factory.mktemp("machine"))
    yield machine, pids
    machine.close()


@pytest.fixture(name="open_terminal")
def fixture_open_terminal(machine):
    opened = []

    def open_one(width, height, *arguments, **more):
        opened.append(Terminal(machine[0], width, height, arguments, **more))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()
