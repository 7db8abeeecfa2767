# SPDX-License-Identifier: MIT
"""docs/python.md: each example, of Python and of a shell, runs and prints what stands below it, figure by figure, but
for what differs from one run or machine to the next (FLOATING). `--write` writes what they print into the page."""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from seeds_kit import SEEDS, run_python, seed_environment
from torch_kit import PYTHON, REPO, TIDEMARK

PAGE = REPO / "docs" / "python.md"
PART = re.compile(r"```(python|bash)\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.S)

#: One process for all, since torch takes seconds to import: `python -m` is what Python does for it.
RUNNER = """
import contextlib, io, json, runpy, shlex, subprocess, sys
printed, names = [], {}

def run_line(line):
    words = shlex.split(line)
    if words[:2] != ["python", "-m"]:
        subprocess.run(line, shell=True, check=True)
        return
    sys.argv = words[2:]
    try:
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        assert not end.code, (line, end.code)

for language, block in json.loads(BLOCKS):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        if language == "python":
            exec(block, names)
        else:
            for line in block.splitlines():
                run_line(line)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""

#: Times, dates and paths; the machine, and what others use of it; losses; torch's words.
FLOATING = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE"),
    (r"\d{8}[-_]\d{6}(_\d+)?", "STAMP"),
    (r"\b\d+[.]\d\ds\b", "SECONDS"),
    (r"tidemark peak \S+", "tidemark peak RUN"),
    (r"(GPU \d+|CPU): .* \(\d+[.]\dGB\)", "DEVICE"),
    (r"/ \d+[.]\dMB \(\d+[.]\d%\)", "/ TOTAL"),
    (r"has enough free: \d+[.]\dMB", "has enough free"),
    (r"utilization [-+]\d+[.]\d%", "utilization"),
    (r"'total_memory_gb': [\d.]+, 'overall_utilization': [\d.]+", "MACHINE"),
    (r"loss \d+[.]\d+", "LOSS"),
    (r"out of memory: .*?(tried to allocate \d+ bytes).*", r"out of memory: \1"),
    (r" +", " "),
)


def printed_by(blocks, folder, rings):
    source = f"BLOCKS = {json.dumps(blocks)!r}\n" + RUNNER
    return json.loads(run_python(source, folder, rings).stdout)


def shape(text):
    """Without what differs from one run or machine to the next."""
    for pattern, word in FLOATING:
        text = re.sub(pattern, word, text)
    return text


def test_examples(tmp_path, rings):
    parts = PART.findall(PAGE.read_text(encoding="utf-8"))
    assert [language for language, _, _ in parts].count("python") == 12
    assert [language for language, _, _ in parts].count("bash") == 2
    printed = printed_by([part[:2] for part in parts], tmp_path, rings)
    for (language, block, expected), found in zip(parts, printed):
        if expected or language == "python":
            assert shape(found) == shape(expected), block
        else:
            assert found.count("[INFO] report written to ") == len(block.splitlines()), block


def test_figures_are_held():
    """Every figure that is the same everywhere: another one is seen."""
    page = PAGE.read_text(encoding="utf-8")
    for text, other in (("parameters: 1,049,600", "parameters: 1,049,601"), ("+256.0MB", "+256.1MB"),
                        ("4198400 bytes", "4198401 bytes"), ("1048576 bytes a step", "1048577 bytes a step")):
        assert text in page and shape(text) != shape(other)


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


def test_install_page(tmp_path, rings):
    """docs/install.md: what is said once tidemark is there; tests/package install it."""
    page = (REPO / "docs" / "install.md").read_text(encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(PYTHON)
    (tmp_path / "bin" / "tidemark").symlink_to(TIDEMARK)
    (tmp_path / "train.py").write_text("import tidemark\n", encoding="utf-8")
    env = seed_environment(tmp_path, rings)
    env["PATH"] = f"{tmp_path / 'bin'}:{env['PATH']}"
    del env["TIDEMARK_RUN"]

    def said(command, most=0):
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode <= most, done.stderr
        return done.stdout + done.stderr

    commands = dict(re.findall(r"^\$ (.*)\n(.*)$", page, re.M))
    first = said("tidemark doctor", most=1).splitlines()[0].split()
    assert first[:2] == commands["tidemark doctor"].split()[:2] and first[2].endswith("libtidemark.so")
    command = next(line for line in commands if line.startswith("python -c"))
    assert shape(commands[command]) == "True /home/me/python-STAMP.tmk"
    assert shape(said(command)) == f"True {tmp_path}/python-STAMP.tmk\n"
    command = next(line for line in commands if line.startswith("TIDEMARK_LIBRARY="))
    assert commands[command] in said(command)
    (command,) = re.findall(r'`(python -c "[^`]*)` with `TIDEMARK=0`', page)
    assert said("TIDEMARK=0 " + command) == os.path.realpath(TIDEMARK) + "\n"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    with tempfile.TemporaryDirectory() as folder:
        page = PAGE.read_text(encoding="utf-8")
        results = iter(printed_by([part[:2] for part in PART.findall(page)], Path(folder), folder))

        def with_output(match):
            text = next(results)
            is_shown = text and (match[1] == "python" or match[3])
            return f"```{match[1]}\n{match[2]}```\n" + (f"\n```text\n{text}```\n" if is_shown else "")

        PAGE.write_text(PART.sub(with_output, page), encoding="utf-8")
