# SPDX-License-Identifier: MIT
"""docs/seeds.md: each test that it names is there, and the seeds' code has nothing that is not in its tables."""
import ast
import functools
import re
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "seeds"))
from seed_blocks import SEEDS, inline_code, seed_blocks  # noqa: E402

PAGE = (REPO / "docs" / "seeds.md").read_text(encoding="utf-8")
#: What blocks use of torch, of Python, and of the reader's own program.
NOT_THE_SEEDS = {
    # torch and Python
    "cuda", "memory_allocated", "max_memory_allocated", "max_memory_reserved", "empty_cache", "synchronize",
    "is_available", "OutOfMemoryError", "randn", "device", "requires_grad", "numel", "basicConfig", "level", "DEBUG",
    "items", "key", "getsize", "path", "item", "torch", "logging", "os", "psutil", "gc",
    # the training
    "backward", "step", "zero_grad", "small_r", "medium_r", "large_r"}
#: The package's names.
OURS = set(re.findall(r'"(\w+)"', (REPO / "python" / "tidemark" / "__init__.py").read_text(encoding="utf-8")))
FLAG = re.compile(r"(?<!\S)--\w+")


@functools.lru_cache(maxsize=None)
def rows(seed):
    """Cells of a seed's table: (place, what, here, tests)."""
    part = re.search(rf"^## {seed}: .*?(?=^## |\Z)", PAGE, re.S | re.M)[0]
    found = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in part.splitlines()
             if line.startswith("| ") and not line.startswith("| seed |")]
    assert found and all(len(row) == 4 for row in found), [row for row in found if len(row) != 4]
    return found


def code_of(seed):
    """What stands between backticks in the first three columns."""
    return re.findall(r"`([^`]+)`", "\n".join(" | ".join(row[:3]) for row in rows(seed)))


@functools.lru_cache(maxsize=None)
def names_in(path):
    """Functions of a file of tests, and of the tests' scripts, at its top level."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".c":
        called = set(re.findall(r"cmocka_unit_test(?:_\w+)?\((\w+)", text))
        return {name for name in re.findall(r"^static void (\w+)\(void \*\*", text, re.M) if name in called}
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_has_its_tests(seed):
    for row in rows(seed):
        tests = re.findall(r"`([^`]+)`", row[3])
        assert tests and row[3] == ", ".join(f"`{test}`" for test in tests), row
        for test in tests:
            file, _, name = test.partition("::")
            path = REPO / "tests" / file
            assert path.exists(), f"{row[0]}: there is no {file}"
            assert name in names_in(path), f"{row[0]}: {file} has no {name}"
            assert name.startswith(("test_", "check_")), test


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_here(seed):
    """Files and pages that are named, commands, and modules that `python -m` runs."""
    here = "\n".join(row[2] for row in rows(seed))
    for path in re.findall(r"`(?:python )?(examples/[\w.]+|requirements[.]txt)`", here):
        assert (REPO / path).exists(), path
    for page in re.findall(r"\]\(([^)]+)\)", here):
        assert (REPO / "docs" / page).exists(), page
    for command in re.findall(r"`tidemark ([a-z]+)", here):
        assert (REPO / "tests" / "cli" / f"help_{command}.exact").exists(), command
    for module in re.findall(r"`python -m tidemark[.](\w+)", here):
        assert (REPO / "python" / "tidemark" / f"{module}.py").exists(), module


@pytest.mark.parametrize("seed", SEEDS)
def test_every_block_has_a_row(seed):
    places = {row[0] for row in rows(seed)}
    assert {block.name for block in seed_blocks(seed)} == {place for place in places if place.startswith(f"{seed}.")}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_block_is_run(seed):
    """Python, SQL and eval as they stand, by tests/seeds; each command and sample by one test at least."""
    as_it_stands = {block.name for block in seed_blocks(seed) if block.language in ("python", "sql") or seed == "S5"}
    run = {row[0] for row in rows(seed) if "seeds/test_seed_sessions.py::test_" in row[3]}
    assert as_it_stands - run == set()


def python_names(text):
    """Names that a block imports or calls, attributes, keywords, and keys between brackets."""
    found = set()
    for node in ast.walk(ast.parse(text.replace(", args...", ", args"))):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Call):
            found |= {keyword.arg for keyword in node.keywords if keyword.arg}
            found |= {name.id for name in [node.func] if isinstance(name, ast.Name) and name.id in OURS}
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            found.add(node.slice.value)
        elif isinstance(node, ast.Dict):
            found |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
    return found - NOT_THE_SEEDS


def json_keys(text):
    """Keys of letters: events and numbers of devices are values."""
    return set(re.findall(r'"([a-z_]+)":', text))


def sql_names(text):
    return set(re.findall(r"\b(?:python\.torch_trace|step|allocated|module|stage|stddev|LAG)\b", text))


def printed_words(text):
    """What a sample says, without its figures: words of a line up to a colon, and between bars."""
    found = set()
    for line in text.splitlines():
        line = re.sub(r"^.* - INFO - (?=.)", "", line)
        for part in re.split(r" [|] |, (?=\D)", re.sub(r"^\[\w+\] *", "", line)):
            word = re.sub(r"^GPU \d+:? (?=[^ -~])", "", part).partition(":")[0].strip()
            word = re.sub(r" [-+]?[\d.]+\S*.*$", "", word)
            found |= {word} if word and not re.match(r"[-+\d=]", word) else set()
    return found


#: Names of events, in a sample and in its JSON.
EVENTS = {"模型创建", "前向传播", "反向传播", "参数更新", "训练开始"}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_name_is_in_the_tables(seed):
    code = "\n".join(code_of(seed))
    words = set(re.findall(r"[\w.]+", code)) | set(re.findall(r"\w+", code))
    wanted = {}
    for block in seed_blocks(seed):
        if block.language == "python":
            wanted[block.name] = python_names(block.text)
        elif block.language == "json":
            wanted[block.name] = json_keys(block.text)
        elif block.language == "sql":
            wanted[block.name] = sql_names(block.text)
        elif block.language == "bash":
            wanted[block.name] = {flag[2:] for flag in FLAG.findall(block.text)} | set(
                re.findall(r"^python (?:-m )?(\S+)", block.text, re.M)) - {"tools.memory"}
            wanted[block.name] = {name.rpartition("/")[2] for name in wanted[block.name]}
        else:
            wanted[block.name] = {word for word in printed_words(block.text) if word not in EVENTS}
    missing = {name: sorted(word for word in found if word not in (words if re.fullmatch(r"[\w.]+", word, re.A) else code))
               for name, found in wanted.items()}
    assert {name: found for name, found in missing.items() if found} == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_inline_code_is_in_the_tables(seed):
    code = "\n".join(code_of(seed))
    assert [word for word in inline_code(seed) if word not in code] == []


def test_names_are_found():
    """Of a block, what the tables must have."""
    assert python_names("from x import A\nA(b=1).c\nd['e']\nf = {'g': 1}\ntorch.cuda.empty_cache()") == {"A", "b", "c", "e", "g"}
    assert printed_words("[INFO]   GPU 0: 内存变化 +1.0MB, 利用率变化 +4.1%\nx - INFO - 分配:    0.0MB | 耗时: 0.00s") == {
        "内存变化", "利用率变化", "分配", "耗时"}
    assert sql_names("SELECT step, LAG(max(allocated)) FROM python.torch_trace") == {
        "step", "LAG", "allocated", "python.torch_trace"}
