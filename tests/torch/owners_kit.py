# SPDX-License-Identifier: MIT
"""What the tests of owners share: runs, the oracle's log, and the rules of docs/format.md in Python.

An event is a tuple: ("a", block, size), ("f", block), ("tag", block, category, name),
("push", kind, name), ("pop", kind), ("step", n), or of the oracle ("due", n), ("hush", is_on) and
("node", module). Blocks are numbered in the order of their birth, so that two runs can be compared.
"""
import collections
import json
import math
import statistics
import subprocess
import typing
from pathlib import Path

from torch_kit import PYTHON, TIDEMARK, environment, query

HERE = Path(__file__).parent
SCRIPTS = HERE / "owners"
ORACLE = str(HERE / "owners_oracle.py")
NAMED = ("parameter", "gradient", "optimizer_state", "buffer")  # categories that are told by tags
OWN_STAGES = ("forward", "backward", "optimizer", "eval")  # those with rules of their own
BACKWARD = ("stage", "backward")
MIB = 1 << 20


class Block(typing.NamedTuple):
    size: int
    step: typing.Optional[int]
    stage: str
    module: str
    category: str
    name: str


class Row(typing.NamedTuple):
    """Of python.torch_trace."""
    step: typing.Optional[int]
    module: str
    stage: str
    allocated: int  # bytes


class Numbered:
    """Blocks by address, as they come."""

    def __init__(self):
        self.n, self.alive = 0, {}

    def born(self, address):
        self.alive[address] = self.n
        self.n += 1
        return self.n - 1

    def freed(self, address):
        return self.alive.pop(address, None)

    def at(self, address):
        return self.alive.get(address)


# ---- runs


def run(command, env, timeout=240):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def script(name, *args):
    path = SCRIPTS / name
    return [str(path if path.exists() else HERE / "workloads" / name), *args]


class Oracle:
    """Runs scripts that are not watched by us; see owners_oracle.py."""

    def __init__(self, counter):
        self.process = subprocess.Popen([PYTHON, ORACLE], env=environment(LD_PRELOAD=counter), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, folder, program, nodes=False):
        """(stdout, events) of a script."""
        log, out = (folder / f"{'nodes' if nodes else 'oracle'}.{kind}" for kind in ("log", "out"))
        task = {"program": program, "log": str(log), "out": str(out), "nodes": nodes}
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "0\n", out.read_text()
        return out.read_text(), events_of_log(log)

    def end(self):
        self.process.communicate()


def watched(folder, counter, program, *options, **more):
    """(stdout, run, events by the counter) of a script under `tidemark run`."""
    folder.mkdir(parents=True, exist_ok=True)
    where, log = folder / "a.tmk", folder / "watched.log"
    env = environment(COUNTER_FILE=str(log), LD_PRELOAD=counter, **more)
    done = run([TIDEMARK, "run", "--quiet", *options, "-o", str(where), "--", PYTHON, *program], env)
    assert done.stderr == ""
    return done.stdout, where, events_of_log(log)


def events_of_log(log):
    """Events of the counter's log, in order."""
    blocks, events = Numbered(), []
    for line in log.read_text().splitlines():
        what, rest = line.split(" ", 1)
        if what == "a":
            address, size = rest.split()
            events.append(("a", blocks.born(int(address)), int(size)))
        elif what == "f":
            block = blocks.freed(int(rest))
            if block is not None:
                events.append(("f", block))
        else:
            events.extend(event_of_note(rest, blocks))
    return events


def event_of_note(text, blocks):
    word, _, rest = text.partition(" ")
    if word == "tag":
        category, address, name = rest.split(" ", 2)
        block = blocks.at(int(address))
        return [("tag", block, category, name)] if block is not None else []
    if word in ("due", "hush"):
        return [(word, int(rest))]
    if word in ("push", "pop"):
        return [(word, *rest.split(" ", 1))]
    return [(word, rest)]


def events_of_trace(where):
    """Events that tidemark recorded, in order, with the thread behind each: [(thread, event)]."""
    blocks, events = Numbered(), []
    for kind, thread, address, size, category, name, range_, step in query(
            where, "SELECT kind, thread, address, size, category, name, range, step FROM events"):
        event = event_of_row(kind, address, size, category, name, range_, step, blocks)
        if event:
            events.append((thread, event))
    return events


def event_of_row(kind, address, size, category, name, range_, step, blocks):
    if kind == "allocate":
        return ("a", blocks.born(int(address)), int(size))
    if kind == "free":
        block = blocks.freed(int(address))
        return ("f", block) if block is not None else None
    if kind == "tag":
        block = blocks.at(int(address))
        return ("tag", block, category, name) if block is not None else None
    if range_ == "mode":  # test_grad_mode.py
        return None
    return {"open": ("push", range_, name), "close": ("pop", range_),
            "step": ("step", int(step or 0))}.get(kind)


def only_blocks(events):
    """Births and frees, to the last birth: at the end of a process Python frees what is left in an
    order that depends on who started the script."""
    events = [event for event in events if event[0] in "af"]
    while events and events[-1][0] == "f":
        events.pop()
    return events


# ---- the rules


class Born(typing.NamedTuple):
    size: int
    step: typing.Optional[int]
    stage: str
    module: str
    when: int


class Range(typing.NamedTuple):
    kind: str
    name: str
    when: int
    allocated: int


class Replay:
    """Who owns each block, by the rules, from events of one or more threads."""

    def __init__(self, events, with_threads=False):
        self.ranges = collections.defaultdict(list)  # by thread
        self.step = self.due = None
        self.hushed = 0
        self.born, self.ends, self.tags, self.rows = [], {}, {}, []
        self.allocated = self.peak = 0
        self.makers = {}  # block: category and module, by the functions that made it
        self.peak_blocks, self.alive = set(), set()
        for self.when, event in enumerate(events):
            self.thread, event = event if with_threads else (0, event)
            getattr(self, "on_" + event[0])(*event[1:])
        self.when += 1

    def innermost(self, kind):
        return next((r for r in reversed(self.ranges[self.thread]) if r.kind == kind), None)

    def name_of(self, kind):
        found = self.innermost(kind)
        return found.name if found else ""

    def on_a(self, block, size):
        assert block == len(self.born)
        if not self.hushed:
            self.begin_due()
        self.born.append(Born(size, self.step, self.name_of("stage"), self.name_of("module"), self.when))
        self.alive.add(block)
        self.allocated += size
        if self.allocated > self.peak:
            self.peak, self.peak_blocks = self.allocated, set(self.alive)

    def on_f(self, block):
        self.alive.remove(block)
        self.allocated -= self.born[block].size
        self.ends[block] = self.category_at_free(self.born[block])

    def on_tag(self, block, category, name):
        if category != "input" or self.born[block].stage not in OWN_STAGES:
            self.tags[block] = (category, name)

    def on_push(self, kind, name):
        self.begin_due()
        self.ranges[self.thread].append(Range(kind, name, self.when, self.allocated))
        if kind == "module":
            self.add_row(name, "pre")

    def on_pop(self, kind):
        ranges = self.ranges[self.thread]
        if any(r.kind == kind for r in ranges):
            while ranges[-1].kind != kind:
                ranges.pop()
            if kind == "module":
                self.add_row(ranges[-1].name, "post")
            ranges.pop()

    def on_step(self, step):
        self.step = step

    def on_due(self, step):
        self.due = step

    def on_hush(self, is_on):
        self.hushed = is_on

    def begin_due(self):
        if self.due is not None:
            self.step, self.due = self.due, None

    def on_node(self, _module):
        pass

    def on_tail(self, _=None):
        """The last step had no update: what began in it belongs to the step before."""
        if self.due is None and self.step:
            self.born = [b._replace(step=self.step - 1) if b.step == self.step else b for b in self.born]
            self.rows = [r._replace(step=self.step - 1) if r.step == self.step else r for r in self.rows]

    def add_row(self, module, side):
        stage = {"forward": "forward", "eval": "forward", "backward": "backward",
                 "optimizer": "step"}.get(self.name_of("stage"))
        if stage:
            self.rows.append(Row(self.step, module, f"{side} {stage}", self.allocated))

    def category_at_free(self, born):
        now = self.innermost("stage")
        same = now is not None and now.name == born.stage and born.when > now.when
        backwards = [r.when for ranges in self.ranges.values() for r in ranges
                     if (r.kind, r.name) == ("stage", "backward")]
        if born.stage == "backward":
            return "autograd_detail" if backwards and born.when > min(backwards) else "gradient"
        if born.stage in ("", *OWN_STAGES):
            return "temporary" if same else self.category_of_rest(born.stage, now)
        if now is not None and now.name == "backward":
            return "activation"
        return "temporary" if same else "other"

    @staticmethod
    def category_of_rest(stage, now):
        if stage == "":
            return "activation" if now is not None and now.name == "backward" else ""
        return {"forward": "activation", "eval": "activation", "optimizer": "optimizer_state"}[stage]

    def blocks(self):
        at_end = {"forward": "activation", "eval": "activation", "backward": "gradient",
                  "optimizer": "optimizer_state", "": ""}
        result = []
        for i, born in enumerate(self.born):
            rule = self.ends.get(i, at_end.get(born.stage, "other"))
            category, name = self.tags.get(i, (rule, ""))
            module = born.module or owner(category, name)
            if i in self.makers and i not in self.tags and rule in ("", "activation", "other"):
                category, module = self.makers[i][0], self.makers[i][1] or module
            result.append(Block(born.size, born.step, born.stage, module, category, name))
        return result

    def by_category(self):
        """Bytes at the peak."""
        blocks, sums = self.blocks(), collections.Counter()
        for i in self.peak_blocks:
            sums[blocks[i].category] += blocks[i].size
        return dict(sums)


def owner(category, name):
    """Parameters and buffers that are made outside every module belong to the one that has them."""
    return name.rpartition(".")[0] if category in ("parameter", "buffer") else ""


def backward_modules(events):
    """For each block born in a backward, but outside a recomputed forward: names that its module may
    have, from a log with nodes. {block: {module, ...}}

    A node that puts a gradient into a parameter was made by nobody's forward; it may count as the
    parameter's module or as the one before. What is first after a node's end may be a sum of two
    gradients, made before the next node begins: it may be either's."""
    owners, ranges, waiting, before = {}, [], [], ""
    for event in events:
        if event[0] == "push":
            ranges.append(event[1:])
            if event[1:] == BACKWARD:
                waiting.append([])
        elif event[0] == "pop":
            if ranges.pop() == BACKWARD:
                owners.update({block: None for block in waiting.pop()})
        elif ranges and ranges[-1] == BACKWARD and event[0] == "a":
            waiting[-1].append(event[1])
        elif event[0] == "node":
            name = event[1].removeprefix("=")
            for i, block in enumerate(waiting[-1]):
                owners[block] = {name, before} if i == 0 or event[1] != name else {name}
            waiting[-1].clear()
            before = name if event[1] == name else before
    return owners


# ---- what tidemark says


def blocks_of(where):
    """Every block as the table has it, in order of birth."""
    return [Block(int(size), int(step) if step else None, stage, module,
                  "" if category == "unknown" else category, name)
            for size, step, stage, module, category, name in query(
                where, "SELECT size, step, stage, module, category, tensor FROM allocations ORDER BY id")]


def makers_of(where):
    """What the functions that made a block say of it, by the table of docs/owners.md."""
    stacks, ids = collections.defaultdict(list), []
    for block, file, function in query(
            where, "SELECT a.id, f.file, f.function FROM allocations a JOIN frames f ON f.stack_id = a.stack_id "
                   "ORDER BY a.id, f.depth"):
        stacks[block].append((file, function.rpartition(".")[2]))
    ids = [row[0] for row in query(where, "SELECT id FROM allocations ORDER BY id")]
    found = {i: maker_of(stacks[block]) for i, block in enumerate(ids) if stacks[block]}
    return {i: maker for i, maker in found.items() if maker}


def maker_of(frames):
    file, function = frames[0]
    if file.endswith("/torch/nn/parallel/distributed.py") and \
            function in ("_ddp_init_helper", "forward", "_pre_forward"):
        return "gradient", ""
    if file.endswith("/random.py") and "/torch/" in file and function == "get_rng_state":
        return "other", "(RNG state)"
    if "/torch/nn/modules/" in file and function == "__init__":
        return "parameter", ""
    if any(file.endswith("/torch/nn/modules/module.py") and function == "_apply" for file, function in frames):
        return "parameter", ""
    return None


def rows_of(where):
    return [Row(int(step) if step else None, module, stage, int(allocated))
            for step, module, stage, allocated in query(
                where, "SELECT step, module, stage, CAST(allocated * 1048576 AS INTEGER) FROM python.torch_trace")]


def stage_to_compare(stage):
    """Stages that come from the Python stack (model_load, data, other ...) are no ranges."""
    return stage if stage in OWN_STAGES else ""


def peak_by(where, by):
    done = run([TIDEMARK, "peak", str(where), "--by", by, "--json"], environment())
    said = json.loads(done.stdout)
    return said, {row["key"]: row["bytes"] for row in said["by"]}


def check_same(found, expected):
    """That two long lists are equal; says where they first differ, and no more."""
    first = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), None)
    assert first is None, f"{first}: {found[first]} instead of {expected[first]}"
    assert len(found) == len(expected), f"{len(found)} instead of {len(expected)}"


# ---- S5's queries, computed from rows of torch_trace


def s5(rows):
    """What each of the five queries should give, as lists of tuples."""
    steps = collections.defaultdict(list)
    for row in rows:
        steps[row.step].append(row.allocated / MIB)
    known = sorted(step for step in steps if step is not None)
    return [[(step, statistics.fmean(steps[step]), max(steps[step]), min(steps[step])) for step in known],
            [(step, max(steps[step]) - min(steps[step])) for step in known
             if step > max(known) - 10 and max(steps[step]) - min(steps[step]) > 50],
            s5_modules(rows), s5_growth(steps), s5_variance(rows)]


def by_module(rows):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[(row.module, row.stage)].append(row.allocated / MIB)
    return groups


def s5_modules(rows, limit=10):
    groups = [(*key, statistics.fmean(values), len(values)) for key, values in by_module(rows).items()]
    return sorted(groups, key=lambda g: -g[2])[:limit]


def s5_growth(steps):
    order = sorted(steps, key=lambda step: (step is not None, step or 0))
    peaks = [(step, max(steps[step])) for step in order]
    return [(step, peak, before, peak - before)
            for (_, before), (step, peak) in zip(peaks, peaks[1:]) if peak > before]


def s5_variance(rows):
    groups = [(*key, statistics.stdev(values), max(values) - min(values))
              for key, values in by_module(rows).items() if len(values) > 1]
    return sorted((g for g in groups if g[2] > 10), key=lambda g: -g[2])


def same(found, expected):
    """A row of texts against one of values."""
    return len(found) == len(expected) and all(map(same_value, found, expected))


def same_value(found, expected):
    if isinstance(expected, str) or expected is None:
        return found == (expected or "")
    return math.isclose(float(found), expected, rel_tol=1e-9, abs_tol=1e-9)
