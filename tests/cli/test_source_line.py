# SPDX-License-Identifier: MIT
"""The text of a line beside its number: where the file is there, is source, and is a file."""
import json
import os
import re
import subprocess

from test_golden import ROOT

TIDEMARK = os.path.join(ROOT, "build", "tidemark")
LONG = "keep(" + "é" * 200 + ")"
PROGRAM = """\
import ctypes, sys
class Site(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("function", ctypes.c_char_p), ("line", ctypes.c_uint32), ("id", ctypes.c_uint32)]
recorder = ctypes.CDLL(None)
sites = [Site(arg.rsplit(":", 1)[0].encode(), b"f", int(arg.rsplit(":", 1)[1]), 0) for arg in sys.argv[1:]]
for step in range(20):
    recorder.tidemark_record_step(ctypes.c_int64(step))
    for i, site in enumerate(sites):
        address = ctypes.c_void_p((1 + step * len(sites) + i) << 24)
        recorder.tidemark_record_alloc(0, address, ctypes.c_uint64((100 - i) << 12), ctypes.byref(site))
recorder.tidemark_record_step(ctypes.c_int64(20))
"""


def test_sources(tmp_path):
    (tmp_path / "a.py").write_text(f"import os\n\t  kept.append(x)  # for ever\t\r\n\n{LONG}\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("a secret\n", encoding="utf-8")
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "fifo.py")
    wanted = {"a.py:2": "kept.append(x)  # for ever", "a.py:3": None, "a.py:4": None, "a.py:5": None, "a.txt:1": None,
              "folder.py:1": None, "fifo.py:1": None, "none.py:1": None, "a.py:1": "import os"}
    (tmp_path / "load.py").write_text(PROGRAM, encoding="utf-8")
    run = tmp_path / "a.tmk"
    subprocess.run([TIDEMARK, "run", "-q", "-o", run, "--", "/usr/bin/python3", tmp_path / "load.py",
                    *(str(tmp_path / where) for where in wanted)], check=True)
    done = subprocess.run([TIDEMARK, "leak", "--json", run], capture_output=True, text=True, check=False, timeout=20)
    sources = {f"{os.path.basename(leak['file'])}:{leak['line']}": leak["source"] for leak in json.loads(done.stdout)["leaks"]}
    long = sources.pop("a.py:4")
    assert long.endswith("...") and LONG.startswith(long[:-3]) and 110 < len(long.encode()) < 128
    del wanted["a.py:4"]
    assert sources == wanted
    text = subprocess.run([TIDEMARK, "leak", run], capture_output=True, text=True, check=False, timeout=20).stdout
    assert "\n    | kept.append(x)  # for ever\n" in text


def record(folder, wanted):
    """A run in which each of these lines keeps some more memory with every step."""
    (folder / "load.py").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([TIDEMARK, "run", "-q", "-o", folder / "a.tmk", "--", "/usr/bin/python3", folder / "load.py", *wanted],
                   check=True)
    return folder / "a.tmk"


def told(*command):
    return subprocess.run([TIDEMARK, *command], capture_output=True, text=True, check=False, timeout=20).stdout


def test_changed_since(tmp_path):
    """The lines of a file that was written to after the run may be others: none is shown."""
    (tmp_path / "a.py").write_text("kept.append(x)\n", encoding="utf-8")
    run = record(tmp_path, [str(tmp_path / "a.py:1")])
    assert json.loads(told("leak", "--json", run))["leaks"][0]["source"] == "kept.append(x)"
    assert re.search(r"\n  a[.]py:1 f +[\d.]+ MiB +\d+ %  kept[.]append\(x\)\n", told("report", run))
    assert all("| kept.append(x)\n" in told(*command) for command in (["leak", run], ["report", run]))
    (tmp_path / "a.py").write_text("something_else()\nkept.append(x)\n", encoding="utf-8")
    assert json.loads(told("leak", "--json", run))["leaks"][0]["source"] is None
    assert "    | (a.py has changed since)\n" in told("leak", run)
    for command in (["report", run], ["report", run, "--format", "md"], ["peak", run, "--by", "line"]):
        text = told(*command)
        assert text.count("a.py has changed since; its lines are not shown.") == 1, text
        assert "something_else" not in text and text.count("has changed since") == 1, text


def test_changed_files_are_listed(tmp_path):
    names = ["a.py", "ba.py"]
    for name in names:
        (tmp_path / name).write_text("kept.append(x)\n", encoding="utf-8")
    run = record(tmp_path, [str(tmp_path / f"{name}:1") for name in names])
    for name in names:
        (tmp_path / name).write_text("changed()\n", encoding="utf-8")
    said = re.search(r"\n  (.*) have changed since; their lines are not shown[.]\n", told("peak", run, "--by", "line"))
    assert sorted(said[1].split(", ")) == ["a.py", "ba.py"]


def test_colours_of_a_leak(tmp_path):
    """The line is dim; what makes it so is not part of its text."""
    (tmp_path / "a.py").write_text("kept.append(x)\n", encoding="utf-8")
    run = record(tmp_path, [str(tmp_path / "a.py:1")])
    said = subprocess.run([TIDEMARK, "leak", run], capture_output=True, text=True, check=False, timeout=20,
                          env={**os.environ, "CLICOLOR_FORCE": "1", "NO_COLOR": ""}).stdout
    assert "\n    \x1b[2m| kept.append(x)\x1b[0m\n" in said and said.startswith("\x1b[1m\x1b[31mleak: ")


def test_places(tmp_path):
    """A leak's line is named as the reader finds it: from here, from home, or by its folder."""
    (tmp_path / "job").mkdir()
    run = record(tmp_path, [str(tmp_path / "job" / "a.py:1")])

    def place(folder, home):
        done = subprocess.run([TIDEMARK, "leak", run], capture_output=True, text=True, check=False, timeout=20, cwd=folder,
                              env={**os.environ, "HOME": str(home)})
        return done.stdout.split("\n\n")[1].splitlines()[0]

    assert place(tmp_path, "/nowhere") == "  job/a.py:1 f"
    assert place("/", tmp_path) == "  ~/job/a.py:1 f"
    assert place("/", "/nowhere") == "  job/a.py:1 f"
    assert place(tmp_path / "job", tmp_path) == "  a.py:1 f"


def test_cells_of_notebooks(tmp_path):
    """IPython names a cell by its number, Jupyter by what is in it: there the number is not known."""
    run = record(tmp_path, ["<ipython-input-12-0123456789ab>:3", "/tmp/ipykernel_71/2203.py:5"])
    text = told("leak", run)
    assert "\n  In [12]:3 f\n" in text and "\n  ipykernel_71/2203.py:5 f\n" in text
    page = told("report", run)
    assert "  In [12]:3 f " in page and "  ipykernel_71/2203.py:5 f " in page
    (first, second) = json.loads(told("leak", "--json", run))["leaks"]
    assert (first["file"], second["file"]) == ("<ipython-input-12-0123456789ab>", "/tmp/ipykernel_71/2203.py")


def test_long_lines_stay_on_theirs(tmp_path):
    """In the table of lines a text is cut to what is left of the screen, not wrapped."""
    (tmp_path / "a.py").write_text("keep(" + "x, " * 60 + ")\n", encoding="utf-8")
    run = record(tmp_path, [str(tmp_path / "a.py:1")])
    (row,) = [line for line in told("report", run).splitlines() if line.startswith("  a.py:1 f ") and " %  keep(x, x" in line]
    assert len(row) == 78 and row.endswith("...")  # the largest size would take two more
