# SPDX-License-Identifier: MIT
"""Real torch on the CPU (Debian's python3-torch), watched in each of the three ways."""
import os
from pathlib import Path

import pytest
from owners_kit import Oracle
from torch_kit import compiled


@pytest.fixture(scope="session")
def counter(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("counter"), "counter")


@pytest.fixture(scope="session")
def in_thread(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("in_thread"), "in_thread")


@pytest.fixture(scope="session")
def oracle(counter):
    """Who owns what, found in another way than ours."""
    process = Oracle(counter)
    yield process
    process.end()


@pytest.fixture(autouse=True)
def rings(tmp_path_factory, monkeypatch):
    """Rings in a folder of the test's own, so that one left behind is seen."""
    folder = tmp_path_factory.mktemp("rings", numbered=True)
    ring_folder = Path("/dev/shm") / ("tidemark-test-" + folder.name + str(os.getpid()))
    ring_folder.mkdir()
    monkeypatch.setenv("TIDEMARK_RING_DIR", str(ring_folder))
    yield ring_folder
    left = list(ring_folder.iterdir())
    for path in left:
        path.unlink()
    ring_folder.rmdir()
    assert not left, "a ring was left behind"
