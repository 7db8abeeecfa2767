# SPDX-License-Identifier: MIT
"""Owners of memory when tidemark comes in the middle of a training, and when it leaves."""
import subprocess

import pytest
from owners_kit import SCRIPTS
from torch_kit import Job, check, environment, query, tidemark

FORWARD = ["Model", "body", "body.0", "body.1", "norm", "head"]
PARAMETERS = {"body.0.weight": 8000, "body.0.bias": 200, "norm.weight": 200, "norm.bias": 200,
              "head.weight": 1200, "head.bias": 24}


class Looping(Job):
    """A training that makes as many steps as it is told."""

    def __init__(self, rings, *args):
        super().__init__(SCRIPTS / "looping.py", *args, env=environment(TIDEMARK_RING_DIR=str(rings)),
                         stdin=subprocess.PIPE)

    def step(self, n):
        self.process.stdin.write("\n" * n)
        self.process.stdin.flush()
        self.until(n)

    def end(self):
        """Everything that it printed; torch must be as it was."""
        lines = super().end()
        assert lines.pop() == "as it was\n"
        return lines


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the script prints when nobody attaches."""
    job = Looping(tmp_path_factory.mktemp("rings"))
    job.step(60)
    return job.end()


def same_losses(lines, alone):
    return lines == alone[:len(lines)]


@pytest.mark.parametrize("schedule", [[], ["--schedule"]], ids=["", "schedule"])
def test_attach_and_detach(schedule, tmp_path, rings, alone):
    """From then on modules, steps and categories are known, of blocks alive before too; detach
    leaves torch as it was."""
    run = tmp_path / "a.tmk"
    job = Looping(rings, *schedule)
    job.step(4)
    tidemark("attach", job.process.pid, "-o", run, rings=rings)
    job.step(8)
    tidemark("detach", job.process.pid, rings=rings)
    job.step(3)
    assert same_losses(job.end(), alone)
    check(run)
    look_at_steps(run, 8)
    look_at_categories(run)


def look_at_steps(run, n):
    """Whole steps, each with every module once and in order; the first may have begun before."""
    steps = [int(row[0]) for row in query(run, "SELECT DISTINCT step FROM ranges WHERE step IS NOT NULL "
                                               "ORDER BY step")]
    assert steps in (list(range(n)), list(range(n - 1)))
    for step in steps[1:]:
        assert query(run, f"SELECT name FROM ranges WHERE kind = 'stage' AND step = {step} ORDER BY start_ns") == \
            [["forward"], ["backward"], ["optimizer"]]
        names = query(run, "SELECT name FROM ranges WHERE kind = 'module' AND stage = 'forward' "
                           f"AND step = {step} ORDER BY start_ns")
        assert [row[0] for row in names] == FORWARD
        names = query(run, "SELECT name FROM ranges WHERE kind = 'module' AND stage = 'backward' "
                           f"AND step = {step} ORDER BY start_ns")
        assert [row[0] for row in names] == ["head", "norm", "body.1", "body.0"]
    (shares,) = query(run, "SELECT sum(CASE WHEN module <> '' THEN size ELSE 0 END) * 1.0 / sum(size) FROM "
                           f"allocations WHERE stage = 'forward' AND step = {steps[1]}")
    assert float(shares[0]) > 0.9


def look_at_categories(run):
    names = {row[0] for row in query(run, "SELECT tensor FROM allocations WHERE category = 'gradient' "
                                          "AND tensor IS NOT NULL AND tensor <> ''")}
    assert names == set(PARAMETERS)
    known = {row[0]: int(row[1]) for row in query(run, "SELECT name, bytes FROM parameters")}
    assert {name: known.get(name) for name in PARAMETERS} == PARAMETERS
    assert set(known) - set(PARAMETERS) == {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}


def test_attached_to_the_end(tmp_path, rings, alone):
    run = tmp_path / "a.tmk"
    job = Looping(rings)
    job.step(2)
    tidemark("attach", job.process.pid, "-o", run, rings=rings)
    job.step(6)
    job.process.stdin.close()
    assert job.process.stdout.readline(), "torch is not as it was: it is watched"
    job.process.wait(60)
    assert same_losses(job.lines, alone)
    check(run)
    look_at_steps(run, 6)


def test_attach_within_backward(tmp_path, rings, alone):
    """The backward that nobody saw begin ends with it; those after are as any."""
    run = tmp_path / "a.tmk"
    job = Looping(rings, "--within")
    job.step(2)
    job.step(1)
    assert job.lines.pop() == "within\n"
    tidemark("attach", job.process.pid, "-o", run, rings=rings)
    job.step(1)
    job.step(5)
    tidemark("detach", job.process.pid, rings=rings)
    assert same_losses(job.end(), alone)
    check(run)
    assert query(run, "SELECT name, depth FROM ranges WHERE kind = 'stage' ORDER BY start_ns") == \
        [["backward", "0"], ["optimizer", "0"], *[["forward", "0"], ["backward", "0"], ["optimizer", "0"]] * 5]
    look_at_categories(run)


def test_again(tmp_path, rings, alone):
    """Five times: nothing is left of the earlier ones."""
    job = Looping(rings)
    for i in range(5):
        run = tmp_path / f"{i}.tmk"
        job.step(1)
        tidemark("attach", job.process.pid, "-o", run, rings=rings)
        job.step(4)
        tidemark("detach", job.process.pid, rings=rings)
        look_at_steps(run, 4)
    assert same_losses(job.end(), alone)


@pytest.mark.parametrize("option", ["--no-modules", "--no-categories"])
def test_options_of_attach(option, tmp_path, rings, alone):
    run = tmp_path / "a.tmk"
    job = Looping(rings)
    job.step(2)
    tidemark("attach", job.process.pid, "-o", run, option, rings=rings)
    job.step(4)
    tidemark("detach", job.process.pid, rings=rings)
    assert same_losses(job.end(), alone)
    modules = int(query(run, "SELECT count(*) FROM ranges WHERE kind = 'module'")[0][0])
    tags = int(query(run, "SELECT count(*) FROM events WHERE kind = 'tag'")[0][0])
    assert (modules > 0, tags > 0) == ((False, True) if option == "--no-modules" else (True, False))
