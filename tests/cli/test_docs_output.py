# SPDX-License-Identifier: MIT
"""What README and docs show is what the commands print: each ```console block is run, its output compared.

The line above a block's fence may say, in a comment that readers do not see,

    <!-- shows: train.tmk = tests/data/ooms/leak.trace; a.tmk = $ tidemark run -q -o a.tmk -- tinytrain -->
    <!-- not run: REASON -->

which files of the repository, or which results of a command, have those names in the block; or why
the block cannot be run here (REASONS has the ones that count). All blocks of a document run one
after the other in one folder, so that later ones see what earlier ones made.

Compared are words, not lines: how long names and times are decides where lines break. `...` on a
line of its own stands for any text, and times, dates and the size of a trace are as good as any
other, as are the machine's name and its memory. Sizes, counts, shares and everything else must be equal.

`/usr/bin/python3 tests/cli/test_docs_output.py docs/explain.md` prints what its blocks give now.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
BUILD = os.environ.get("TIDEMARK_BUILD", os.path.join(ROOT, "build"))
#: Documents whose blocks other tests run, with parts that are not here: sshd, Prometheus, made-up devices.
ELSEWHERE = {"docs/commands.md": "tests/cli/test_cli_manual.py", "docs/fleet.md": "tests/fleet/test_fleet_docs.py",
             "docs/monitors.md": "tests/monitor/test_docs.py", "docs/probing.md": "tests/eval/test_probing.py"}
REASONS = ("needs a GPU", "installs", "a job that goes on", "several machines", "differs from machine to machine")
TIME_LIMIT_S = 120

BLOCK = re.compile(r"(?:^<!-- (shows|not run): ([^\n]*) -->\n)?^```console\n(.*?)^```$", re.S | re.M)
TIME = r"\d[\d,]*(?:\.\d+)? ?(?:ns|µs|ms|s|min|h|d)\b"
#: Pattern, and what stands for it on both sides.
VARY = ((r"[█▉▊▋▌▍▎▏▁▂▃▄▅▆▇░▒▓│┤└─┴┬═]+", " "),
        (r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?: UTC)?)?", "DATE"),
        (rf"{TIME}(?: {TIME})*", "TIME"),
        (r"\btrace +[\d.]+ [KM]iB", "trace SIZE"),
        (r"[\d.]+ [KMGT]?i?B an hour", "RATE an hour"),
        (r"[\d.]+ [GT]iB of CPU memory", "SIZE of CPU memory"))


def documents():
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=True)
    return [name for name in tracked.stdout.split()
            if name not in ELSEWHERE and not name.endswith(".zh.md") and re.match(r"README|docs/", name)]


def blocks_of(name):
    """(kind, what it says, [(command, output)]) of each block."""
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        text = file.read()
    found = []
    for kind, said, code in BLOCK.findall(text):
        parts = re.split(r"^\$ ", code, flags=re.M)[1:]
        found.append((kind, said, [split_command(part) for part in parts]))
    return found


def split_command(part):
    """A command ends with the line on which its quotes are closed and no backslash stands."""
    lines = part.splitlines(keepends=True)
    for n in range(1, len(lines) + 1):
        command = "".join(lines[:n])
        if command.count('"') % 2 == 0 and command.count("'") % 2 == 0 and not command.rstrip("\n").endswith("\\"):
            return command.rstrip("\n"), "".join(lines[n:])
    return part.rstrip("\n"), ""


def words_of(text):
    for pattern, instead in VARY:
        text = re.sub(pattern, instead, text)
    return text.split()


def pattern_of(shown):
    """Of the words that a block shows, with anything where a line is "..."."""
    pieces = re.split(r"^ *\.\.\.$", shown, flags=re.M)
    return r"(?:.* )?".join("".join(re.escape(word) + " " for word in words_of(piece)) for piece in pieces)


class Folder:
    """One for each document, with the tree that a reader has: examples and the programs on the path."""

    def __init__(self):
        self.at = tempfile.mkdtemp(prefix="tidemark-docs-")
        os.mkdir(self.path("bin"))
        for program in ("tidemark", "tinytrain"):
            os.symlink(os.path.join(BUILD, program), self.path("bin", program))
        for python in ("python", "python3"):
            os.symlink("/usr/bin/python3", self.path("bin", python))
        for part in ("examples", "tests"):
            os.symlink(os.path.join(ROOT, part), self.path(part))
        os.symlink(BUILD, self.path("build"))

    def path(self, *names):
        return os.path.join(self.at, *names)

    def run(self, command):
        kept = {name: value for name, value in os.environ.items() if name in ("HOME", "TMPDIR", "XDG_RUNTIME_DIR")}
        done = subprocess.run(["bash", "-c", command], cwd=self.at, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIME_LIMIT_S, check=False,
                              env={**kept, "PATH": self.path("bin") + ":/usr/bin:/bin", "TERM": "xterm",
                                   "LANG": "C.UTF-8", "PYTHONPATH": os.path.join(ROOT, "python")})
        return done.stdout

    def prepare(self, said):
        """Make what a block's comment names."""
        for part in re.split(r"; (?=[\w.]+ = )", said):
            name, source = part.split(" = ", 1)
            if os.path.isdir(self.path(name)):
                shutil.rmtree(self.path(name))
            elif os.path.exists(self.path(name)):
                os.remove(self.path(name))
            if source.startswith("$ "):
                self.run(source[2:])
            else:
                (shutil.copytree if os.path.isdir(os.path.join(ROOT, source)) else shutil.copy)(
                    os.path.join(ROOT, source), self.path(name))
            assert os.path.exists(self.path(name)), f"{part}: there is no {name} after it"

    def close(self):
        shutil.rmtree(self.at, ignore_errors=True)


def results(name):
    """(command, shown, printed) of each command that can be run."""
    folder = Folder()
    try:
        for kind, said, commands in blocks_of(name):
            if kind == "not run":
                continue
            if kind == "shows":
                folder.prepare(said)
            for command, shown in commands:
                yield command, shown, re.sub(rf"\b{re.escape(socket.gethostname())}\b", "vm", folder.run(command))
    finally:
        folder.close()


def test_reasons():
    """Every block that is not run says why, in words that are listed here."""
    said = [(name, reason) for name in documents() for kind, reason, _ in blocks_of(name) if kind == "not run"]
    assert [one for one in said if not one[1].startswith(REASONS)] == []


@pytest.mark.parametrize("name", [name for name in documents() if any(kind != "not run" for kind, *_ in blocks_of(name))])
def test_output(name):
    wrong = [f"$ {command}\n{printed}\nbut {name} shows\n{shown}" for command, shown, printed in results(name)
             if not re.fullmatch(pattern_of(shown), "".join(word + " " for word in words_of(printed)), re.S)]
    assert not wrong, "\n\n".join(wrong)


if __name__ == "__main__":
    for document in sys.argv[1:]:
        for line, _, output in results(document):
            print(f"$ {line}\n{output}")
