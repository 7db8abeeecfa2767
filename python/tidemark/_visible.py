# SPDX-License-Identifier: MIT
"""CUDA's devices while CUDA is not in use in this process: their names and sizes, and what is free on them.

torch says them too, but initialises CUDA for it, after which forked children cannot use it. So the program is asked,
which asks the driver's management library (NVML); names and sizes once, since they do not change. CUDA's numbers are the
driver's, as CUDA_VISIBLE_DEVICES selects them (`--devices visible`). On a machine of several kinds of cards CUDA may have another order (the
fastest first, unless CUDA_DEVICE_ORDER=PCI_BUS_ID): then it is not known which card a number is.
"""
import os
from typing import Any, Dict, NamedTuple, Optional

from . import _program
from ._words import log


class Card(NamedTuple):
    """None: not known."""
    name: Optional[str]
    total: Optional[int]
    free: Optional[int]


UNKNOWN = Card(None, None, None)
_known: Dict[int, Card] = {}


def _ask() -> Dict[str, Dict[str, Any]]:
    """By CUDA's numbers; none where it is not known which card a number is."""
    try:
        found = _program.ask("profile", "--devices", "visible", "--duration", "0.001", "--interval", "0.001",
                             "--json")["devices"]
    except (_program.NoAnswer, ValueError, KeyError) as reason:
        log.debug("cards: %s", reason)
        return {}
    cards = {number: entry for number, entry in found.items() if entry["kind"] == "nvidia"}
    kinds = {(entry["name"], entry["current_usage"]["total"]) for entry in cards.values()}
    is_ordered = len(kinds) <= 1 or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    return cards if is_ordered else {}


def look(index: int) -> Card:
    """A device by CUDA's number, as it is now."""
    entry = _ask().get(str(index))
    usage = None if entry is None else entry["current_usage"]
    if usage is None or usage["total"] is None:
        return UNKNOWN if entry is None else Card(entry["name"], None, None)
    return Card(entry["name"], usage["total"] - (usage["reserved"] or 0), usage["free"])


def known(index: int) -> Card:
    """Its name and size, as they were when first asked for."""
    if index not in _known:
        _known[index] = look(index)
    return _known[index]
