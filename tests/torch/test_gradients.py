# SPDX-License-Identifier: MIT
"""Gradients have their parameters' names after every backward, whoever says where they are: Python, or
gradients.c, with a function that newer torch has (here a stand-in, aoti.c)."""
import collections
import json
import subprocess
from pathlib import Path

import pytest
from owners_kit import blocks_of, run, script, watched
from test_owners import SCRIPTS
from torch_kit import PYTHON, TIDEMARK, check, environment, query

HERE = Path(__file__).parent
LIBRARIES = list(Path("/usr/lib").glob("*/libtorch_cpu.so.1.13"))


@pytest.fixture(scope="session")
def aoti(tmp_path_factory):
    library = tmp_path_factory.mktemp("aoti") / "libtorch_cpu.so.aoti"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(HERE / "aoti.c"),
                    str(LIBRARIES[0])], check=True)
    return str(library)


def gradients_of(folder, *options):
    """(what each backward left, [(step, name, bytes)] of the trace, how often the stand-in was asked)"""
    where = folder / "a.tmk"
    done = run([TIDEMARK, "run", "--quiet", "-o", str(where), "--", PYTHON, *script("gradients.py", *options)],
               environment())
    assert done.stderr == ""
    check(where)
    *steps, n_asked = done.stdout.splitlines()
    rows = query(where, "SELECT step, tensor, size FROM allocations WHERE category = 'gradient' AND "
                        "tensor IS NOT NULL")
    return list(map(json.loads, steps)), [(int(step), name, int(size)) for step, name, size in rows], int(n_asked)


def check_names(steps, rows):
    expected = [(i, name, size) for i, found in enumerate(steps) for name, size in found.items()]
    assert len(expected) > 150
    assert collections.Counter(rows) == collections.Counter(expected)


def test_gradients_by_python(tmp_path):
    steps, rows, _ = gradients_of(tmp_path)
    check_names(steps, rows)


def test_gradients_by_torch(tmp_path, aoti):
    """From the third backward on, when it is known where nodes have their parameters; but for a parameter's
    first, for backward 20, before which some were gone, and for sparse ones. In backward 25 one was looked for
    that did not come to be."""
    steps, rows, n_asked = gradients_of(tmp_path, aoti)
    check_names(steps, rows)
    n_first = len({"late.weight", "late.bias"}) + len({"first.weight"})
    assert n_asked == sum(map(len, steps[2:])) - n_first - len(steps[20]) + 1


def test_python_is_not_asked_each_time(tmp_path, aoti):
    """The stand-in says from step 33 on that there are none: that is believed."""
    steps, rows, _ = gradients_of(tmp_path, aoti, "33")
    assert all(steps[33:])
    check_names(steps[:33], rows)


def case(folder, name, *options):
    """(expected rows, rows, Python's questions in each backward, the stand-in's in all)"""
    where = folder / f"{name}{len(options)}.tmk"
    done = run([TIDEMARK, "run", "--quiet", "-o", str(where), "--", PYTHON,
                *script("gradient_cases.py", name, *options)], environment())
    assert done.stderr == ""
    check(where)
    *lines, n_asked = map(json.loads, done.stdout.splitlines())
    expected = collections.Counter(pair for found, _ in lines for pair in found.items())
    rows = query(where, "SELECT tensor, size FROM allocations WHERE category = 'gradient' AND tensor IS NOT NULL")
    return expected, collections.Counter((name, int(size)) for name, size in rows), [n for _, n in lines], n_asked


@pytest.mark.parametrize("name", ["late", "inputs", "turns", "gone", "captured", "shared", "kept"])
def test_cases(name, tmp_path, aoti):
    """The same names; and but for the first backwards Python is asked seldom."""
    expected, rows, asked, _ = case(tmp_path, name)
    assert rows == expected and sum(asked) >= sum(expected.values())
    expected, rows, asked, n_asked = case(tmp_path, name, aoti)
    assert rows == expected
    n_inputs = 1  # of a root: Python is asked for its address
    often = [i for i, n in enumerate(asked) if n > n_inputs]
    assert len(often) < len(asked) * (0.6 if name == "shared" else 0.35), often
    assert name == "kept" or n_asked > sum(expected.values()) // 2


def test_gradients_that_others_take(tmp_path, aoti):
    """Whether one is still there when Python looks is a matter of chance; what matters is that nobody reads
    what is gone."""
    assert len(case(tmp_path, "taken", aoti)[2]) == 300


def test_parameters_that_change_places(tmp_path, aoti):
    """Python sees it at once; else names are right again after 61 backwards, at the latest."""
    expected, rows, _, _ = case(tmp_path, "moved")
    assert rows == expected
    _, rows, _, _ = case(tmp_path, "moved", aoti)
    wrong = rows - expected
    assert sum(rows.values()) == sum(expected.values()) and 0 < sum(wrong.values()) <= 61 * 4


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "ddp"])
def test_the_same_of_every_training(name, tmp_path, counter, aoti):
    """Names, categories, all else of every block: whoever says where gradients are."""
    n_asked = tmp_path / "n_asked"
    out, by_python, _ = watched(tmp_path / "python", counter, script(*SCRIPTS[name]))
    same_out, by_torch, _ = watched(tmp_path / "torch", f"{counter}:{aoti}", script(*SCRIPTS[name]),
                                    AOTI_FILE=str(n_asked))
    assert out == same_out
    assert name in ("inference", "odd") or int(n_asked.read_text()) > 0  # odd: a backward or two of each
    assert blocks_of(by_python) == blocks_of(by_torch)
    check(by_torch)
