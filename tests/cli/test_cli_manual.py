# SPDX-License-Identifier: MIT
"""The table of commands is the one truth: manual, docs and completion are made from it."""
import os
import shutil
import subprocess

import pytest
from test_golden import BUILD, ROOT, run_case, shell

COMMANDS = ("run attach detach env sweep report explain peak leak frag whatif diff plot query tables top ps eval monitor "
            "oom profile agent fleet import export model check demo doctor completion help").split()


def test_docs_are_the_table(tmp_path):
    """If this fails: build/tidemark help --markdown >docs/commands.md"""
    with open(os.path.join(ROOT, "docs", "commands.md"), encoding="utf-8") as docs:
        assert docs.read() == shell("tidemark help --markdown", tmp_path).stdout


def test_overview_names_every_command(tmp_path):
    lines = shell("tidemark --help", tmp_path).stdout.splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("  tidemark ")]
    assert named == COMMANDS
    assert lines[3:5] == ["  tidemark run -- python train.py", "  tidemark run -- torchrun --nproc-per-node 8 train.py"]
    assert max(len(line) for line in lines) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, tmp_path):
    done = shell(f"tidemark {command} --help", tmp_path)
    assert done.returncode == 0 and not done.stderr
    assert shell(f"tidemark help {command}", tmp_path).stdout == done.stdout
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines) <= 80
    parts = [line for line in lines if line in ("examples:", "exit status:", "JSON:")]
    assert parts[:2] == ["examples:", "exit status:"], "the examples come first"
    first = lines.index("examples:")
    examples = lines[first + 1:lines.index("", first)]
    assert all(line.startswith("  ") for line in examples)
    assert any(f"tidemark {command}" in line for line in examples)


# ---- completion

def complete(words, tmp_path):
    """What bash offers for the last of `words`."""
    script = (f'eval "$(tidemark completion bash)"; COMP_WORDS=({words}); '
              'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tidemark; printf "%s\\n" "${COMPREPLY[@]}"')
    done = shell(script, tmp_path)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("words,offers", [
    ("tidemark re", ["report"]),
    ("tidemark peak --b", ["--by"]),
    ("tidemark peak --by st", ["stage", "step", "stack"]),
    ("tidemark report --format ''", ["text", "json", "csv", "md", "html", "line"]),
    ("tidemark completion z", ["zsh"]),
    ("tidemark help do", ["doctor"]),
    ("tidemark check ru", ["run.tmk"]),
    ("tidemark run --m", ["--max-size"]),
    ("tidemark oom --mo", ["--monitor"]),
    ("tidemark run -- tinytra", ["tinytrain"]),
])
def test_bash(words, offers, tmp_path):
    (tmp_path / "run.tmk").mkdir()
    assert sorted(set(complete(words, tmp_path))) == sorted(offers)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_script_is_good(name, tmp_path):
    """The shell itself finds nothing wrong, where it is installed."""
    script = shell(f"tidemark completion {name}", tmp_path).stdout
    assert all(command in script for command in COMMANDS)
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    checked = subprocess.run([name, "-n"], input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0 and not checked.stderr


def test_program_is_there():
    for name in ("tidemark", "libtidemark.so", "tinytrain"):
        assert os.path.exists(os.path.join(BUILD, name)), f"{name}: run ./dev build first"


@pytest.mark.parametrize("run", ["a.tmk", "leak.tmk", "oom.tmk", "ranks.tmk", "ring.tmk"])
def test_report_fits_the_screen(run):
    """80 columns, and nothing that a terminal would take for a command."""
    text = run_case(f"tidemark report {run}").stdout
    assert max(len(line) for line in text.splitlines()) <= 80
    assert all(character.isprintable() for character in text if character != "\n")
    assert not any(line.endswith(" ") for line in text.splitlines())
