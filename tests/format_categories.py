# SPDX-License-Identifier: MIT
"""What blocks are for, found a second time: the rules of docs/owners.md, on format_reader.py.

    python3 tests/format_categories.py TRACE

prints "ID CATEGORY NAME" for each block in order of making, the name as in format_reader.py. Where
events were given up it begins at the oldest checkpoint. What a gap hides is not looked for.
"""

import sys
from dataclasses import dataclass, field

from format_reader import INPUT, UNKNOWN, Block, Device, Replay, Trace, quote, read_trace

STAGE = 1  # a kind of range
GRADIENT, OPTIMIZER_STATE, ACTIVATION, TEMPORARY, AUTOGRAD_DETAIL, OTHER = 2, 3, 4, 6, 7, 9
NAMES = (
    "unknown", "parameter", "gradient", "optimizer_state", "activation", "input", "temporary",
    "autograd_detail", "buffer", "other", "kv_cache",
)  # fmt: skip
TRAINING = ("forward", "backward", "optimizer", "eval")
SETUP = ("model_load", "wrap", "optimizer_setup", "privacy_setup", "other")


def sort_of(name: str | None) -> str:
    """A stage's name, or what it counts as."""
    return name if name in (*TRAINING, "data") else "setup" if name in SETUP else "own"


@dataclass
class Owners(Replay):
    """A replay that says of each block what it was for."""

    strings: dict[int, str] = field(default_factory=dict)
    found: dict[int, tuple[int, int]] = field(default_factory=dict)  # category, name; by serial

    def birth(self, block: Block) -> str | None:
        """What the innermost stage that a block was made in counts as."""
        stages = [name for name, kind in block.context if kind == STAGE]
        return sort_of(self.strings.get(stages[-1])) if stages else None

    def is_told(self, block: Block) -> bool:
        """True when tags say what the block is."""
        if block.category == INPUT:
            return self.birth(block) not in TRAINING
        return block.category != UNKNOWN

    def is_backward(self, opened) -> bool:
        return opened.kind == STAGE and self.strings.get(opened.name) == "backward"

    def of_this_backward(self, block: Block) -> bool:
        """Made after the first of the backward stages open now had opened."""
        starts = [r.start for ranges in self.threads.values() for r in ranges if self.is_backward(r)]
        return bool(starts) and block.time >= min(starts)

    def survivor(self, birth: str | None) -> int:
        """What outlives its stage."""
        return {
            None: UNKNOWN, "forward": ACTIVATION, "eval": ACTIVATION, "backward": GRADIENT,
            "optimizer": OPTIMIZER_STATE, "data": INPUT,
        }.get(birth, OTHER)  # fmt: skip

    def at_free(self, block: Block, thread: int) -> int:
        """Of a block that tags do not tell, freed by a thread now."""
        birth, ranges = self.birth(block), self.threads.get(thread, [])
        in_backward = any(map(self.is_backward, ranges))
        if birth == "backward":
            return AUTOGRAD_DETAIL if in_backward and self.of_this_backward(block) else GRADIENT
        stages = [opened for opened in ranges if opened.kind == STAGE]
        if birth and stages and sort_of(self.strings.get(stages[-1].name)) == birth:
            if block.time >= stages[-1].start:
                return TEMPORARY
        if in_backward and birth in (None, "own", "setup"):
            return ACTIVATION
        return self.survivor(birth)

    def settle(self, block: Block, freed_by: int | None) -> None:
        """Notes what a block was; nobody freed one that was replaced, given up or lives on."""
        if self.is_told(block):
            self.found[block.serial] = (block.category, block.name)
            return
        name = 0 if block.category == INPUT else block.name
        if freed_by is not None:
            category = self.at_free(block, freed_by)
        elif self.birth(block) == "backward" and self.of_this_backward(block):
            category = AUTOGRAD_DETAIL
        else:
            category = self.survivor(self.birth(block))
        self.found[block.serial] = (category, name)

    def remove_block(self, event: dict, device: Device) -> bool:
        block = self.blocks.get((event["device"], event["address"]))
        if block:
            self.settle(block, event["thread"] if event["kind"] == "free" else None)
        return super().remove_block(event, device)

    def on_device_end(self, event: dict) -> None:
        for (device, _), block in self.blocks.items():
            if device == event["device"]:
                self.settle(block, None)
        super().on_device_end(event)


def categories(trace: Trace) -> dict[int, tuple[str, str | None]]:
    """Category and name of each block, by its number."""
    owners = Owners(strings=trace.strings)
    if trace.status.given_up:
        owners.take_checkpoint(trace.checkpoints[trace.replay_from])
    for event in trace.events():
        owners.apply(event)
    for block in owners.blocks.values():
        owners.settle(block, None)
    return {
        serial: (NAMES[category] if category < len(NAMES) else "unknown", trace.strings.get(name))
        for serial, (category, name) in sorted(owners.found.items())
    }


if __name__ == "__main__":
    for number, (what, called) in categories(read_trace(sys.argv[1])).items():
        print(number, what, quote(called))
