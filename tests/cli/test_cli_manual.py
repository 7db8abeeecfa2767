# SPDX-License-Identifier: MIT
"""The table of commands is the one truth: help, docs and manual pages are made from it. Completion is
in test_completion.py."""
import json
import os
import re
import shutil
import subprocess

import pytest
from test_golden import BUILD, ROOT, run_case, shell, workshop

COMMANDS = ("run attach detach env sweep report serve explain peak leak frag whatif diff plot query tables top ps eval monitor "
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


# ---- every option and every key is described

def part_of(text, title):
    """The lines of help below a title, up to the end."""
    return text.split(f"\n{title}:\n", 1)[1] if f"\n{title}:\n" in text else ""


def options_of(text):
    return re.findall(r"^  (?:-\w, )?--([a-z-]+)", text, re.M)


@pytest.fixture(scope="module", name="written")
def fixture_written(tmp_path_factory):
    """The files that are installed: pages and completions."""
    folder = tmp_path_factory.mktemp("manual")
    done = shell(f"tidemark help --write {folder}", folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def test_what_is_written(written):
    pages = {f"tidemark-{command}.1" for command in COMMANDS} | {"tidemark.1"}
    assert {path.name for path in written.iterdir()} == pages | {"tidemark", "_tidemark", "tidemark.fish"}
    assert (written / "tidemark-peak.1").read_text(encoding="utf-8") == shell("tidemark help --man peak", written).stdout
    assert (written / "tidemark.fish").read_text(encoding="utf-8") == shell("tidemark completion fish", written).stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_everywhere(command, written):
    page = (written / f"tidemark-{command}.1").read_text(encoding="utf-8").replace("\\-", "-")
    fish = (written / "tidemark.fish").read_text(encoding="utf-8")
    bash = re.search(rf"^    {command}\)\n        options='(.*)'$", (written / "tidemark").read_text(encoding="utf-8"), re.M)
    for option in options_of(shell(f"tidemark {command} --help", written).stdout):
        assert re.search(rf"^\\fB(-\w, )?--{option}\b", page, re.M), option
        assert f"'__tidemark_in {command}' -l {option} " in fish
        assert f"--{option}" in bash[1].split()


@pytest.mark.parametrize("command", COMMANDS)
def test_what_usage_names(command, tmp_path):
    """An option in the usage or in an example is described below."""
    text = shell(f"tidemark {command} --help", tmp_path).stdout
    usage = re.findall(r"--([a-z][a-z-]*)", text[:text.index("examples:")])
    assert set(usage) <= set(options_of(text))


#: Where the runs of test_golden tell all that the command can say; the other commands' keys are checked by their tests.
ANSWERS = {
    "peak": "peak a.tmk --by stack", "leak": "leak leak.tmk", "check": "check a.tmk", "tables": "tables --json",
    "query": "query a.tmk 'SELECT 1 AS columns'", "doctor": "doctor", "ps": "ps", "whatif": "whatif a.tmk --device cpu",
}


def keys_of(value):
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("command", ANSWERS)
def test_json_keys_are_described(command):
    done = run_case(f"tidemark {ANSWERS[command]} --json")
    described = set(re.findall(r"\w+", part_of(shell(f"tidemark {command} --help", workshop().name).stdout, "JSON")))
    assert keys_of(json.loads(done.stdout)) - described == set()


# ---- examples

EXAMPLES = [(command, example) for command in COMMANDS
            for example in re.findall(r"^  (\S.*)$", part_of(shell(f"tidemark {command} --help", ROOT).stdout,
                                                            "examples").split("\n\n")[0], re.M)]
#: The example as it stands, where every tidemark only takes its arguments apart, and nothing else is there.
PARSE = """
PROGRAM=$(type -P tidemark)
tidemark() { "$PROGRAM" help --parse "$@" >&2 || echo "refused: $*" >>refused; }
command_not_found_handle() { [ "$1" != jq ] && [ "$1" != pgrep ] || echo 4711; }
: >snippet.py; PATH=/nowhere
shopt -u sourcepath
"""


@pytest.mark.parametrize("command,example", EXAMPLES)
def test_examples_are_command_lines(command, example, tmp_path):
    done = shell(f"{PARSE}\n{example}", tmp_path)
    assert not (tmp_path / "refused").exists(), done.stderr
    assert command and "help:" not in done.stderr and "syntax error" not in done.stderr


#: Those that read a run are run, on one of a real H200; its OOM makes some end with 1.
READERS = ("report", "explain", "peak", "leak", "frag", "whatif", "diff", "query", "tables", "export", "check")


@pytest.fixture(scope="module", name="runs")
def fixture_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    for run, trace in {"train": "fragmentation", "before": "demand", "after": "demand", "main": "leak",
                       "branch": "leak"}.items():
        (folder / f"{run}.tmk").mkdir()
        shutil.copy(os.path.join(ROOT, "tests", "data", "ooms", f"{trace}.trace"), folder / f"{run}.tmk")
    (folder / "queries.sql").write_text("SELECT 1;\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("command,example", [
    (command, example) for command, example in EXAMPLES
    if command in READERS and ("train.tmk" in example or ".tmk" not in example) and not re.search(r"4711|--check|host", example)
    or "before.tmk" in example])
def test_examples_run(command, example, runs):
    done = shell(f"jq() {{ cat; }}; flamegraph.pl() {{ cat; }}; exec <queries.sql\n{example}", runs)
    assert done.returncode in (0, 1), f"{command}: {done.stderr}"
    assert "help:" not in done.stderr


# ---- manual pages

@pytest.mark.parametrize("checker", ["mandoc -T lint -W warning", "groff -man -ww -z -T utf8", "man --warnings -E UTF-8 -l"])
def test_pages_are_clean(checker, written):
    if not shutil.which(checker.split()[0]):
        pytest.skip(f"{checker.split()[0]} is not installed")
    pages = sorted(path.name for path in written.glob("*.1"))
    done = subprocess.run([*checker.split(), *pages], cwd=written, text=True, capture_output=True, check=False,
                          env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "80"})
    assert done.stderr == ""
    assert checker.startswith("man ") or done.stdout == ""


def test_a_page_is_read(written):
    """As man shows it: dashes are dashes that can be pasted, and code is bold."""
    done = subprocess.run(["man", "-E", "UTF-8", "-l", "tidemark-run.1"], cwd=written, text=True, capture_output=True,
                          check=True, env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "80"})
    assert "tidemark run -- python train.py" in done.stdout
    assert "-o, --output RUN" in done.stdout
    assert re.search(r"SEE ALSO\n +tidemark\(1\), tidemark-attach\(1\)", done.stdout)
    assert "`" not in done.stdout
