# SPDX-License-Identifier: MIT
"""Python's objects by type, looked at now and then: which types have more and more.

A look costs about 0.3 s per million objects, during which Python's other threads wait; so the next comes when five
hundred times as much has passed: a fifth of a percent of a core. The first ten come after a hundred times as much, so that
there is a verdict soon. What is kept are differences to the first look.

A type leaks when the number of its objects rises by the rule of _growth.py, over JUDGED_LOOKS looks or more since it
began to, and by LEAST objects. What modules make while they are imported is no growth: where modules came between two looks, objects of
their types, and those of Python's own that modules are made of, are left out.
"""
import os
import sys
import threading
import time
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

from . import _objects
from ._growth import steady_rise
from ._words import log

LEAST = 100       # objects of a type, to be called a leak
JUDGED_LOOKS = 7  # as many are needed to judge
MOST_LOOKS = 30   # kept; then every second is dropped, and looks come half as often
GAP_S = 1.0       # between two looks, at least
GAP_COSTS = 500   # and this many times the cost of one
EARLY_COSTS = 100  # the same, of the first EARLY_LOOKS, so that there is a verdict soon
EARLY_LOOKS = 10


class ObjectGrowth:
    """From the first look, which is taken here, on."""

    def __init__(self) -> None:
        self.cost_ms, self._n_before, self._before = _objects.count_types()
        self._n_now = self._n_before
        self._more: List[Dict[str, int]] = [{}]  # of each look, what differs from the first
        self._last: Dict[str, int] = self._before
        self._modules: FrozenSet[str] = frozenset(sys.modules)
        self._imported: Dict[str, int] = {}  # of each type, how many objects imports have made
        self._start_s = time.monotonic()
        self._spacing = 1.0
        self._last_s = time.monotonic()
        self._busy = threading.Lock()

    def look_if_due(self) -> None:
        """Look, if it is time to."""
        costs = EARLY_COSTS if len(self._more) < EARLY_LOOKS else GAP_COSTS
        gap = max(GAP_S, costs * self.cost_ms / 1e3) * self._spacing
        if time.monotonic() - self._last_s >= gap:
            self.look()

    def look(self) -> None:
        """Look now; nothing while another thread does."""
        if not self._busy.acquire(blocking=False):
            return
        try:
            cost_ms, self._n_now, counts = _objects.count_types()
            self.cost_ms = max(self.cost_ms, cost_ms)
            self._leave_imports_out(counts)
            more = {name: count - self._before.get(name, 0) - self._imported.get(name, 0)
                    for name, count in counts.items()}
            self._add({name: grown for name, grown in more.items() if grown})
            self._last_s = time.monotonic()
            log.debug("python: %d objects, %.3f ms", self._n_now, cost_ms)
        finally:
            self._busy.release()

    def _leave_imports_out(self, counts: Dict[str, int]) -> None:
        """Note what the modules have made that came since the last look."""
        modules = frozenset(sys.modules)
        new, before, self._modules, self._last = modules - self._modules, self._last, modules, counts
        if not new:
            return
        for name, count in counts.items():
            grown, module = count - before.get(name, 0), name.rpartition(".")[0]
            if grown > 0 and (_is_pythons(module) or _is_of(module, new)):
                self._imported[name] = self._imported.get(name, 0) + grown

    def _add(self, more: Dict[str, int]) -> None:
        if len(self._more) >= MOST_LOOKS:
            self._more = self._more[::2]
            self._spacing *= 2
        self._more.append(more)

    def report(self) -> Dict[str, Any]:
        """As `tidemark leak PID --json` has it in `python`, with a verdict; types that leak come first, then those that
        grew most. `verdict_reason`: why there is none yet."""
        looks = list(self._more)
        growing = [self._row(name, grown, looks) for name, grown in looks[-1].items() if grown > 0]
        growing.sort(key=lambda row: (row["verdict"] != "leak", row["before"] - row["after"], row["type"]))
        verdict, reason = self._whole_verdict(growing, len(looks))
        return {"reason": None, "objects_before": self._n_before, "objects": self._n_now,
                "cost_ms": round(self.cost_ms, 3), "looks": len(looks), "growing": growing, "verdict": verdict,
                "verdict_reason": reason}

    def _whole_verdict(self, growing: List[Dict[str, Any]], n: int) -> Tuple[Optional[str], Optional[str]]:
        """That of all types together, and why there is none."""
        if n < JUDGED_LOOKS:
            return None, (f"too short to tell: {n} looks in {time.monotonic() - self._start_s:.1f} s; a verdict takes "
                          f"{JUDGED_LOOKS}")
        if any(row["verdict"] == "leak" for row in growing):
            return "leak", None
        unsure = next((row["type"] for row in growing if row["verdict"] is None), None)
        if unsure is None:
            return "clean", None
        return None, f"too short to tell: {unsure} grows for fewer than {JUDGED_LOOKS} looks"

    def _row(self, name: str, grown: int, looks: List[Dict[str, int]]) -> Dict[str, Any]:
        before = self._before.get(name, 0) + self._imported.get(name, 0)
        return {"type": name, "before": before, "after": before + grown,
                "verdict": self._verdict([look.get(name, 0) for look in looks])}

    @staticmethod
    def _verdict(series: List[int]) -> Optional[str]:
        if len(series) < JUDGED_LOOKS:
            return None
        start = next((i for i, count in enumerate(series) if count != series[0]), len(series)) - 1
        if steady_rise(series[start:]) < LEAST:
            return "clean"
        return "leak" if len(series) - start >= JUDGED_LOOKS else None


def _is_pythons(module: str) -> bool:
    """Whether that is a module of Python itself, such as typing; "" are its builtins. They have no file, or one in
    Python's own folder."""
    if not module or module == "__main__":
        return not module
    file = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    return file is None or (os.path.dirname(file).startswith(os.path.dirname(os.__file__)) and "-packages" not in file)


def _is_of(module: str, new: FrozenSet[str]) -> bool:
    """Whether that module, or a package that it is in, has just been imported. A type may say that it belongs to a
    module that is not one (a class within a class); then the module around it counts."""
    while module:
        if module in new:
            return True
        module = module.rpartition(".")[0]
    return False
