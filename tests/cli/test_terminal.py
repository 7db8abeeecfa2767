# SPDX-License-Identifier: MIT
"""What people see on a terminal: its width, colours, charset, and the pager that long output goes through."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import unicodedata

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import test_golden as golden  # noqa: E402

TIDEMARK = os.path.join(golden.BUILD, "tidemark")
LIMIT_S = 60
SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")
TORCH = "/usr/bin/python3"

# Keeps its input, and says when it began and how it was set up.
PAGER = """#!/bin/sh
echo "LESS=$LESS" >{folder}/began
cat >{folder}/paged
"""
# Like less, it leaves ^C to its user: it ends when it has read a key.
STUBBORN = """#!/bin/sh
trap '' INT
cat >{folder}/paged
echo ready >/dev/tty
read -r key </dev/tty
"""

CJK = """
import torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.注意力, self.前馈 = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
    def forward(self, x):
        return self.前馈(self.注意力(x).relu())
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.层 = torch.nn.ModuleList(Block() for _ in range(4))
        self.输出 = torch.nn.Linear(64, 2)
    def forward(self, x):
        for block in self.层:
            x = block(x)
        return self.输出(x)
model = Model()
for _ in range(2):
    model(torch.ones(32, 64)).sum().backward()
"""


@pytest.fixture(name="folder", scope="module")
def fixture_folder():
    for run in ("a.tmk", "leak.tmk", "oom.tmk"):
        golden.need(run)
    return golden.workshop().name


def on_terminal(arguments, folder, columns=80, rows=24, keys=None, **variables):
    """What a command shows on a terminal, and its exit status. `keys`: typed after the first "ready"."""
    child, master = pty.fork()
    if child == 0:
        os.chdir(folder)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        signal.alarm(LIMIT_S)
        os.execvpe(TIDEMARK, ["tidemark", *arguments], {**golden.environment(), "TERM": "xterm-256color", **variables})
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            part = b""
        if not part:
            break
        text += part
        while keys and b"ready" in text:
            os.write(master, keys.pop(0))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(master)
    return text.decode().replace("\r\n", "\n"), status


def in_pipe(arguments, folder, **variables):
    return subprocess.run([TIDEMARK, *arguments], cwd=folder, env={**golden.environment(), **variables}, text=True,
                          capture_output=True, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL)


def width_of(text):
    """The columns that a terminal gives a line."""
    text = SEQUENCE.sub("", text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# ---- width

@pytest.mark.parametrize("columns", [80, 120, 200])
def test_width_of_terminal(folder, columns):
    """Nothing is wider than the terminal; bars and curves reach far, prose stops at 100."""
    text, status = on_terminal(["--no-pager", "report", "a.tmk", "--full"], folder, columns)
    lines = [line for line in SEQUENCE.sub("", text).splitlines() if "/" not in line]
    assert status == 0 and max(map(width_of, lines)) <= columns
    curve = [line for line in lines if "└" in line]
    assert [len(line) for line in curve] == [columns - 4] * len(curve) and curve
    prose = [line for line in lines if line.startswith("  - ")]
    assert prose and max(map(len, prose)) <= min(columns, 100)


def test_settings_are_all_there(folder):
    """No two rows of settings look alike: names are broken, not cut."""
    shown = in_pipe(["whatif", "a.tmk", "--device", "cpu"], folder).stdout
    assert "…" not in shown and "expandable_segments:True" in shown
    rows = "".join(line.strip() if line.startswith("    ") else "\n" + line for line in shown.splitlines())
    names = [row.split()[0] for row in rows.splitlines() if "MiB" in row and ":" in row.split()[0]]
    assert len(names) == len(set(names)) > 3


def test_wide_characters(tmp_path):
    """Columns stay straight beside names that take two columns a character."""
    (tmp_path / "model.py").write_text(CJK, encoding="utf-8")
    done = in_pipe(["run", "-q", "-o", "cjk.tmk", "--", TORCH, "model.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    rows = in_pipe(["peak", "cjk.tmk", "--by", "module"], tmp_path).stdout.splitlines()[1:]
    end_of_sizes = {width_of(row[:re.search(r"[0-9] [KM]?i?B\b", row).end()]) for row in rows[1:]}
    assert len(end_of_sizes) == 1 and all(width_of(row) <= 80 for row in rows)
    assert any(row.startswith("  层.* ×4 ") for row in rows)
    assert any(row.startswith("    注意力 ×4 ") for row in rows)
    narrow = in_pipe(["peak", "cjk.tmk", "--by", "line"], tmp_path, COLUMNS="50").stdout
    assert all(width_of(row) <= 50 for row in narrow.splitlines())


# ---- colours

@pytest.mark.parametrize("variables, wanted", [
    ({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True),
    ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False), ({"CLICOLOR_FORCE": "0"}, True)])
def test_colours_of_terminal(folder, variables, wanted):
    text, status = on_terminal(["peak", "a.tmk"], folder, **variables)
    assert status == 0 and ("\x1b[" in text) == wanted
    assert SEQUENCE.sub("", text) == in_pipe(["peak", "a.tmk"], folder).stdout


def test_colours_asked_for(folder):
    assert "\x1b[" in in_pipe(["--color", "always", "peak", "a.tmk"], folder, NO_COLOR="1").stdout
    assert "\x1b[" in in_pipe(["peak", "a.tmk"], folder, CLICOLOR_FORCE="1").stdout
    assert "\x1b[" not in in_pipe(["--color=auto", "peak", "a.tmk"], folder).stdout
    assert "\x1b[" not in on_terminal(["--color=never", "peak", "a.tmk"], folder)[0]
    assert in_pipe(["--color"], folder).returncode == 2


# ---- charset

TEXTS = [["peak", "a.tmk", "--by", key] for key in
         ("category", "module", "component", "stage", "step", "line", "stack", "tensor")] + [
    ["report", "a.tmk", "--full"], ["report", "leak.tmk"], ["report", "oom.tmk", "--full"], ["leak", "leak.tmk"],
    ["leak", "a.tmk"], ["explain", "oom.tmk"], ["frag", "a.tmk"], ["whatif", "a.tmk", "--device", "cpu"],
    ["diff", "a.tmk", "leak.tmk"], ["query", "a.tmk", "SELECT * FROM steps"], ["tables"], ["tables", "steps"],
    ["check", "a.tmk"], ["ps"], ["doctor"], ["env"], ["top", "--once"],
    ["sweep", "--dry-run", "--param", "steps=1,2", "--", "tinytrain", "--steps", "{steps}"], ["--help"],
]


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1"])
def test_no_signs_without_utf8(folder, locale):
    """Of our own words nothing is beyond ASCII where the locale has no UTF-8."""
    texts = TEXTS if locale == "C" else TEXTS[:9]
    for arguments in texts:
        done = in_pipe(arguments, folder, LC_ALL=locale)
        found = sorted(set(re.findall(r"[^\x00-\x7f]", done.stdout + done.stderr)))
        assert not found, f"{arguments}: {found}"
    assert "#####" in in_pipe(["peak", "a.tmk"], folder, LC_ALL=locale).stdout


@pytest.mark.parametrize("variables", [{"LC_ALL": "", "LANG": ""}, {"LC_ALL": "", "LANG": "de_DE.utf8"},
                                       {"LC_ALL": "", "LC_CTYPE": "en_US.UTF-8", "LANG": "C"}])
def test_signs_with_utf8(folder, variables):
    """The locale need not be installed, and a container that names none shows UTF-8."""
    assert "█" in in_pipe(["peak", "a.tmk"], folder, **variables).stdout


# ---- pager

@pytest.fixture(name="pager")
def fixture_pager(tmp_path):
    """A folder with a pager of ours."""
    for name, text in (("pager", PAGER), ("stubborn", STUBBORN)):
        path = tmp_path / name
        path.write_text(text.format(folder=tmp_path), encoding="utf-8")
        path.chmod(0o755)
    return tmp_path


def paged(pager):
    path = pager / "paged"
    return path.read_text(encoding="utf-8") if path.exists() else None


def test_long_output_is_paged(folder, pager):
    """With colours, all of it, and less would be told what git tells it."""
    text, status = on_terminal(["report", "a.tmk"], folder, PAGER=f"{pager}/pager")
    assert (text, status) == ("", 0)
    assert "\x1b[1m" in paged(pager)
    assert SEQUENCE.sub("", paged(pager)) == in_pipe(["report", "a.tmk"], folder).stdout
    assert (pager / "began").read_text() == "LESS=FRX\n"


def test_short_output_is_not(folder, pager):
    text, status = on_terminal(["peak", "a.tmk"], folder, PAGER=f"{pager}/pager")
    assert status == 0 and "allocated on cpu" in text and paged(pager) is None
    tall, status = on_terminal(["report", "a.tmk"], folder, rows=400, PAGER=f"{pager}/pager")
    assert status == 0 and "healthy" in tall.lower() and paged(pager) is None
    folded, status = on_terminal(["peak", "a.tmk"], folder, columns=40, rows=8, PAGER=f"{pager}/pager")
    assert (folded, status) == ("", 0) and paged(pager)


@pytest.mark.parametrize("arguments, variables", [
    (["--no-pager", "report", "a.tmk"], {"PAGER": "{pager}"}), (["report", "a.tmk"], {"PAGER": "cat"}),
    (["report", "a.tmk"], {"PAGER": ""}), (["report", "a.tmk"], {"PAGER": "{pager}", "TIDEMARK_PAGER": "cat"})])
def test_no_pager_is_wanted(folder, pager, arguments, variables):
    settings = {name: value.format(pager=pager / "pager") for name, value in variables.items()}
    text, status = on_terminal(arguments, folder, **settings)
    assert status == 0 and paged(pager) is None
    assert SEQUENCE.sub("", text) == in_pipe(["report", "a.tmk"], folder).stdout


def test_which_pager(folder, pager):
    on_terminal(["report", "a.tmk"], folder, PAGER="false", TIDEMARK_PAGER=f"{pager}/pager", LESS="R")
    assert paged(pager) and (pager / "began").read_text() == "LESS=R\n"


def test_pipe_has_no_pager(folder, pager):
    assert in_pipe(["report", "a.tmk"], folder, PAGER=f"{pager}/pager").stdout and paged(pager) is None


@pytest.mark.parametrize("command", ["head -n 1", "true", "exit 3"])
def test_pager_left_early(folder, command):
    """That is no error, and the exit status is the command's own."""
    text, status = on_terminal(["report", "a.tmk", "--full"], folder, PAGER=command)
    assert status == 0 and text.count("\n") == (command == "head -n 1")
    assert on_terminal(["leak", "leak.tmk", "--check"], folder, rows=4, PAGER=command)[1] == 1


def test_pager_that_is_not_there(folder):
    text, status = on_terminal(["report", "a.tmk"], folder, PAGER="no-such-pager -x")
    assert status == 0 and "no-such-pager" in text.splitlines()[0]
    assert "HOW COMPLETE THIS IS" in text or "healthy" in text.lower()


def test_interrupt_is_the_pagers(folder, pager):
    """^C does not end the program below its pager."""
    text, status = on_terminal(["report", "a.tmk"], folder, keys=[b"\x03", b"q\n"], PAGER=f"{pager}/stubborn")
    assert status == 0 and "ready" in text
    assert SEQUENCE.sub("", paged(pager)) == in_pipe(["report", "a.tmk"], folder).stdout


def test_interrupt_of_a_query_is_the_pagers(folder, pager):
    """A statement takes ^C while it runs, and gives it back to the pager, not to us."""
    text, status = on_terminal(["query", "a.tmk", "SELECT * FROM allocations", "--limit", "0"], folder,
                               keys=[b"\x03", b"q\n"], PAGER=f"{pager}/stubborn")
    assert status == 0 and "ready" in text


def test_what_a_query_says_is_paged(folder, pager):
    """How many rows are left out, and what is wrong with a later statement, come below the rows."""
    text, status = on_terminal(["query", "a.tmk", "SELECT id FROM allocations; SELECT nam FROM events"], folder,
                               PAGER=f"{pager}/pager")
    assert (text, status) == ("", 2)
    lines = SEQUENCE.sub("", paged(pager)).splitlines()
    assert re.fullmatch(r"tidemark: 100 of [0-9,]+ rows; --limit 0 shows all", lines[101])
    assert lines[102].startswith("tidemark: no such column: nam")


def test_messages_keep_their_order(folder, pager):
    """A message comes where it belongs: before the output, or among what is paged."""
    text, status = on_terminal(["peak", "a.tmk", "--by", "colour"], folder, PAGER=f"{pager}/pager")
    assert status == 2 and text.startswith("tidemark: --by") and paged(pager) is None
