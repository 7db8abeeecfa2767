# SPDX-License-Identifier: MIT
"""What the recorded run says so far, of all its ranks: will it run out, what leaks, what is fragmented.

All of it is the program's: `tidemark leak` and the tables forecast, ooms and fragmentation, over the run folder
that this process records into; other ranks write theirs into the same. Where nothing is recorded the reason is
told, and nothing is made up.
"""
import os
from typing import Any, Callable, Dict, List, Optional

from . import _program
from ._at_exit import traces

END = 1 << 62  # a time after every other
RISKS = ("low", "medium", "high", "critical")
NOT_RECORDED = "this process is not recorded: import tidemark before the training, or use tidemark run"
NOTHING_YET = "nothing is recorded yet: no process of the run has allocated a block"
NOT_CACHED = "no process of the run has memory on a GPU, and torch keeps no cache of the host's"
LEAK_KEYS = {"verdict": None, "leaks": [], "falls_back": [], "not_judged": [], "steps": None}

FRAGMENTATION = ("SELECT pid, rank, device, reserved, allocated, free, largest_free, largest_allocatable, releasable, "
                 f"segments, blocks, free_blocks FROM fragmentation({END}) WHERE pool IS NULL")


def run_folder() -> Optional[str]:
    """Where this process and the other ranks record; None: nowhere."""
    import tidemark
    if not tidemark.is_watched():
        return None
    if tidemark.run and os.path.isdir(tidemark.run):
        return os.path.abspath(tidemark.run)
    for process in _program.ask("ps", "--json")["processes"]:  # after `tidemark attach`
        if process["pid"] == os.getpid():
            return process["run"]
    return None


def will_record() -> bool:
    """Whether this process records into a folder that is known; it is made with the first block."""
    import tidemark
    return tidemark.is_watched() and tidemark.run is not None


def _answered(ask: Callable[[str], Dict[str, Any]], otherwise: Dict[str, Any]) -> Dict[str, Any]:
    """What it answers of the run, or that it does not, and why."""
    try:
        run = run_folder()
        if run is None or not traces(run):
            return {**otherwise, "reason": NOT_RECORDED if run is None and not will_record() else NOTHING_YET}
        return {**ask(run), "reason": None}
    except _program.NoAnswer as reason:
        return {**otherwise, "reason": str(reason)}


def highest_risk(risks: List[Optional[str]]) -> Optional[str]:
    """Of those that are known."""
    known = [risk for risk in risks if risk in RISKS]
    return max(known, key=RISKS.index) if known else None


def oom() -> Dict[str, Any]:
    """`ranks`: table forecast; `refused`: table ooms; `risk_level`: the highest of them."""
    def ask(run: str) -> Dict[str, Any]:
        forecasts = _program.rows(run, "SELECT * FROM forecast")
        return {"risk_level": highest_risk([row["risk"] for row in forecasts]), "ranks": forecasts,
                "refused": _program.rows(run, "SELECT * FROM ooms")}

    return _answered(ask, {"risk_level": None, "ranks": [], "refused": []})


def leak() -> Dict[str, Any]:
    """As `tidemark leak RUN --json`, without what it says of living processes."""
    def ask(run: str) -> Dict[str, Any]:
        answer = _program.ask("leak", run, "--json")
        return {key: value for key, value in answer.items() if key not in ("host", "python")}

    return _answered(ask, LEAK_KEYS)


def _unknown_fragmentation(ranks: List[Dict[str, Any]]) -> Optional[str]:
    """Why it is not known, of all of them or of some."""
    if not ranks:
        return NOT_CACHED
    unseen = [str(row["pid"]) for row in ranks if row["segments"] is None]
    return f"segments were not seen of process {', '.join(unseen)}: attached to" if unseen else None


def fragmentation() -> Dict[str, Any]:
    """`ranks`: of each process and device, from its real blocks and segments, as of now."""
    found = _answered(lambda run: {"ranks": _program.rows(run, FRAGMENTATION)}, {"ranks": []})
    return {**found, "reason": found["reason"] or _unknown_fragmentation(found["ranks"])}


def off() -> Dict[str, Any]:
    """The keys, with TIDEMARK=0."""
    return {"run": None, "oom": {"risk_level": None, "ranks": [], "refused": [], "reason": "TIDEMARK=0"},
            "leak": {**LEAK_KEYS, "reason": "TIDEMARK=0", "host": None, "python": None},
            "fragmentation": {"ranks": [], "reason": "TIDEMARK=0"}}
