# SPDX-License-Identifier: MIT
"""The code blocks of the seeds (tests/data/seeds): S2.4 is the fourth block of s2.md."""
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "data" / "seeds"
SEEDS = ("S1", "S2", "S3", "S4", "S5")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```\s*$", re.S | re.M)


class Block(NamedTuple):
    name: str
    language: str
    text: str


def seed_text(seed):
    return (FOLDER / f"{seed.lower()}.md").read_text(encoding="utf-8")


def seed_blocks(seed, language=None):
    """All blocks of a seed in their order, or those of one language."""
    found = [Block(f"{seed}.{number}", match[2], textwrap.dedent(match[3]))
             for number, match in enumerate(FENCE.finditer(seed_text(seed)), 1)]
    return [block for block in found if language is None or block.language == language]


def seed_block(name):
    return next(block for block in seed_blocks(name.partition(".")[0]) if block.name == name)


def inline_code(seed):
    """What stands between backticks outside of the blocks."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", seed_text(seed)))
