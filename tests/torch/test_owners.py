# SPDX-License-Identifier: MIT
"""Whose memory it is: step, stage, module and category of every block of real trainings, against an
oracle that finds them in another way (owners_oracle.py), block by block.

Each script of owners/ runs under `tidemark run`, with the counter beside it, and under the oracle.
Both see the same blocks in the same order, or else one of them has changed what torch does."""
import collections

import pytest
from owners_kit import (NAMED, Replay, backward_modules, blocks_of, check_same, events_of_trace,
                        makers_of, only_blocks, rows_of, script, stage_to_compare, watched)
from torch_kit import check, query

SCRIPTS = {
    "mlp": ["mlp.py"],
    "checkpointed, reentrant": ["checkpointed.py", "reentrant"],
    "checkpointed": ["checkpointed.py", "plain"],
    "accumulate": ["accumulate.py"],
    "gan": ["gan.py"],
    "frozen": ["frozen.py"],
    "evaluate": ["evaluate.py"],
    "errors": ["errors.py"],
    "inference": ["inference.py"],
    "odd": ["odd.py"],
    "closures": ["closures.py"],
    "dp": ["wrapped.py", "dp"],
    "ddp": ["wrapped.py", "ddp"],
    "encoder": ["encoder.py", "--device", "cpu", "--steps", "3", "--layers", "6", "--dim", "64",
                "--batch", "4", "--seq", "32"],
}
OWN_STEPS = ("gan", "closures", "inference")  # their steps are not the optimizer's: tests of their own


class Both:
    """A script, watched by us and by the oracle."""

    def __init__(self, folder, counter, oracle, name):
        folder.mkdir()
        program = script(*SCRIPTS[name])
        self.name = name
        self.out, self.run, self.counted = watched(folder, counter, program)
        self.expected_out, self.events = oracle.run(folder, program)
        self.nodes = oracle.run(folder, program, nodes=True)[1]
        self.expected = Replay(self.events)
        self.expected.makers = self.makers = makers_of(self.run)
        self.found = blocks_of(self.run)


@pytest.fixture(scope="session")
def both(tmp_path_factory, counter, oracle):
    folder, done = tmp_path_factory.mktemp("owners"), {}

    def get(name):
        if name not in done:
            done[name] = Both(folder / name.replace(", ", "_"), counter, oracle, name)
        return done[name]
    return get


EACH = pytest.mark.parametrize("name", list(SCRIPTS))
EXACT = pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "ddp"])


def births(events):
    return [event for event in events if event[0] == "a"]


@EACH
def test_nothing_changed(name, both):
    """Losses to the last digit; every block is born and freed at the same moment as unwatched."""
    runs = both(name)
    assert runs.out == runs.expected_out
    check_same(births(runs.counted), births(runs.events))
    check_same(births(runs.nodes), births(runs.events))
    check(runs.run)
    if name != "ddp":  # a thread of its own frees there, when it comes to it
        check_same(only_blocks(runs.counted), only_blocks(runs.events))
        peaks = query(runs.run, "SELECT max(peak_allocated) FROM steps")
        assert peaks == [[str(runs.expected.peak)]]


@EACH
def test_stages(name, both):
    runs = both(name)
    check_same([(b.size, stage_to_compare(b.stage)) for b in runs.found],
               [(b.size, b.stage) for b in runs.expected.blocks()])


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in OWN_STEPS])
def test_steps(name, both):
    runs = both(name)
    check_same([(b.size, b.step) for b in runs.found], [(b.size, b.step) for b in runs.expected.blocks()])


@EACH
def test_modules(name, both):
    """In forward and in the optimizer by what is called, in backward by whose forward made the node."""
    runs = both(name)
    backward = backward_modules(runs.nodes)
    for i, (found, expected) in enumerate(zip(runs.found, runs.expected.blocks())):
        if i not in backward:
            assert found.module == expected.module, (i, found, expected)
        elif backward[i] is not None:  # one that no module made is that of whatever is around
            assert found.module in {name or expected.module for name in backward[i]}, (i, found, backward[i])


@EXACT
def test_categories(name, both):
    runs = both(name)
    for i, (found, expected) in enumerate(zip(runs.found, runs.expected.blocks())):
        if expected.category:
            assert found.category == expected.category, (i, found, expected)
        else:  # born outside everything, and not given to a model
            assert found.category in ("", "other"), (i, found)
        if expected.category in NAMED:
            assert found.name == expected.name, (i, found, expected)


@EXACT
def test_bytes_at_the_peak(name, both):
    """By category: what `peak` says is the sum of the oracle's blocks."""
    runs = both(name)
    sums = collections.Counter()
    for category, size in query(runs.run, "SELECT category, sum(size) FROM peak GROUP BY category"):
        sums["" if category in ("unknown", "other") else category] += int(size)
    expected = collections.Counter(runs.expected.by_category())
    expected[""] += expected.pop("other", 0)
    assert +sums == +expected


@EXACT
def test_table_of_torch_trace(name, both):
    """Rows of forward and optimizer are the oracle's calls, in order, with the bytes at that moment;
    those of backward are the nodes' modules in their order."""
    runs = both(name)
    found = rows_of(runs.run)
    mine = [row for row in found if "backward" not in row.stage]
    theirs = [row for row in runs.expected.rows if "backward" not in row.stage]
    if name in OWN_STEPS:
        mine, theirs = ([row._replace(step=None) for row in rows] for rows in (mine, theirs))
    check_same(mine, theirs)
    order = [row.module for row in found if row.stage == "pre backward"]
    expected = order_of_nodes(runs.nodes)
    if name == "checkpointed, reentrant":  # its own nodes begin before, and end behind, those inside
        order, expected = ([name for name in names if name != "Encoder"] for names in (order, expected))
    if name != "errors":  # a node that fails has no end
        check_same(runs_of(order), runs_of(expected))


def runs_of(names):
    """Without repetitions, one behind the other."""
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def order_of_nodes(events):
    """Modules of nodes in the order in which they end; those that nobody made are left out."""
    return [event[1] for event in events if event[0] == "node" and event[1] and event[1][0] != "="]


@EACH
def test_reader_follows_the_rules(name, both):
    """Blocks and rows made here in Python from the recorded events are those of the tables."""
    runs = both(name)
    again = Replay(events_of_trace(runs.run), with_threads=True)
    again.makers = runs.makers
    found = [b._replace(stage=stage_to_compare(b.stage), category=b.category.replace("other", ""))
             for b in runs.found]
    expected = [b._replace(category=b.category.replace("other", "")) for b in again.blocks()]
    check_same([b._replace(name="") for b in found], [b._replace(name="") for b in expected])
    check_same(rows_of(runs.run), again.rows)


@EACH
def test_ranges_are_closed(name, both):
    """Whatever happens inside, a range that opened has closed; modules lie in stages, and no range
    is closed by another's end."""
    runs = both(name)
    assert query(runs.run, "SELECT kind, name FROM ranges WHERE end_ns IS NULL AND kind = 'module'") == []
    open_at_end = query(runs.run, "SELECT name FROM ranges WHERE end_ns IS NULL")
    assert open_at_end == [] or open_at_end == [["forward"]]
    stacks = collections.defaultdict(list)
    for thread, event in events_of_trace(runs.run):
        if event[0] == "push":
            assert event[1] == "stage" or "stage" in stacks[thread], event
            stacks[thread].append(event[1])
        elif event[0] == "pop":
            assert stacks[thread].pop() == event[1]


# ---- what the scripts are about


def test_accumulation(both):
    """Four forwards and backwards in each step; a gradient is one block through all four."""
    run = both("accumulate").run
    assert query(run, "SELECT step, sum(name = 'forward'), sum(name = 'backward'), sum(name = 'optimizer') "
                      "FROM ranges WHERE kind = 'stage' GROUP BY step ORDER BY step") == \
        [["0", "4", "4", "1"], ["1", "4", "4", "1"], ["2", "4", "4", "1"]]
    assert query(run, "SELECT tensor, size, count(*) FROM allocations WHERE category = 'gradient' AND "
                      "tensor <> '' GROUP BY tensor ORDER BY tensor") == \
        [["0.bias", "120", "3"], ["0.weight", "2400", "3"], ["2.bias", "12", "3"], ["2.weight", "360", "3"]]
    assert query(run, "SELECT tensor, size FROM allocations WHERE category = 'optimizer_state' ORDER BY tensor") \
        == [["0.bias.momentum_buffer", "120"], ["0.weight.momentum_buffer", "2400"],
            ["2.bias.momentum_buffer", "12"], ["2.weight.momentum_buffer", "360"]]


def test_two_optimizers(both):
    """Each steps once in a step."""
    run = both("gan").run
    steps = query(run, "SELECT step, sum(module = 'SGD'), sum(module = 'Adam') FROM ranges "
                       "WHERE kind = 'module' AND stage = 'optimizer' GROUP BY step ORDER BY step")
    whole = steps[1:-1] if steps[0][1:] != ["1", "1"] else steps
    assert len(steps) in (4, 5) and len(whole) >= 3
    assert all(row[1:] == ["1", "1"] for row in whole)
    names = {row[0] for row in query(run, "SELECT DISTINCT module FROM ranges WHERE kind = 'module'")}
    parts = ("", ".layers", ".layers.0", ".layers.1", ".layers.2")
    assert names == {"BCEWithLogitsLoss", "SGD", "Adam",
                     *(model + part for model in ("generator", "discriminator") for part in parts)}
    states = {row[0] for row in query(run, "SELECT tensor FROM allocations WHERE category = 'optimizer_state'")}
    assert states == {f"generator.layers.{i}.{kind}.{state}" for i in (0, 2) for kind in ("weight", "bias")
                      for state in ("step", "exp_avg", "exp_avg_sq")}


def test_frozen_and_tied(both):
    """No gradient and no state for what is frozen; one block for a weight with two names; buffers."""
    run = both("frozen").run
    sizes = {row[0]: int(row[1]) for row in query(
        run, "SELECT tensor, size FROM allocations WHERE category = 'parameter' AND tensor <> ''")}
    assert sizes == {"embedding.weight": 3200, "frozen.weight": 1024, "frozen.bias": 64, "norm.weight": 64,
                     "norm.bias": 64, "hidden.weight": 1024, "hidden.bias": 64}
    buffers = {row[0]: int(row[1]) for row in query(
        run, "SELECT tensor, size FROM allocations WHERE category = 'buffer'")}
    assert buffers == {"norm.running_mean": 64, "norm.running_var": 64, "norm.num_batches_tracked": 8}
    trained = set(sizes) - {"frozen.weight", "frozen.bias"}
    assert {row[0] for row in query(run, "SELECT tensor FROM allocations WHERE category = 'gradient' "
                                         "AND tensor IS NOT NULL AND tensor <> ''")} == trained
    assert {row[0] for row in query(run, "SELECT tensor FROM allocations WHERE category = 'optimizer_state'")} \
        == {f"{name}.{state}" for name in trained for state in ("step", "exp_avg", "exp_avg_sq")}


def test_evaluation(both):
    """Between training steps, and after the last; what it makes is temporary but for its result; steps do not count it."""
    run = both("evaluate").run
    assert query(run, "SELECT step, name, count(*) FROM ranges WHERE kind = 'stage' GROUP BY step, name "
                      "ORDER BY min(start_ns)") == \
        [["0", "forward", "1"], ["0", "backward", "1"], ["0", "optimizer", "1"],
         ["1", "forward", "1"], ["1", "backward", "1"], ["1", "optimizer", "1"], ["2", "eval", "3"],
         ["2", "forward", "1"], ["2", "backward", "1"], ["2", "optimizer", "1"],
         ["3", "forward", "1"], ["3", "backward", "1"], ["3", "optimizer", "1"], ["3", "eval", "4"]]
    assert query(run, "SELECT count(*), sum(size) FROM allocations WHERE stage = 'eval' AND "
                      "category = 'activation' AND size = 176") == [["6", "1056"]]


def test_errors(both):
    """A failed step is no step; the next one is as if nothing had been."""
    runs = both("errors")
    assert [line.split()[2] for line in runs.out.splitlines() if line.split()[2].isalpha()] == \
        ["forward", "backward", "optimizer"]
    assert query(runs.run, "SELECT step, sum(name = 'forward'), sum(name = 'backward'), sum(name = 'optimizer')"
                           " FROM ranges WHERE kind = 'stage' GROUP BY step ORDER BY step") == \
        [["0", "1", "1", "1"], ["1", "2", "1", "1"], ["2", "2", "2", "1"], ["3", "2", "2", "2"]]
    whole = [row.module for row in rows_of(runs.run) if row.step == 0]
    last = [row.module for row in rows_of(runs.run) if row.step == 3]
    assert last[-len(whole):] == whole


def test_inference(both):
    """Without an optimizer each answer is a step."""
    run = both("inference").run
    assert query(run, "SELECT step, count(*) FROM ranges WHERE name = 'eval' GROUP BY step ORDER BY step") == \
        [["0", "1"], ["1", "1"], ["2", "1"], ["3", "1"]]
    assert query(run, "SELECT name FROM ranges WHERE kind = 'module' AND step = 2 ORDER BY start_ns") == \
        [["Sequential"], ["0"], ["1"], ["2"], ["3"], ["4"]]
    assert query(run, "SELECT category, sum(size) FROM allocations WHERE category IN ('parameter', 'buffer') "
                      "GROUP BY category ORDER BY category") == \
        [["buffer", "72"], ["parameter", str((8 * 27 + 8 + 8 + 8 + 288 * 4 + 4) * 4)]]


def test_recomputed_forward(both):
    """Of layers that are checkpointed: a second forward inside backward, and its modules."""
    for name in ("checkpointed", "checkpointed, reentrant"):
        run = both(name).run
        calls = query(run, "SELECT count(*) FROM ranges WHERE kind = 'module' AND name = 'layers.1.linear1' "
                           "AND stage = 'forward' AND step = 1")
        assert calls == [["2"]], name
        assert query(run, "SELECT count(*) FROM ranges r WHERE kind = 'stage' AND name = 'forward' AND step = 1 "
                          "AND EXISTS (SELECT 1 FROM ranges b WHERE b.kind = 'stage' AND b.name = 'backward' AND "
                          "b.start_ns < r.start_ns AND b.end_ns > r.end_ns)") == [["3"]], name


def test_used_twice_and_alone(both):
    run = both("odd").run
    calls = dict(query(run, "SELECT name, count(*) FROM ranges WHERE kind = 'module' AND stage = 'forward' "
                            "AND step = 1 GROUP BY name"))
    assert calls == {"Odd": "1", "encoder": "2", "encoder.0": "2", "encoder.0.linear": "2", "encoder.0.relu": "2",
                     "encoder.1": "2", "encoder.1.linear": "2", "encoder.1.relu": "2", "shared": "2", "squares": "1",
                     "made": "1", "made.0": "1", "made.1": "1"}


def test_wrappers(both):
    """Names are those of the model, whatever is around it."""
    for name, wrapper in (("dp", "DataParallel"), ("ddp", "DistributedDataParallel")):
        names = {row[0] for row in query(both(name).run, "SELECT DISTINCT name FROM ranges WHERE kind = 'module'")}
        assert names - {wrapper} == {"Net", "body", "body.0", "body.1", "head", "SGD"}, name
        parameters = {row[0] for row in query(
            both(name).run, "SELECT tensor FROM allocations WHERE category = 'parameter'")}
        assert parameters == {"body.0.weight", "body.0.bias", "head.weight", "head.bias"}


def test_trainer_and_closures(both):
    """Six steps of Adam, four of them a trainer's; a closure's forward lies inside the optimizer."""
    run = both("closures").run
    assert query(run, "SELECT step, count(*) FROM ranges WHERE name = 'Adam' GROUP BY step ORDER BY step") == \
        [[str(step), "1"] for step in range(6)]
    assert query(run, "SELECT count(*) FROM ranges r WHERE kind = 'stage' AND name = 'forward' AND step IN (4, 5) AND "
                      "EXISTS (SELECT 1 FROM ranges o WHERE o.kind = 'stage' AND o.name = 'optimizer' AND "
                      "o.start_ns < r.start_ns AND o.end_ns > r.end_ns)") == [["2"]]
    assert query(run, "SELECT count(*) FROM ranges WHERE name = 'LBFGS' AND kind = 'module'") == [["2"]]


def test_share_with_a_module(both):
    """Of the encoder's bytes: forward 99 %, backward 95 %."""
    shares = dict(query(both("encoder").run,
                        "SELECT stage, 1.0 * sum(CASE WHEN module IS NOT NULL AND module <> '' THEN size ELSE 0 END) "
                        "/ sum(size) FROM allocations WHERE stage IN ('forward', 'backward') GROUP BY stage"))
    assert float(shares["forward"]) >= 0.99
    assert float(shares["backward"]) >= 0.95


def test_buckets(both):
    """DDP's reducer has a copy of all gradients, made before the first step."""
    run = both("ddp").run
    assert query(run, "SELECT a.category, a.size FROM allocations a JOIN frames f ON f.stack_id = a.stack_id "
                      "WHERE f.depth = 0 AND f.file LIKE '%/nn/parallel/distributed.py' AND a.step IS NULL "
                      "AND a.size = 1008") == [["gradient", "1008"]]
