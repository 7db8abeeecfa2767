# SPDX-License-Identifier: MIT
"""Steps of loops whose updates do not come one an iteration (owners/turns.py)."""
import pytest
from owners_kit import script, watched
from torch_kit import check, query


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


@pytest.mark.parametrize("case, n", [("evaluated", 10), ("skipped", 9), ("failed", 6), ("seldom", 12), ("served", 5)])
def test_blocks_behind_the_last_update(loops, case, n):
    """They belong to the last step, in every table, unless something failed there."""
    run, pids = loops
    where = f"WHERE pid = {pids[case]} AND step IS NOT NULL"
    expected = [[str(n), "0", str(n - 1)]]
    for table in ("steps", "allocations", "ranges"):
        assert query(run, f"SELECT count(DISTINCT step), min(step), max(step) FROM {table} {where}") == expected, table


def test_rows_of_the_last_step(loops):
    """Its row has what came after its update: all blocks are in one row, and live bytes add up."""
    run, pids = loops
    of_case = f"WHERE pid = {pids['evaluated']}"
    rows = query(run, f"SELECT sum(allocations), sum(bytes), max(end_ns) FROM steps {of_case}")
    blocks = query(run, f"SELECT count(*), sum(size) FROM allocations {of_case}")
    assert [row[:2] for row in rows] == blocks
    ended = query(run, f"SELECT end_allocated, finished FROM steps {of_case} AND step >= 7 ORDER BY step")
    assert ended == [ended[0]] * 3 and ended[0][1] == "1"  # as it was when the update had been made
    check(run)


def test_several_models_answer_a_request(loops):
    assert per_step(loops, "towers", "sum(name = 'eval')") == [[str(step), "4"] for step in range(9)]


def test_a_model_that_is_called_repeatedly(loops):
    """The encoder belongs to the first token of its request."""
    assert per_step(loops, "tokens", "sum(name = 'eval')") == \
        [[str(step), "1" if step % 6 else "2"] for step in range(24)]
