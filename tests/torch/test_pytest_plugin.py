# SPDX-License-Identifier: MIT
"""`pytest -p tidemark.pytest_plugin`: budgets of memory, with the CPU in the place of a GPU."""
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from torch_kit import LIBRARY, PYTHON, REPO, TIDEMARK, environment

TESTS = '''
import pytest
import torch

MIB = 1 << 20


def make(size):
    return torch.empty(size, dtype=torch.uint8)  # line 9


@pytest.fixture(scope="module")
def model():
    return make(3 * MIB)


@pytest.mark.limit_gpu_memory("2 MiB")
def test_fits():
    for _ in range(5):
        make(2 * MIB - 4096)


@pytest.mark.limit_gpu_memory("2 MiB")
def test_too_much():
    kept = make(2 * MIB), torch.ones(MIB // 4)  # line 25
    del kept
    make(MIB)


def test_peak(gpu_memory):
    assert gpu_memory.peak < MIB
    make(5 * MIB)
    assert 5 * MIB <= gpu_memory.peak < 6 * MIB
    make(MIB)
    assert 5 * MIB <= gpu_memory.peak < 6 * MIB


@pytest.mark.limit_gpu_memory("4 MiB")
def test_what_was_alive_counts(model):
    make(2 * MIB)


@pytest.mark.limit_gpu_memory(8 * MIB)
def test_bytes(model):
    make(2 * MIB)


@pytest.mark.limit_gpu_memory("1 KiB")
def test_fails_by_itself():
    make(MIB)
    assert False, "its own failure"


def test_limit_from_here(limit_gpu_memory):
    make(8 * MIB)
    limit_gpu_memory("5 MiB")  # with the model's 3
    make(MIB)


def test_limit_from_here_too_much(limit_gpu_memory):
    limit_gpu_memory("5 MiB")
    make(3 * MIB)


@pytest.mark.limit_gpu_memory("plenty")
def test_nonsense():
    pass


@pytest.mark.limit_gpu_memory()
def test_no_size():
    pass


@pytest.fixture
def small(limit_gpu_memory):
    limit_gpu_memory("5 MiB")


def test_limit_of_a_fixture(small):
    make(MIB)


def test_limit_of_a_fixture_too_much(small):
    make(3 * MIB)


@pytest.mark.xfail(strict=True)
@pytest.mark.limit_gpu_memory("1 KiB")
def test_known_to_be_too_much():
    make(MIB)


@pytest.mark.xfail(raises=ZeroDivisionError)
@pytest.mark.limit_gpu_memory("1 KiB")
def test_expects_another_failure():
    make(MIB)


@pytest.mark.limit_gpu_memory("1 MiB")
class TestTraining:
    def test_steps(self):
        model = torch.nn.Linear(256, 1024)  # 1 MiB and a bit
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.ones(1, 256)).sum().backward()
            optimizer.step()
'''


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """{test: its failure's text, or None}."""
    folder = tmp_path_factory.mktemp("budgets")
    rings = folder / "rings"
    rings.mkdir()
    (folder / "tests").mkdir()
    (folder / "tests" / "test_budget.py").write_text(TESTS)
    env = environment(TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=LIBRARY,
                      TIDEMARK_PROGRAM=TIDEMARK, TMPDIR=str(folder))
    command = [PYTHON, "-m", "pytest", "-q", "-p", "tidemark.pytest_plugin", "-p", "no:cacheprovider",
               "--strict-markers", "--junitxml", str(folder / "out.xml"), "tests"]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    cases = ElementTree.parse(folder / "out.xml").getroot().iter("testcase")
    found = {case.get("name"): None if case.find("failure") is None else case.find("failure").text
             for case in cases}
    assert " 2 xfailed" not in done.stdout and " 1 xfailed" in done.stdout
    assert sorted(path.name for path in (folder / "tests").iterdir()) == ["test_budget.py"]
    assert not list(rings.iterdir())
    return found


def test_verdicts(results):
    failed = {name for name, failure in results.items() if failure is not None}
    assert failed == {"test_too_much", "test_what_was_alive_counts", "test_fails_by_itself", "test_nonsense",
                      "test_no_size", "test_steps", "test_limit_from_here_too_much",
                      "test_limit_of_a_fixture_too_much", "test_expects_another_failure"}
    assert set(results) - failed == {"test_fits", "test_peak", "test_bytes", "test_limit_from_here",
                                     "test_limit_of_a_fixture", "test_known_to_be_too_much"}


def test_message(results):
    """The peak, the budget, and the lines that held most, largest first."""
    lines = results["test_too_much"].splitlines()
    assert lines[0] == "3.0 MiB allocated on cpu at the peak, 1.0 MiB more than the budget of 2.0 MiB"
    assert re.fullmatch(r"     2[.]0 MiB  /.*/test_budget[.]py:9 make", lines[2])
    assert re.fullmatch(r"     1[.]0 MiB  /.*/test_budget[.]py:25 test_too_much", lines[3])
    run = re.fullmatch(r"more: tidemark peak (\S+) --at (step:\d+)", lines[-1])
    done = subprocess.run([TIDEMARK, "peak", run[1], "--at", run[2]], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3.0 MiB allocated on cpu at the step's peak")
    assert "5.0 MiB allocated on cpu" in results["test_what_was_alive_counts"]
    assert "more than the budget of 1.0 MiB" in results["test_steps"]


def test_other_failures(results):
    assert "its own failure" in results["test_fails_by_itself"]
    assert "allocated on" not in results["test_fails_by_itself"]
    assert results["test_nonsense"] == 'limit_gpu_memory: a size is wanted, as in "2 GiB", not \'plenty\''
    assert results["test_no_size"].startswith("limit_gpu_memory takes one argument")


OFF_TESTS = '''
import pytest


@pytest.mark.limit_gpu_memory("1 B")
def test_marker():
    pass


def test_fixture(limit_gpu_memory):
    limit_gpu_memory("1 B")


def test_peak(gpu_memory):
    assert gpu_memory.peak < 1


@pytest.mark.limit_gpu_memory("plenty")
def test_nonsense():
    pass
'''


@pytest.mark.parametrize("plugin", ["tidemark.pytest_plugin", "tidemark_pytest"])
def test_switched_off(tmp_path, plugin):
    """TIDEMARK=0: tests run, none fails for its memory, and the header says so once; by either way in."""
    (tmp_path / "test_off.py").write_text(OFF_TESTS)
    env = environment(PYTHONPATH=str(REPO / "python"), TIDEMARK="0", TIDEMARK_LIBRARY="/nowhere")
    done = subprocess.run([PYTHON, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "--strict-markers",
                           "-W", "error", "-rs"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 2 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("tidemark: TIDEMARK=0, so budgets of GPU memory are not checked\n") == 1
    assert "TIDEMARK=0: memory is not measured" in done.stdout
    assert 'a size is wanted, as in "2 GiB", not \'plenty\'' in done.stdout


def test_sizes():
    code = ("from tidemark.pytest_plugin import parse_size as p, size_text as t;"
            "print(p('2 GiB'), p('512MB'), p('1.5k'), p('7'), p(9), p(' 3 B '), t(1023), t(1536), t(3 << 30))")
    env = environment(PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=LIBRARY, TIDEMARK_OFF="1")
    done = subprocess.run([PYTHON, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "2147483648 536870912 1536 7 9 3 1023 B 1.5 KiB 3.00 GiB\n"
