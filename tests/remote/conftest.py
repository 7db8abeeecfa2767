# SPDX-License-Identifier: MIT
"""One sshd, and one watched Python program, for all tests of this folder: see remote_kit.py."""
import pytest
from remote_kit import Machine, Workshop, need_sshd


@pytest.fixture(scope="session", name="machine")
def fixture_machine():
    need_sshd()
    machine = Machine()
    machine.check_login()
    yield machine
    machine.close()


@pytest.fixture(scope="session", name="start")
def fixture_start(tmp_path_factory, machine):
    """Start a watched Python program on that machine, in a folder of its own: its Workshop, and its PID."""
    shops = []

    def start(*script):
        shops.append(Workshop(tmp_path_factory.mktemp("remote")))
        return shops[-1], shops[-1].target(*script)

    yield start
    for shop in shops:
        shop.close()


@pytest.fixture(scope="session", name="pid")
def fixture_pid(start):
    return start()[1]


@pytest.fixture(name="shop")
def fixture_shop(tmp_path):
    workshop = Workshop(tmp_path)
    yield workshop
    workshop.close()
