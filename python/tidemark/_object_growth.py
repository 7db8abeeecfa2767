# SPDX-License-Identifier: MIT
"""Python's objects by type, looked at now and then: which types have more and more.

A look costs about 0.3 s per million objects, during which Python's other threads wait; so the next comes when five
hundred times as much has passed: a fifth of a percent of a core. What is kept are differences to the first look.

A type leaks when the number of its objects rises by the rule of _growth.py, over JUDGED_LOOKS looks or more, and by
LEAST objects.
"""
import threading
import time
from typing import Any, Dict, List, Optional

from . import _objects
from ._growth import steady_rise
from ._words import log

LEAST = 100       # objects of a type, to be called a leak
JUDGED_LOOKS = 7  # as many are needed to judge
MOST_LOOKS = 30   # kept; then every second is dropped, and looks come half as often
GAP_S = 1.0       # between two looks, at least
GAP_COSTS = 500   # and this many times the cost of one


class ObjectGrowth:
    """From the first look, which is taken here, on."""

    def __init__(self) -> None:
        self.cost_ms, self._n_before, self._before = _objects.count_types()
        self._n_now = self._n_before
        self._more: List[Dict[str, int]] = [{}]  # of each look, what differs from the first
        self._spacing = 1.0
        self._last_s = time.monotonic()
        self._busy = threading.Lock()

    def look_if_due(self) -> None:
        """Look, if it is time to."""
        gap = max(GAP_S, GAP_COSTS * self.cost_ms / 1e3) * self._spacing
        if time.monotonic() - self._last_s >= gap:
            self.look()

    def look(self) -> None:
        """Look now; nothing while another thread does."""
        if not self._busy.acquire(blocking=False):
            return
        try:
            cost_ms, self._n_now, counts = _objects.count_types()
            self.cost_ms = max(self.cost_ms, cost_ms)
            self._add({name: count - self._before.get(name, 0) for name, count in counts.items()
                       if count != self._before.get(name, 0)})
            self._last_s = time.monotonic()
            log.debug("python: %d objects, %.3f ms", self._n_now, cost_ms)
        finally:
            self._busy.release()

    def _add(self, more: Dict[str, int]) -> None:
        if len(self._more) >= MOST_LOOKS:
            self._more = self._more[::2]
            self._spacing *= 2
        self._more.append(more)

    def report(self) -> Dict[str, Any]:
        """As `tidemark leak PID --json` has it in `python`, with a verdict."""
        looks = list(self._more)
        growing = [{"type": name, "before": self._before.get(name, 0), "after": self._before.get(name, 0) + grown,
                    "verdict": self._verdict([look.get(name, 0) for look in looks])}
                   for name, grown in looks[-1].items() if grown > 0]
        growing.sort(key=lambda item: (item["before"] - item["after"], item["type"]))
        verdicts = [item["verdict"] for item in growing]
        return {"reason": None, "objects_before": self._n_before, "objects": self._n_now,
                "cost_ms": round(self.cost_ms, 3), "looks": len(looks), "growing": growing,
                "verdict": "leak" if "leak" in verdicts else "clean" if len(looks) >= JUDGED_LOOKS else None}

    @staticmethod
    def _verdict(series: List[int]) -> Optional[str]:
        if len(series) < JUDGED_LOOKS:
            return None
        return "leak" if steady_rise(series) >= LEAST else "clean"
