# SPDX-License-Identifier: MIT
"""Which GPUs a sweep may use: those of CUDA_VISIBLE_DEVICES where that is set, and of them those of --devices.

`tidemark sweep --devices` decides the same for one configuration a card (src/monitor/visible.c); this is for what has
to be known before: how large they are, and which of them several ranks get.
"""
import json
import os
import subprocess
from typing import Any, Dict, List, NamedTuple, Optional

from .sweep_training import SweepError


class Device(NamedTuple):
    """The smallest of the GPUs that are to be used, or the host."""
    n_gpus: int
    name: str
    total: Optional[int]
    host_total: Optional[int]
    variable: str = "CUDA_VISIBLE_DEVICES"
    visible: str = ""  # what that variable takes for them

    @property
    def is_gpu(self) -> bool:
        return self.n_gpus > 0


def _listed(cards: List[Dict[str, Any]], text: str) -> List[Dict[str, Any]]:
    """Those that CUDA_VISIBLE_DEVICES names: by numbers, or by how an id begins. As CUDA reads it, what stands behind
    a word that names nothing does not count."""
    found: List[Dict[str, Any]] = []
    for word in text.split(","):
        named = [card for card in cards if (word == card["number"] if word.isdigit() else
                                            len(word) > 4 and (card["id"] or "").startswith(word))]
        if not named:
            break
        found += [card for card in named if card not in found]
    return found


def _cards(found: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Cards and their parts (1:0), each with its variable, the number there, and whether it is ours to use."""
    cards = []
    for kind, variable in (("nvidia", "CUDA_VISIBLE_DEVICES"), ("amd", "HIP_VISIBLE_DEVICES")):
        of_kind = [{**card, "variable": variable, "number": None} for card in found if card["kind"] == kind]
        for i, card in enumerate(card for card in of_kind if ":" not in card["device"]):
            card["number"] = str(i)
        listed = _listed(of_kind, os.environ[variable]) if variable in os.environ else \
            [card for card in of_kind if card["number"] is not None]
        names = {card["device"] for card in listed}
        cards += [{**card, "is_listed": card["device"] in names,
                   "is_ours": not names.isdisjoint((card["device"], card["device"].partition(":")[0]))}
                  for card in of_kind]
    return cards


def _chosen(cards: List[Dict[str, Any]], wanted: Optional[str]) -> List[Dict[str, Any]]:
    """What --devices means, as the program understands it: numbers of the driver, ids, all."""
    ours = [card for card in cards if card["is_listed"]]
    if wanted in (None, "all") or not cards:
        return ours
    chosen = []
    for word in wanted.split(","):
        card = next((card for card in cards if word in (card["device"], card["id"])), None)
        if card is None:
            raise SweepError(f"--devices: there is no device {word!r}; there is: "
                             f"{', '.join(card['device'] for card in cards)}")
        if not card["is_ours"]:
            raise SweepError(f"--devices: {word} is not among those of {card['variable']}="
                             f"{os.environ[card['variable']]}; name those, or all")
        chosen += [card] if card not in chosen else []
    return chosen


def device_of(program: str, wanted: Optional[str]) -> Device:
    """The program is asked, as torch would hold memory of the GPU while it is there."""
    done = subprocess.run([program, "top", "--once", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False)
    try:
        found = json.loads(done.stdout)["devices"]
    except (ValueError, KeyError):
        found = []
    host = next((d["total"] for d in found if d["kind"] in ("host", "cpu")), None)
    gpus = _chosen(_cards(found), wanted)
    if not gpus:
        return Device(0, "the CPU", host, host)
    smallest = min(gpus, key=lambda d: d["total"] or 0)
    return Device(len(gpus), smallest["name"] or "GPU", smallest["total"], host, smallest["variable"], ",".join(
        gpu["number"] if gpu["kind"] == "amd" or not gpu["id"] else gpu["id"] for gpu in gpus))
