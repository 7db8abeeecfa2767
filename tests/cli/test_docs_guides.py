# SPDX-License-Identifier: MIT
"""The guides that are in Chinese too: queries run, tables are those of the program, commands exist, and both languages
say the same."""
import functools
import json
import os
import re
import shlex

import pytest
from test_golden import ROOT, need, shell, workshop

GUIDES = ("sql", "debugging", "troubleshooting", "python", "monitors", "sweep", "probing", "forecast", "top", "fleet")
#: Commands that a guide has at least: these two are about other programs, and about keys.
LEAST_COMMANDS = {"sweep": 5, "top": 2}
OOMS = os.path.join(ROOT, "tests", "data", "ooms")
#: A query must answer something about one of these: two recorded here, the others on a card.
TARGETS = ("leak.tmk", "ranks.tmk", *(os.path.join(OOMS, f"{name}.trace")
                                      for name in ("fragmentation", "leak", "other_process", "outlier")))
#: Rows of a query that look for growth by tens of MB, of which those runs have none, may be missing.
FINDS_LITTLE = ("HAVING",)


@functools.lru_cache(maxsize=None)
def text(name):
    with open(os.path.join(ROOT, "docs", name + ".md"), encoding="utf-8") as file:
        return file.read()


def blocks(name):
    """Language and text of the code blocks, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text(name), re.S | re.M)


QUERIES = [code.strip() for language, code in blocks("sql") if language == "sql"]


def ask(target, sql):
    done = shell(f"tidemark query {shlex.quote(target)} {shlex.quote(sql)} --json", workshop().name)
    assert done.returncode == 0, f"{target}: {sql}\n{done.stderr}"
    return json.loads(done.stdout)["rows"]


@pytest.fixture(scope="module", autouse=True)
def runs():
    need("leak.tmk")
    need("ranks.tmk")


def test_there_are_queries():
    assert len(QUERIES) == 22


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_query(number):
    sql = QUERIES[number]
    rows = [len(ask(target, sql)) for target in TARGETS]
    assert any(rows) or any(word in sql for word in FINDS_LITTLE), sql


def documented(name):
    """By table: its columns' names and types, as the document has them."""
    found = {}
    for part in re.split(r"^### ", text(name), flags=re.M)[1:]:
        columns = re.findall(r"^\| `(\w+)` \| (TEXT|INTEGER|REAL) \| [^|]+ \| (.+) \|$", part, re.M)
        if columns:
            found.update({table: columns for table in re.findall(r"`([^`]+)`", part.splitlines()[0])})
    return found


def test_every_table_and_column():
    """If this fails: bring docs/sql.md and sql.zh.md to what `tidemark tables` says."""
    listed = json.loads(shell("tidemark tables --json", workshop().name).stdout)["tables"]
    expected = {table["name"]: [(column["name"], column["type"], column["meaning"]) for column in table["columns"]]
                for table in listed}
    assert documented("sql") == expected
    in_chinese = documented("sql.zh")
    assert {table: [column[:2] for column in columns] for table, columns in in_chinese.items()} == \
        {table: [column[:2] for column in columns] for table, columns in expected.items()}


@pytest.mark.parametrize("guide", GUIDES)
def test_both_languages(guide):
    """The same code, the same number of sections and lists; each links to the other."""
    assert blocks(guide) == blocks(guide + ".zh")
    for mark in (r"^## ", r"^### ", r"^\|", r"^- ", r"^\d+\. "):
        assert len(re.findall(mark, text(guide), re.M)) == len(re.findall(mark, text(guide + ".zh"), re.M)), mark
    assert f"[中文]({guide}.zh.md)" in text(guide) and f"[English]({guide}.md)" in text(guide + ".zh")


@functools.lru_cache(maxsize=None)
def help_of(command):
    done = shell(f"tidemark {command} --help", workshop().name)
    assert done.returncode == 0, command
    return done.stdout


def commands(guide):
    """Command and options of each `tidemark ...` in a code block or between backticks."""
    lines = [line for language, code in blocks(guide) if language in ("sh", "console") for line in code.splitlines()]
    lines = [line[2:] if line.startswith("$ ") else line for line in lines]
    lines += re.findall(r"`([^`\n]+)`", text(guide))
    for line in lines:
        for found in re.finditer(r"(?:^|[ (])tidemark ([a-z]+)((?: [^|;&#]*)?)", line):
            own = found[2].split(" -- ")[0]
            if not line.startswith("tidemark:"):
                yield found[1], re.findall(r"(?<= )--[a-z-]+", own)


@pytest.mark.parametrize("guide", GUIDES)
def test_commands(guide):
    asked = list(commands(guide))
    assert len(asked) >= LEAST_COMMANDS.get(guide, 6)
    for command, options in asked:
        for option in options:
            assert option == "--help" or option in help_of(command), f"{command} {option}"


@pytest.mark.parametrize("guide", [name + end for name in GUIDES for end in ("", ".zh")])
def test_links(guide):
    for target in re.findall(r"\]\(([^)#:]+)\)", text(guide)):
        assert os.path.exists(os.path.join(ROOT, "docs", target)), target
