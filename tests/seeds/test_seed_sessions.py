# SPDX-License-Identifier: MIT
"""The seeds' examples as they stand there: see seed_sessions.py. tests/gpu/check_seeds.py runs the same on a GPU."""
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
import seed_sessions
from seed_blocks import SEEDS, seed_block, seed_blocks
from seed_samples import line_pattern, missing_keys, missing_lines

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "monitor"))
from monitor_kit import BUILD, GIB, TIDEMARK, machine_fixture  # noqa: E402, F401

SAMPLES = ("S1.9", "S2.11", "S2.12", "S2.13", "S2.14", "S3.3", "S3.4", "S4.4")


@pytest.fixture(name="rings")
def fixture_rings():
    folder = tempfile.mkdtemp(prefix="tidemark-test-", dir="/dev/shm")
    yield folder
    shutil.rmtree(folder)


def all_ok(check, *arguments):
    """How many checks it made, each of which must hold."""
    found = []
    check(lambda what, ok, **figures: found.append((what, bool(ok), figures)), *arguments)
    failed = [f"{what}: {figures}" for what, ok, figures in found if not ok]
    assert not failed, "\n".join(failed)
    return len(found)


def test_python_of_s1(machine):
    machine.cards([f"process 41 {12 * GIB}"], [])
    env = {**machine.environment(), "PYTHONPATH": str(REPO / "python"), "PYTHONDONTWRITEBYTECODE": "1",
           "TIDEMARK_LIBRARY": str(BUILD / "libtidemark.so"), "TIDEMARK_PROGRAM": TIDEMARK, "TIDEMARK_OFF": "1"}
    assert all_ok(seed_sessions.check_monitors, machine.folder, env) == 8


def test_python_of_s2_and_s3(tmp_path, rings):
    assert all_ok(seed_sessions.check_python, tmp_path, rings) >= 46


def test_session_of_s5(tmp_path, rings):
    assert all_ok(seed_sessions.check_session, tmp_path, rings) >= 16


def test_blocks_are_all_there():
    """So many as the documents have."""
    assert [len(seed_blocks(seed)) for seed in SEEDS] == [11, 17, 13, 4, 9]


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_can_fail(sample):
    """A sample is like itself; a word, a decimal or a unit that differs is seen."""
    text = seed_block(sample).text
    assert missing_lines(sample, text.splitlines()) == []
    for before, after in (("B", "iB"), (".", ","), (":", " :"), ("秒", "分")):
        changed = text.replace(before, after)
        assert changed == text or missing_lines(sample, changed.splitlines()) != [], before


def test_patterns():
    line = "[INFO]   GPU 1: 内存变化 +234.5MB, 利用率变化 +2.1%"
    assert line_pattern(line) != line
    assert missing_keys({"a": {"b": 1.0, "c": "x"}, "d": [{"e": 1}]}, {"a": {"b": "1", "c": "y"}, "d": []}) == ["/a/b", "/d"]
    assert missing_keys({"a": {"b": 1.0}}, {"a": {"b": 2, "more": None}}) == []
