# SPDX-License-Identifier: MIT
"""The five queries of Probing's memory page (docs/probing.md), as written, on real trainings.

What they must give is computed here in Python: from the recorded events, by the rules of the
table's own description, and for what needs no backward from the oracle's log."""
import statistics

import pytest
from owners_kit import MIB, Replay, events_of_trace, s5, s5_modules, same, script, watched
from torch_kit import REPO, query

# Large enough that a step moves by more than the 50 MB, and a module by the 10 MB, that they ask for.
PROGRAMS = {
    "encoder": ["encoder.py", "--device", "cpu", "--steps", "3", "--layers", "2", "--dim", "256", "--batch", "12",
                "--seq", "128"],
    "leak_graph": ["leak_graph.py", "--device", "cpu", "--steps", "12"],
    "mlp": ["mlp.py"],
}
QUERIES = sorted((REPO / "bench" / "queries").glob("s5_*.sql"))


class Asked:
    def __init__(self, folder, counter, oracle, name):
        program = script(*PROGRAMS[name])
        self.run = watched(folder, counter, program)[1]
        self.rows = Replay(events_of_trace(self.run), with_threads=True).rows
        self.expected = s5(self.rows)
        self.oracle = Replay(oracle.run(folder, program)[1]).rows


@pytest.fixture(scope="module", params=list(PROGRAMS))
def asked(request, tmp_path_factory, counter, oracle):
    return Asked(tmp_path_factory.mktemp("s5"), counter, oracle, request.param)


def test_as_written():
    """The queries are those of the page, but for layout."""
    page = " ".join((REPO / "docs" / "probing.md").read_text(encoding="utf-8").split())
    assert len(QUERIES) == 5
    for path in QUERIES:
        assert " ".join(path.read_text(encoding="utf-8").split()) in page, path.name


@pytest.mark.parametrize("number", range(5))
def test_query(number, asked):
    found = query(asked.run, QUERIES[number].read_text(encoding="utf-8"))
    expected = asked.expected[number]
    assert len(found) == len(expected)
    if number in (2, 4):  # in the order of a figure that rows may share, also those at the limit
        assert same([row[2] for row in found], [row[2] for row in expected])
        every = {row[:2]: row for row in (s5_modules(asked.rows, None) if number == 2 else expected)}
        expected = [every[tuple(row[:2])] for row in found]
    for row, values in zip(found, expected):
        assert same(row, values)


def test_there_is_something_to_find(asked, request):
    sizes = [len(rows) for rows in asked.expected]
    name = request.node.callspec.params["asked"]
    if name == "encoder":
        assert sizes[0] == 3 and sizes[1] == 3 and sizes[2] == 10 and sizes[3] >= 1 and sizes[4] >= 4
    else:
        assert sizes[0] == {"leak_graph": 12, "mlp": 3}[name] and sizes[2] == 10


def test_forward_as_the_oracle_has_it(asked):
    """Average and number of rows by module, and the most of each step, but for backward."""
    for stage in ("pre forward", "post forward", "pre step", "post step"):
        found = query(asked.run, "SELECT module, avg(allocated), count(*) FROM python.torch_trace "
                                 f"WHERE stage = '{stage}' GROUP BY module ORDER BY module")
        groups = {}
        for row in asked.oracle:
            if row.stage == stage:
                groups.setdefault(row.module, []).append(row.allocated / MIB)
        expected = [(name, statistics.fmean(values), len(values)) for name, values in sorted(groups.items())]
        assert len(found) == len(expected) > 0
        assert all(map(same, found, expected))
    found = query(asked.run, "SELECT step, max(allocated), min(allocated) FROM python.torch_trace "
                             "WHERE stage LIKE '%forward' GROUP BY step ORDER BY step")
    steps = {}
    for row in asked.oracle:
        if row.stage.endswith("forward"):
            steps.setdefault(row.step, []).append(row.allocated / MIB)
    assert all(map(same, found, [(step, max(values), min(values)) for step, values in sorted(steps.items())]))
