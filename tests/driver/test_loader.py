# SPDX-License-Identifier: MIT
"""A watched program's questions to the loader have the answers that they have unwatched.

The recorder defines dlsym, whose answers depend on who asks; dlopen stays the loader's own. The
programs of tests/driver/loader ask in all ways, alone and with other libraries that are preloaded
too.
"""
import os
import subprocess

import pytest
from driver_kit import program

FOLDER = "tests/driver"


def built(name):
    return program(f"{FOLDER}/{name}")


def run(command, env):
    """(status, what it printed, what it said)"""
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def unwatched(watch, command, preload="", **more):
    return run(command, {**watch.environment(preload=False), "LD_PRELOAD": preload, **more})


def watched(watch, command, preload="", **more):
    """By `tidemark run`, which puts the recorder before what is preloaded already."""
    command, env = watch.command(command)
    if preload:
        env["LD_PRELOAD"] = preload
    return run(command, {**env, **more})


def watched_after(watch, command, preload, **more):
    """With the recorder behind what is preloaded already."""
    env = watch.environment(preload=True)
    env["LD_PRELOAD"] = f"{preload}:{env['LD_PRELOAD']}"
    return run(command, {**env, **more})


@pytest.fixture(name="loader")
def fixture_loader():
    path = built("loader_program")
    return [path, os.path.dirname(path)]


# ---- who asks

def test_answers_are_the_callers(watch, loader):
    plain = unwatched(watch, loader)
    assert (plain[0], plain[2]) == (0, "")
    assert plain[1].count("by its origin: 40\n") == 1
    assert plain[1].count("its own by next: 31\n") == 2
    assert "by its origin there: 40\n" in plain[1]
    assert watched(watch, loader) == plain


def test_bound_now(watch, loader):
    plain = unwatched(watch, loader, LD_BIND_NOW="1")
    assert plain[0] == 0
    assert watched(watch, loader, LD_BIND_NOW="1") == plain


# ---- others that are preloaded

@pytest.mark.parametrize("order", [watched, watched_after])
@pytest.mark.parametrize("names", [["wrap_loader"], ["wrap_loader_calls"],
                                   ["wrap_malloc"], ["wrap_malloc", "wrap_loader"]])
def test_beside_another_preload(watch, loader, names, order):
    preload = ":".join(built(f"lib{name}.so") for name in names)
    plain = unwatched(watch, loader, preload)
    assert plain[0] == 0
    assert plain[2].count("wrap_") == len(names)
    assert "not called" not in plain[2] and "dlsym 0" not in plain[2]
    assert order(watch, loader, preload) == plain


# ---- AddressSanitizer

def summary(answer):
    """Status, what was printed, and what the sanitizer found, without addresses."""
    found = [line for line in answer[2].splitlines() if "SUMMARY:" in line]
    return answer[0], answer[1], found


def asan_library(path):
    """The sanitizer's library that the program needs; None: it is in the program."""
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=True)
    found = [line.split() for line in done.stdout.splitlines() if "libasan" in line]
    return found[0][2] if found else None


@pytest.mark.parametrize("what, status, n_found", [("good", 0, 0), ("bad", 1, 1)])
def test_asan_in_the_program(watch, what, status, n_found):
    command = [built("loader_asan_static"), what]
    plain = summary(unwatched(watch, command))
    assert (plain[0], len(plain[2])) == (status, n_found)
    assert summary(watched(watch, command)) == plain


@pytest.mark.parametrize("what, status, n_found", [("good", 0, 0), ("bad", 1, 1)])
def test_asan_as_a_library(watch, what, status, n_found):
    """It wants to come first; so it is put there, or told to bear it."""
    command = [built("loader_asan"), what]
    plain = summary(unwatched(watch, command))
    assert (plain[0], len(plain[2])) == (status, n_found)
    assert summary(watched_after(watch, command, asan_library(command[0]))) == plain
    assert summary(watched(watch, command, ASAN_OPTIONS="verify_asan_link_order=0")) == plain
