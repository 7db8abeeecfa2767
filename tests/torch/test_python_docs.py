# SPDX-License-Identifier: MIT
"""docs/python.md: each example runs and prints what stands below it, but for numbers and names of
processors. `--write` writes what they print into the page."""
import json
import re
import sys
import tempfile
from pathlib import Path

from seeds_kit import SEEDS, run_python
from torch_kit import REPO

PAGE = REPO / "docs" / "python.md"
PART = re.compile(r"```python\n(.*?)```\n(?:\n(?:\{\{\}\}|```text\n(.*?)```)\n)?", re.S)

RUNNER = """
import contextlib, io, json
printed, names = [], {}
for block in json.loads(BLOCKS):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        exec(block, names)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""


def printed_by(blocks, folder, rings):
    source = f"BLOCKS = {json.dumps(blocks)!r}\n" + RUNNER
    return json.loads(run_python(source, folder, rings).stdout)


def shape(text):
    """Without what differs from one run or machine to the next."""
    text = re.sub(r"(GPU \d+|CPU): .* \(", "device: (", text)
    return re.sub(r" +", " ", re.sub(r"[-+]?\d+([.]\d+)?", "0", text))


def test_examples(tmp_path, rings):
    parts = PART.findall(PAGE.read_text(encoding="utf-8"))
    assert len(parts) == 12
    printed = printed_by([block for block, _ in parts], tmp_path, rings)
    for (block, expected), found in zip(parts, printed):
        assert shape(found) == shape(expected), block


def test_migration_table():
    """Every name that a seed's example imports, every method and every command has a line."""
    table = PAGE.read_text(encoding="utf-8").partition("## Names that you know")[2]
    for seed in ("s1.md", "s2.md", "s3.md", "s4.md"):
        text = (SEEDS / seed).read_text(encoding="utf-8")
        for module, names in re.findall(r"^from ([\w.]+) import (\([^)]*\)|.*)$", text, re.M):
            line = next(line for line in table.splitlines() if f"from {module} import" in line)
            for name in re.findall(r"\w+", names):
                assert name in line, (module, name)
        for command in re.findall(r"^(python (?:-m )?[\w./]+)", text, re.M):
            assert f"`{command} " in table or f"`{command}`" in table, command
        for method in set(re.findall(r"\b(?:profiler|debugger)\.(\w+)\(", text)):
            assert f"`{method}" in table, method


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    with tempfile.TemporaryDirectory() as folder:
        page = PAGE.read_text(encoding="utf-8")
        results = iter(printed_by([block for block, _ in PART.findall(page)], Path(folder), folder))

        def with_output(match):
            text = next(results)
            return f"```python\n{match[1]}```\n" + (f"\n```text\n{text}```\n" if text else "")

        PAGE.write_text(PART.sub(with_output, page), encoding="utf-8")
