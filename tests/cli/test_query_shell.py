# SPDX-License-Identifier: MIT
"""The shell of `tidemark query RUN`, typed at through a pseudo-terminal; the queries that
`tidemark tables` says to try; ^C of a query that takes long."""
import json
import os
import re
import signal
import stat
import subprocess
import termios
import time

import pytest
from query_kit import FIRST, NEXT, TIDEMARK, WAIT_S, Shell
from test_golden import environment, need, run_case, workshop

# Ends only when it is interrupted.
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture(name="sh")
def fixture_shell(tmp_path):
    need("a.tmk")
    with Shell(tmp_path, "a.tmk") as sh:
        sh.greeting = sh.until(FIRST)
        yield sh


# ---- statements

def test_statements(sh):
    """Over several lines, two in a line; an error does not end it; ^D does."""
    assert sh.greeting == ("a.tmk: 1 process. SQL ends with ;   .tables lists the tables, .help the "
                           "commands.\n")
    assert sh.ask("SELECT count(*) AS n FROM steps;") == " n\n13\n"
    assert sh.ask("SELECT step", NEXT) == ""
    assert sh.ask("  FROM steps", NEXT) == ""
    assert sh.ask("  WHERE step = 3;") == "step\n   3\n"
    assert sh.ask("SELECT 1 AS a; SELECT NULL AS b;") == "a\n1\n\nb\n-\n"
    assert sh.ask("SELECT stepp FROM steps;") == (
        "no such column: stepp\n  SELECT stepp FROM steps;\n         ^\ndid you mean step?\n")
    assert sh.ask("DROP TABLE steps;") == ("query only reads: DROP is refused; tidemark export --to "
                                           "sqlite makes a file for that\n")
    assert sh.ask("") == "" and sh.ask(" -- nothing") == ""
    assert sh.ask("SELECT 'é' AS x;") == "x\né\n"
    assert sh.leave() == 0


def test_narrow_screen(tmp_path):
    """Where columns have no room beside each other, they stand below each other."""
    need("a.tmk")
    with Shell(tmp_path, "a.tmk", columns=40) as sh:
        sh.until(FIRST)
        assert sh.ask("SELECT step, peak_allocated, end_allocated, device FROM steps LIMIT 2;") == (
            "row 1\n  step            -\n  peak_allocated  458596\n  end_allocated   458596\n"
            "  device          cpu\n\nrow 2\n  step            0\n  peak_allocated  6463772\n"
            "  end_allocated   1339604\n  device          cpu\n")
        sh.ask(".width 0")
        assert sh.ask("SELECT step, peak_allocated, end_allocated, device FROM steps LIMIT 1;") == (
            "step  peak_allocated  end_allocated  device\n"
            "   -          458596         458596  cpu\n")


def test_limit(sh):
    """A terminal gets 100 rows, and is told of the rest."""
    lines = sh.ask("SELECT id FROM allocations;").splitlines()
    total = int(sh.ask("SELECT count(*) AS n FROM allocations;").split()[1])
    assert len(lines) == 102 and lines[-1] == f"100 of {total:,} rows; .limit 0 shows all"
    assert sh.ask(".limit 2") == ""
    assert sh.ask("SELECT step FROM steps;") == "step\n   -\n   0\n2 of 13 rows; .limit 0 shows all\n"
    assert sh.ask(".limit") == "2 rows\n" and sh.ask(".limit 0") == ""
    assert len(sh.ask("SELECT step FROM steps;").splitlines()) == 14


def test_interrupt(sh):
    """^C ends the query or drops the line; the shell goes on."""
    sh.type(ENDLESS + ";\n")
    sh.until("\n")
    end = time.monotonic() + WAIT_S
    while termios.tcgetattr(sh.master)[3] & termios.ICANON == 0 or \
            handled_signals(sh.process.pid) >> (signal.SIGINT - 1) & 1 == 0:
        assert time.monotonic() < end
    sh.is_busy = True
    sh.type("\x03")
    sh.is_busy = False
    assert sh.until(FIRST).endswith("interrupted\n")
    sh.type("SELECT 1,\x03")
    sh.until("^C\n" + FIRST)
    assert sh.ask("SELECT 1", NEXT) == ""
    sh.type("\x03")
    sh.until("^C\n" + FIRST)
    assert sh.ask("SELECT 2 AS a;") == "a\n2\n"


# ---- dot commands

def test_dot_commands(sh):
    tables = json.loads(run_case("tidemark tables --json").stdout)["tables"]
    listed = sh.ask(".tables").splitlines()
    assert [line.split()[0] for line in listed] == [table["name"] for table in tables]
    assert sh.ask(".tables trace") == ("python.torch_trace  memory where modules open and close in "
                                       "forward, backward and optimizer\n")
    assert sh.ask(".tables nope") == "no table has 'nope' in its name\n"
    schema = sh.ask(".schema marks")
    assert schema.startswith("-- what the program said about moments\nCREATE TABLE marks (\n"
                             "  pid     INTEGER, -- process\n")
    assert sh.ask(".schema").count("CREATE TABLE") == len(tables)
    assert sh.ask(".schema mark") == "there is no table 'mark'; did you mean marks?\n"
    assert "\n  event " in sh.ask(".columns marks")
    assert sh.ask(".mode csv") == "" and sh.ask("SELECT 1 AS a, NULL AS b;") == "a,b\n1,\n"
    assert sh.ask(".mode json") == "" and json.loads(sh.ask("SELECT NULL AS b;"))["rows"] == [
        {"b": None}]
    assert sh.ask(".mode html") == ".mode is table, json or csv, not 'html'\n"
    assert sh.ask(".mode") == "json\n" and sh.ask(".mode table") == ""
    assert sh.ask(".timer on") == ""
    assert re.fullmatch(r"a\n1\n0\.\d{3} s\n", sh.ask("SELECT 1 AS a;"))
    assert sh.ask(".timer") == "on\n" and sh.ask(".width") == "auto: 100 columns\n"
    assert sh.ask(".tabels") == "there is no command .tabels; did you mean .tables?\n"
    for command in re.findall(r"^(\.\w+)", sh.ask(".help"), re.M):
        assert command in (".columns", ".examples", ".exit", ".help", ".limit", ".mode", ".quit",
                           ".read", ".schema", ".tables", ".timer", ".width")
    assert sh.leave(".quit\n") == 0


def test_no_way_out(sh, tmp_path):
    """No dot command starts a program or writes a file."""
    for line in (".shell touch x", ".system touch x", ".output x", ".once x", ".log x", ".save x",
                 ".backup x", ".load x", ".open x", ".cd /", ".excel", ".read |touch x"):
        assert re.match(r"there is no command \.\w+; |cannot read \|touch x: No such file", sh.ask(line))
    assert not os.path.exists(os.path.join(workshop().name, "x"))


def test_read(sh, tmp_path):
    path = tmp_path / "some queries.sql"
    path.write_text("-- two\nSELECT 1 AS a;\nSELECT 2 AS b", encoding="utf-8")
    assert sh.ask(f".read {path}") == "a\n1\n\nb\n2\n"
    path.write_text("SELECT 1 AS a;\nSELECT nope;\nSELECT 3", encoding="utf-8")
    assert sh.ask(f".read {path}") == ("a\n1\nno such column: nope\n  SELECT nope;\n         ^\n"
                                       "what there is: tidemark tables\n")


def test_examples_run(sh):
    """What the shell says to try can be typed as it stands."""
    examples = [line for line in sh.ask(".examples").splitlines() if line]
    assert len(examples) == 5
    for example in examples:
        answer = sh.ask(example)
        assert answer and "no such" not in answer and "error" not in answer


# ---- history and completion

def history_of(home):
    return home / ".local" / "state" / "tidemark" / "history"


def test_history(tmp_path):
    """It is there in the next shell, for the user alone."""
    need("a.tmk")
    with Shell(tmp_path, "a.tmk") as sh:
        sh.until(FIRST)
        sh.ask("SELECT 11 AS a;")
        sh.ask("SELECT 22", NEXT)
        sh.ask("AS b;")
        sh.ask(".timer off")
        assert sh.leave() == 0
    path = history_of(tmp_path)
    assert path.read_text() == "SELECT 11 AS a;\nSELECT 22 AS b;\n.timer off\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with Shell(tmp_path, "a.tmk") as sh:
        sh.until(FIRST)
        sh.type("\x1b[A\x1b[A")  # two up
        assert sh.ask("").endswith("b\n22\n")


def test_history_is_bounded(tmp_path):
    need("a.tmk")
    path = tmp_path / "state" / "tidemark" / "history"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"SELECT {i};\n" for i in range(2001)), encoding="utf-8")
    path.chmod(0o644)
    with Shell(tmp_path, "a.tmk", XDG_STATE_HOME=str(tmp_path / "state")) as sh:
        sh.until(FIRST)
        sh.ask("SELECT 1 AS a;")
    lines = path.read_text().splitlines()
    assert lines == [f"SELECT {i};" for i in range(1001, 2001)] + ["SELECT 1 AS a;"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not (tmp_path / ".local").exists()


@pytest.mark.parametrize("typed,completed", [
    (".tab\t\n", ".tables"),
    (".mode c\t\n", ".mode csv"),
    (".schema torc\t\n", ".schema torc"),           # written with its schema
    (".schema python\t\n", ".schema python.torch_trace"),
    ("sel\t1 AS a;\n", "select 1 AS a;"),
    ("SELECT * FROM expl\t;\n", "SELECT * FROM explanations ;"),
    ("SELECT peak_a\t FROM steps;\n", "SELECT peak_allocated  FROM steps;"),
    ("SELECT 1 FROM steps s WHERE s.micro\t= 1;\n", "SELECT 1 FROM steps s WHERE s.micro_steps = 1;"),
    ("SELECT med\t1);\n", "SELECT median(1);"),
    ("SELECT * FROM python.t\t;\n", "SELECT * FROM python.torch_trace ;"),
])
def test_completion(sh, tmp_path, typed, completed):
    sh.type(typed)
    sh.until(FIRST)
    assert history_of(tmp_path).read_text() == completed + "\n"


def test_completion_lists(sh):
    """Columns of the table that is named behind the cursor come first; a second line counts too."""
    sh.type("SELECT  FROM marks;" + "\x1b[D" * len(" FROM marks;") + "\t")
    listed = sh.until(FIRST + "SELECT  FROM marks;").split("\n", 1)[1].split()
    assert {"event", "info", "time_ns", "median(", "DISTINCT", "explanations"} <= set(listed)
    sh.type("\x03")
    sh.until("^C\n" + FIRST)
    assert sh.ask("SELECT * FROM marks WHERE", NEXT) == ""
    sh.type("ev\t= 'x';\n")
    sh.until(FIRST)


# ---- not a terminal

def test_queries_to_try(tmp_path):
    """Three of each table, on a run with leaks and one that ran out."""
    need("leak.tmk"), need("oom.tmk")
    tables = json.loads(run_case("tidemark tables --json").stdout)["tables"]
    queries = [query for table in tables for query in table["examples"]]
    assert len(queries) == len(set(queries)) == 3 * len(tables)
    for run in ("leak.tmk", "oom.tmk"):
        done = subprocess.run([TIDEMARK, "query", run], input=";\n".join(queries), text=True,
                              cwd=workshop().name, env=environment(), capture_output=True,
                              timeout=WAIT_S * 3, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_tables_fit(tmp_path):
    """80 columns in a pipe, and every table with all its columns."""
    done = run_case("tidemark tables")
    tables = json.loads(run_case("tidemark tables --json").stdout)["tables"]
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    words = done.stdout.replace(",", " ").split()
    for table in tables:
        assert table["name"] in words and all(c["name"] in words for c in table["columns"])


def test_interrupt_of_a_command():
    """^C of a query in a script ends it by the signal: the script's loop ends, too."""
    need("a.tmk")
    with subprocess.Popen([TIDEMARK, "query", "a.tmk", ENDLESS], cwd=workshop().name, text=True,
                          env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as query:
        end = time.monotonic() + WAIT_S
        while handled_signals(query.pid) >> (signal.SIGINT - 1) & 1 == 0:
            assert time.monotonic() < end and query.poll() is None
        query.send_signal(signal.SIGINT)
        out, err = query.communicate(timeout=WAIT_S)
    assert (query.returncode, out, err) == (-signal.SIGINT, "", "tidemark: interrupted\n")


def handled_signals(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt:"))
