# SPDX-License-Identifier: MIT
"""Programs that are hard on whoever stands in front of the driver do the same watched, and come to an end."""
import json
import os
import subprocess

import pytest
from driver_kit import MIB, program

PROGRAM = "tests/driver/odd/odd_program"
STUB = "tests/driver/odd/libodd_stub.so"
CONSTRUCTOR = "tests/driver/odd/libodd_constructor.so"


def run_both(watch, cards, name, *args, **more):
    """What it says; the sizes that were recorded."""
    env = cards.environment(**more)
    alone = subprocess.run([program(name), *args], env={**os.environ, **env}, capture_output=True, text=True, timeout=30,
                           check=False)
    done = watch(program(name), *args, env=env, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    if not watch.traces():
        return alone.stdout, []
    answer = json.loads(watch.tidemark("query", "--json", watch.run, "SELECT size FROM segments ORDER BY id"))
    return alone.stdout, [row["size"] for row in answer["rows"]]


def test_stub_that_looks_for_the_driver_itself(watch, cards):
    """Linked with it, or not: nobody calls us from behind."""
    assert run_both(watch, cards, PROGRAM, "stub", program(STUB)) == ("0 0 0 0\n", [3 * MIB])


def test_linked_with_such_a_stub(watch, cards):
    folder = os.path.dirname(program(STUB))
    more = {"LD_LIBRARY_PATH": f"{cards.libraries}:{folder}"}
    assert run_both(watch, cards, "tests/driver/odd/odd_linked", **more) == ("0 0 0 0\n", [3 * MIB])


def test_driver_that_is_unloaded_and_comes_back(watch, cards):
    assert run_both(watch, cards, PROGRAM, "reload") == ("0 0 0 0\n", [3 * MIB])


@pytest.mark.parametrize("what", ["allocate", "fork"])
def test_constructor_of_a_library(watch, cards, what):
    """With the loader locked it calls the driver, or forks."""
    out, sizes = run_both(watch, cards, PROGRAM, "load", program(CONSTRUCTOR), ODD=what)
    assert out == "0 0 0 0\nloaded\nend\n"
    assert sorted(sizes) == sorted([3 * MIB, *[MIB] * 40, *([5 * MIB] if what == "allocate" else [])])


def test_no_driver(watch, cards):
    """Our names are not to be found where the driver's are not."""
    assert run_both(watch, cards, PROGRAM, "probe", LD_LIBRARY_PATH="") == ("none told\n", [])


def test_newer_function(watch, cards):
    """With arguments that we do not know it is let alone."""
    folder = os.path.dirname(program("tests/driver/odd/future/libcuda.so.1"))
    assert run_both(watch, cards, PROGRAM, "newer", LD_LIBRARY_PATH=folder) == ("0 0 2003\n", [])
