# SPDX-License-Identifier: MIT
"""README.md and README.zh.md say the same: code, links, figures; and name all that the seeds' blocks import."""
import re
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "seeds"))
from seed_blocks import SEEDS, seed_blocks  # noqa: E402

PAGES = {name: (REPO / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")}
ENGLISH, CHINESE = PAGES.values()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)


def blocks(page):
    """Language and text of each, without what a shell's comments say."""
    return [(language, re.sub(r" # .*$", " #", text, flags=re.M) if language == "sh" else text)
            for language, text in BLOCK.findall(page)]


def sections(page):
    """The prose of each section."""
    return re.split(r"^## .*$", BLOCK.sub("", page), flags=re.M)


def inline(text):
    """What stands between backticks, on one line or two."""
    return sorted(" ".join(code.split()) for code in re.findall(r"`([^`]+)`", text))


def links(text):
    """Targets; a page that is there in Chinese is linked in Chinese there."""
    return sorted(target.replace(".zh.md", ".md") for target in re.findall(r"\]\(([^)#]+)\)", text))


def figures(text):
    return sorted(re.findall(r"\d+(?:[.]\d+)*", re.sub(r"`[^`]+`|\]\([^)]*\)", "", text)))


def test_same_blocks():
    assert blocks(ENGLISH) == blocks(CHINESE) != []


def test_same_sections():
    assert len(sections(ENGLISH)) == len(sections(CHINESE)) > 5
    for english, chinese in zip(sections(ENGLISH), sections(CHINESE)):
        assert inline(english) == inline(chinese)
        assert links(english) == links(chinese)
        assert figures(english) == figures(chinese)
        for mark in (r"^\|", r"^- "):
            assert len(re.findall(mark, english, re.M)) == len(re.findall(mark, chinese, re.M)), mark


@pytest.mark.parametrize("name", PAGES)
def test_links(name):
    """Each leads somewhere: to a file, in Chinese where there is one, or to a section."""
    page = PAGES[name]
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        assert (REPO / target).exists(), target
        if name == "README.zh.md" and target.endswith(".md") and not target.endswith(".zh.md") and target not in PAGES:
            assert not (REPO / target[:-3]).with_suffix(".zh.md").exists(), target
    titles = {title.lower().replace(" ", "-") for title in re.findall(r"^## (.*)$", page, re.M)}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= titles


def imported():
    """By the seeds' blocks: classes and functions."""
    return {name for seed in SEEDS for block in seed_blocks(seed, "python")
            for names in re.findall(r"^from [\w.]+ import (\([^)]*\)|.*)$", block.text, re.M)
            for name in re.findall(r"\w+", names)}


def test_names_of_the_seeds():
    """Each class, and of the functions one of each tool."""
    classes = {name for name in imported() if name[0].isupper()}
    assert classes == {"MemoryDebugger", "MemoryProfiler", "OOMDetector", "GPUMemoryProfiler"}
    tools = {"memory_snapshot", "memory_profiled_training", "create_memory_debugger", "debug_lora_training"}
    assert tools <= imported()
    for page in PAGES.values():
        assert classes | tools <= set(inline(BLOCK.sub("", page)))


def test_words_that_users_know():
    """Those of Chinese users of PyTorch."""
    for word in ("显存", "峰值", "泄漏", "碎片"):
        assert word in CHINESE
