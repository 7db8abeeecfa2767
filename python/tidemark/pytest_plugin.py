# SPDX-License-Identifier: MIT
"""A budget of GPU memory for a test. Where tidemark is installed by pip, pytest finds it by itself, and it records
from the first such test on (tidemark_pytest.py); elsewhere, and to record from the start: `pytest -p tidemark.pytest_plugin`.

    @pytest.mark.limit_gpu_memory("2 GiB")
    def test_training_fits(): ...

    def test_inference_fits(limit_gpu_memory):
        limit_gpu_memory("1 GiB")  # from here to the end of the test
        ...

    def test_cache_is_small(gpu_memory):
        ...
        assert gpu_memory.peak < 1 << 30

The test fails when torch had more than that allocated on a device at any moment of it, whatever was
alive before included. Where there is no GPU the CPU's tensors stand in. What is measured is what
libtidemark records anyway: a test is a step of the run, and `tidemark` is asked for its peak and, when
it was too much, for what was alive then. Under TIDEMARK=0 tests run with their budgets unchecked, which pytest's
header says.
"""
import itertools
import os
import re
import shutil
import sys

import pytest

import tidemark
import tidemark_pytest
from tidemark import _program
from tidemark_pytest import MARKER, is_off

UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SHOWN_LINES = 5
_LIMITS = pytest.StashKey()  # of a test: [(bytes, since when)]
_tokens = itertools.count()
_keeps_run = False


def parse_size(size):
    """Bytes of "2 GiB", "512MB" (units are powers of 1024) or a number; ValueError says what is wrong."""
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    match = re.fullmatch(r"\s*(\d+(?:[.]\d+)?)\s*(?:([KMGT])(?:i?B)?|B?)\s*", str(size), re.IGNORECASE)
    if match is None:
        raise ValueError(f'{MARKER}: a size is wanted, as in "2 GiB", not {size!r}')
    return int(float(match[1]) * UNITS[(match[2] or "").upper()])


def size_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


class GpuMemory:
    """Memory since this was made."""

    def __init__(self):
        if is_off():
            return
        if not tidemark.is_watched():
            raise RuntimeError("tidemark does not record in this process, so there is nothing to measure")
        self._token = f"{os.getpid()}-{next(_tokens)}"
        tidemark.step()  # the history keeps each step's peak
        tidemark.mark("pytest", self._token)

    def _steps(self):
        """The device with the largest peak since then: its peak, and the step it was in. Not its time: that of what is
        still in the ring is told a little differently each time one asks."""
        wanted = "cuda:%" if _has_gpu() else "cpu"
        rows = _program.rows(str(os.getpid()), f"""
            SELECT device, max(peak_allocated) AS peak, step FROM steps
            WHERE device LIKE '{wanted}' AND start_ns >=
                (SELECT max(start_ns) FROM steps WHERE start_ns <=
                    (SELECT max(time_ns) FROM marks WHERE event = 'pytest' AND info = '{self._token}'))
            GROUP BY device ORDER BY peak DESC LIMIT 1""")
        return rows[0] if rows else {"device": wanted, "peak": 0, "step": None}

    @property
    def peak(self):
        """Most bytes that torch had allocated on one device at once so far. Under TIDEMARK=0 nobody knows: the test
        ends here, as skipped."""
        if is_off():
            pytest.skip("TIDEMARK=0: memory is not measured")
        return self._steps()["peak"]


def _has_gpu():
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


def _line_of(stack):
    """The user's line of a stack, innermost first: not torch's own."""
    for frame in stack:
        if "-packages/torch/" not in frame and not frame.startswith("<"):
            return frame
    return stack[0] if stack else "(unknown)"


def _holders(peak):
    """Lines that held most at the peak, largest first."""
    found = _program.ask("peak", str(os.getpid()), "--at", f"step:{peak['step']}", "--device", peak["device"],
                         "--by", "stack", "--json")
    lines = {}
    for row in found["by"]:
        line = _line_of(row["stack"])
        lines[line] = lines.get(line, 0) + row["bytes"]
    return sorted(lines.items(), key=lambda item: -item[1])[:SHOWN_LINES]


def _complaint(limit, memory):
    """Why the test fails, or None."""
    if is_off():
        return None
    peak = memory._steps()
    if peak["peak"] <= limit:
        return None
    global _keeps_run
    _keeps_run = True
    lines = [f"{size_text(peak['peak'])} allocated on {peak['device']} at the peak, "
             f"{size_text(peak['peak'] - limit)} more than the budget of {size_text(limit)}",
             "alive then, by the line that allocated it:"]
    lines += [f"  {size_text(size):>10}  {line}" for line, size in _holders(peak)]
    lines += [f"more: tidemark peak {tidemark.run} --at step:{peak['step']}"]
    return "\n".join(lines)


# ---- pytest

def pytest_configure(config):
    if not config.pluginmanager.is_registered(tidemark_pytest):  # has the marker and the header
        config.pluginmanager.register(tidemark_pytest, tidemark_pytest.__name__)


@pytest.fixture
def gpu_memory():
    """.peak: most bytes that torch had allocated on one device at once since the test began."""
    return GpuMemory()


@pytest.fixture
def limit_gpu_memory(request):
    """limit_gpu_memory("2 GiB"): the rest of the test fails if it takes more, whatever is alive by then included."""
    def limit(size):
        request.node.stash[_LIMITS].append((parse_size(size), GpuMemory()))
    return limit


def _limit_of(item):
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return None
    if len(marker.args) != 1 or marker.kwargs:
        raise ValueError(f'{MARKER} takes one argument, as in @pytest.mark.{MARKER}("2 GiB")')
    return parse_size(marker.args[0])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[_LIMITS] = []  # fixtures may add theirs; those of a run of the test before this one are over


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    """Too much memory is a failure of the call itself, as an assertion in it would be: so xfail and the like hold."""
    complaint = None
    limits = item.stash[_LIMITS]
    try:
        limit = _limit_of(item)
        if limit is not None:
            limits.append((limit, GpuMemory()))
    except (RuntimeError, ValueError) as reason:
        complaint = str(reason)
    outcome = yield
    try:
        found = [_complaint(limit, memory) for limit, memory in limits]
        complaint = next(filter(None, [complaint, *found]), None)
    except RuntimeError as reason:
        complaint = f"{MARKER}: {reason}"
    if complaint is None or outcome.excinfo is not None:  # what the test itself says comes first
        return
    failure = pytest.fail.Exception(complaint, pytrace=False)
    if not hasattr(outcome, "force_exception"):
        raise failure  # pluggy before 1.1: no other way, and nothing is around this wrapper
    outcome.force_exception(failure)


def pytest_unconfigure():
    folder = os.path.dirname(tidemark.run or "")
    if os.path.basename(folder).startswith("tidemark-pytest-") and not _keeps_run:
        shutil.rmtree(folder, ignore_errors=True)
