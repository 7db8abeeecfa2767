# SPDX-License-Identifier: MIT
"""Steps of loops whose updates do not come one an iteration (owners/turns.py)."""
import pytest
from owners_kit import script, watched
from torch_kit import query


@pytest.fixture(scope="module")
def loops(tmp_path_factory, counter):
    out, run, _ = watched(tmp_path_factory.mktemp("loops"), counter, script("turns.py"))
    return run, dict(line.split() for line in out.splitlines())


def per_step(loops, case, count):
    run, pids = loops
    return query(run, f"SELECT step, {count} FROM ranges WHERE pid = {pids[case]} AND step IS NOT NULL "
                      "GROUP BY step ORDER BY step")


def test_an_optimizer_with_a_turn_of_its_own(loops):
    """An iteration of a WGAN is a step: five updates of the critic and one of the generator."""
    assert per_step(loops, "critics", "sum(module = 'RMSprop' AND kind = 'module')") == \
        [[str(step), "6"] for step in range(8)]


def test_an_optimizer_that_never_steps(loops):
    """It is waited for through 16 further updates; then each update is a step."""
    assert per_step(loops, "unused", "sum(module = 'RMSprop' AND kind = 'module')") == \
        [["0", "17"], *[[str(step), "1"] for step in range(1, 24)]]


def test_a_population(loops):
    assert per_step(loops, "population", "sum(module = 'SGD' AND kind = 'module')") == \
        [[str(step), "5"] for step in range(7)]


def test_several_models_answer_a_request(loops):
    assert per_step(loops, "towers", "sum(name = 'eval')") == [[str(step), "4"] for step in range(9)]


def test_a_model_that_is_called_repeatedly(loops):
    """The encoder belongs to the first token of its request."""
    assert per_step(loops, "tokens", "sum(name = 'eval')") == \
        [[str(step), "1" if step % 6 else "2"] for step in range(24)]
