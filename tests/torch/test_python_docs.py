# SPDX-License-Identifier: MIT
"""docs/python.md: each example runs and prints what stands below it, but for numbers and names of
processors. `--write` writes what they print into the page."""
import json
import re
import sys
import tempfile
from pathlib import Path

from seeds_kit import run_python
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
    assert len(parts) == 11
    printed = printed_by([block for block, _ in parts], tmp_path, rings)
    for (block, expected), found in zip(parts, printed):
        assert shape(found) == shape(expected), block


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    with tempfile.TemporaryDirectory() as folder:
        page = PAGE.read_text(encoding="utf-8")
        results = iter(printed_by([block for block, _ in PART.findall(page)], Path(folder), folder))

        def with_output(match):
            text = next(results)
            return f"```python\n{match[1]}```\n" + (f"\n```text\n{text}```\n" if text else "")

        PAGE.write_text(PART.sub(with_output, page), encoding="utf-8")
