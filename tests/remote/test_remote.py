# SPDX-License-Identifier: MIT
"""HOST:PID, over Debian's real sshd on loopback: the same answers as there, one login, and clear words when it cannot
be."""
import fcntl
import json
import os
import pty
import random
import signal
import struct
import subprocess
import sys
import termios

import pytest
from remote_kit import BLOCKS, DEBIAN, REPO, TIDEMARK, WAIT_S, locally, wait_until

sys.path.insert(0, str(REPO / "tests" / "cli"))
from query_kit import FIRST, Shell  # noqa: E402 (the path comes first)

# Grows by 1,000 bytes a step, and has 100,000: there is a leak, an OOM and a forecast to tell of.
KNOWN = BLOCKS + """
recorder.tidemark_record_oom.argtypes = [ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]
for step in range(41):
    recorder.tidemark_record_step(ctypes.c_int64(step))
    if step < 40:
        alloc(4096 * (step + 1), 1000)
        time.sleep(0.005)
recorder.tidemark_record_oom(256, 70000, 100000, ctypes.byref(site))
idle()
"""


@pytest.fixture(scope="module", name="known")
def fixture_known(start):
    """PID of a process that has allocated and now idles: its answers do not change."""
    return start(KNOWN)[1]


def outcome(done):
    return done.returncode, done.stdout, done.stderr


# ---- what is asked there is answered here

def test_eval(machine, pid):
    assert outcome(machine.tidemark("eval", f"node7:{pid}", "print('here'); answer + 1")) == (0, "here\n43\n", "")
    failed = machine.tidemark("eval", f"node7:{pid}", "sys.stderr.write('there\\n'); 1 / 0")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("there\nTraceback") and failed.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert json.loads(machine.tidemark("eval", f"node7:{pid}", "answer", "--json").stdout)["pid"] == pid


def test_stdin(machine, pid):
    """`-` is read here and run there; without it stdin is not touched, as a shell's loop wants."""
    code = "for i in range(3):\n    print('Größe', i)\n" + "#" * 200_000
    assert machine.tidemark("eval", f"node7:{pid}", "-", input=code).stdout == "Größe 0\nGröße 1\nGröße 2\n"
    reading, writing = os.pipe()
    os.write(writing, b"next line\n")
    assert machine.tidemark("eval", f"node7:{pid}", "answer", stdin=reading).stdout == "42\n"
    assert os.read(reading, 100) == b"next line\n"
    os.close(reading)
    os.close(writing)
    too_long = machine.tidemark("eval", f"node7:{pid}", "-", input="#" * (1 << 21))
    assert outcome(too_long) == outcome(locally("eval", pid, "-", input="#" * (1 << 21)))
    assert too_long.returncode == 2


@pytest.mark.parametrize("command", [
    ("peak", "{}", "--json"), ("peak", "{}", "--by", "stack"), ("leak", "{}", "--no-python", "--duration", "0.1"),
    ("frag", "{}", "--json"), ("explain", "{}"), ("whatif", "{}", "--json"), ("check", "{}", "--json"),
    ("diff", "{}", "--from", "2", "--to", "7", "--json"), ("diff", "{}", "{}"),
    ("diff", "{}", "--from", "2", "--to", "7", "--fail-if", "peak>5%", "--fail-if", "peak>900%"),
    ("query", "{}", "SELECT step, peak_allocated FROM steps", "--format", "csv"),
    ("report", "{}", "--format", "csv"), ("export", "{}", "--to", "csv", "-o", "-"),
    ("query", "{}", "SELEC"), ("peak", "{}", "--rank", "7"), ("eval", "{}", "1", "--count", "3"),
], ids=lambda command: "-".join(command[:3]).replace("{}", "PID"))
def test_same_as_there(machine, known, command):
    """Output, messages and exit status are those of the command on that machine, with its own name for the process."""
    far = machine.tidemark(*(word.format(f"node7:{known}") for word in command))
    near = locally(*(word.format(known) for word in command))
    assert far.returncode == near.returncode
    assert far.stdout.replace(f"node7:{known}", str(known)) == near.stdout
    assert far.stderr.replace(f"node7:{known}", str(known)) == near.stderr


def test_missing_process(machine):
    """What to do next names the process as it was named here."""
    done = machine.tidemark("peak", "node7:4194303")
    assert outcome(done) == (3, "", "tidemark: there is no process 4194303\n")
    watcher = os.getpid()
    assert outcome(machine.tidemark("eval", f"node7:{watcher}", "1")) == (
        1, "", f"tidemark: process {watcher} is not watched; to watch it: tidemark attach node7:{watcher}\n")


def test_attach_and_detach(machine, shop):
    """The run is on the machine of the process; what is said next works from here."""
    pid, _ = shop.start([DEBIAN, "-c", "import os, time\nprint('ready', os.getpid(), flush=True)\ntime.sleep(600)"])
    run = shop.folder / "attached to it.tmk"
    attached = machine.tidemark("attach", f"node7:{pid}", "-o", run)
    assert attached.returncode == 0, attached.stderr
    assert f"the run is {run} on node7; next: tidemark report node7:{pid}\n" in attached.stderr
    assert attached.stderr.endswith(f"or: tidemark detach node7:{pid}\n")
    assert run.is_dir()
    again = machine.tidemark("attach", f"node7:{pid}")
    assert again.returncode == 0 and again.stderr.endswith(f"next: tidemark report node7:{pid}\n")
    detached = machine.tidemark("detach", f"node7:{pid}")
    assert detached.returncode == 0, detached.stderr
    assert locally("check", run).returncode == 0
    after = machine.tidemark("eval", f"node7:{pid}", "1")
    assert after.stderr.endswith(f"after a detach, to watch it again: tidemark attach node7:{pid}\n")


# ---- arguments

NASTY = ["", " ", "a b", "it's", '"', "\\", "\\n", "a\nb\n", "$HOME", "`id`", "$(id)", "a;id", "*", "~", "!", "!!", "#",
         "-x", "--", "&& id", "| id", "> /dev/null", "\t", "内存", "é\u202e", "\x01\x1b[31m", "%s%n", "{a,b}", "''", "'\\''"]


def texts():
    """Nasty ones, and any characters but zero bytes and halves of surrogate pairs."""
    dice = random.Random(7)
    letters = "'\"\\$`!*?[]{}()<>|&;#~^ \t\n-=%aé内\U0001f600\x01\x7f"
    return NASTY + ["".join(dice.choice(letters) for _ in range(dice.randrange(1, 400))) for _ in range(20)]


def quoted(text):
    """As SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def test_quoting(machine, known):
    """Every text arrives as it was given: here all of them in one argument, and each in one."""
    columns = ", ".join(f"{quoted(text)} AS c{i}" for i, text in enumerate(texts()))
    done = machine.tidemark("query", f"node7:{known}", f"SELECT {columns}", "--format", "json")
    assert list(json.loads(done.stdout)["rows"][0].values()) == texts()
    for text in NASTY[::3] + texts()[len(NASTY)::4]:
        done = machine.tidemark("query", f"node7:{known}", f"SELECT {quoted(text)} AS c", "--json")
        assert json.loads(done.stdout)["rows"] == [{"c": text}]


def test_leading_dashes(machine, pid):
    assert machine.tidemark("eval", "--", f"node7:{pid}", "-answer").stdout == "-42\n"
    assert machine.tidemark("eval", f"node7:{pid}", "--", "--answer").stdout == "42\n"
    assert machine.tidemark("eval", f"node7:{pid}", "").returncode == locally("eval", pid, "").returncode


def test_code_is_not_in_the_list_of_processes(machine, pid):
    code = "secret = open('/proc/self/stat') and sorted(open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') " \
        "if p.isdigit() and os.path.exists(f'/proc/{p}/cmdline')); sum('sorted(open' in s for s in secret)"
    here = int(locally("eval", pid, code).stdout)
    assert here >= 1
    assert int(machine.tidemark("eval", f"node7:{pid}", "-", input=code).stdout) == 0


# ---- which name is a machine

def test_file_comes_first(machine, known, tmp_path):
    """A file or folder of that name is never taken for a machine, nor is a path."""
    logins = machine.logins()
    (tmp_path / f"node7:{known}").write_text("no trace", encoding="utf-8")
    for name in (f"node7:{known}", f"./node7:{known}", f"{tmp_path}/node7:1"):
        done = machine.tidemark("peak", name, cwd=tmp_path)
        assert done.returncode == 3 and "not a tidemark trace" in done.stderr or "cannot open" in done.stderr
    assert machine.logins() == logins


@pytest.mark.parametrize("target", ["-oProxyCommand=touch made:1", "-oProxyCommand=touch$IFS'made':1",
                                    "x@-oProxyCommand=id:1", "node7;touch made:1", "$(touch made):1", "node7:22:4242"])
def test_no_such_name(machine, target, tmp_path):
    done = machine.tidemark("peak", "--", target, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert "is not the name of a machine" in done.stderr or "a port belongs into ~/.ssh/config" in done.stderr
    assert not list(tmp_path.iterdir())


def test_different_machines(machine, known, tmp_path):
    there = f"node7:{known}"
    done = machine.tidemark("diff", there, f"node8:{known}")
    assert outcome(done) == (2, "", f"tidemark: {there} and node8:{known} are on different machines; this command needs "
                                    "both on one\n")
    done = machine.tidemark("diff", there, tmp_path)
    assert outcome(done) == (2, "", f"tidemark: one of {there} and {tmp_path} is on another machine; this command needs "
                                    "both on one\n")


# ---- the connection

def test_one_login(machine, pid):
    """The second command takes the connection of the first."""
    machine.hang_up()
    before = machine.logins()
    for _ in range(3):
        assert machine.tidemark("eval", f"node7:{pid}", "answer").stdout == "42\n"
    assert machine.logins() == before + 1
    assert [oct(path.stat().st_mode & 0o777) for path in machine.sockets()] == ["0o600"]
    assert oct(machine.runtime.stat().st_mode & 0o777) == "0o700"


def test_host_down(machine):
    done = machine.tidemark("eval", "node9:4242", "1")
    assert outcome(done) == (1, "", f"ssh: connect to host 127.0.0.1 port {machine.nobody}: Connection refused\n"
                                    "tidemark: node9 cannot be reached over ssh, without asking for a password; try: "
                                    "ssh node9 true\n")


def test_wrong_key(machine, pid):
    done = machine.tidemark("eval", f"node7:{pid}", "1", env=machine.as_key("stranger"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "Permission denied (publickey)." in done.stderr
    assert done.stderr.endswith("tidemark: node7 cannot be reached over ssh, without asking for a password; try: ssh "
                                "node7 true\n")


def test_no_ssh(machine, pid):
    done = machine.tidemark("eval", f"node7:{pid}", "1", env={"TIDEMARK_SSH": "no-such-ssh -F x"})
    assert outcome(done) == (
        1, "", "tidemark: node7 is reached over ssh, and there is no program no-such-ssh here: install OpenSSH's client "
        "(openssh-client), or name one: TIDEMARK_SSH=\"ssh -F FILE\"\n")


def test_no_tidemark_there(machine, pid):
    """Not on the PATH of ssh: said, with what to do; found in ~/.local/bin, where it is often installed."""
    key = machine.as_key("bare")
    done = machine.tidemark("eval", f"node7:{pid}", "answer", env=key)
    assert outcome(done) == (
        1, "", "tidemark: node7 has no tidemark on the PATH of ssh, nor in ~/.local/bin: install it there "
        "(docs/install.md), or say where it is: --remote-path /PATH/tidemark\n")
    local = machine.home / ".local" / "bin"
    local.mkdir(parents=True)
    (local / "tidemark").symlink_to(TIDEMARK)
    assert machine.tidemark("eval", f"node7:{pid}", "answer", env=key).stdout == "42\n"
    (local / "tidemark").unlink()


def test_remote_path(machine, pid):
    """A path with anything but blanks in it, ~/, or a command with words."""
    key = machine.as_key("bare")
    nasty = machine.home / "it's;$HOME"
    nasty.mkdir()
    (nasty / "tide*mark").symlink_to(TIDEMARK)
    for path in (TIDEMARK, nasty / "tide*mark", "~/it's;$HOME/tide*mark", f"env HERE=1 {TIDEMARK}"):
        done = machine.tidemark("eval", f"node7:{pid}", "answer", "--remote-path", path, env=key)
        assert outcome(done) == (0, "42\n", "")
        done = machine.tidemark("eval", f"node7:{pid}", "answer", env={**key, "TIDEMARK_REMOTE": str(path)})
        assert outcome(done) == (0, "42\n", "")
    done = machine.tidemark("eval", f"node7:{pid}", "answer", "--remote-path", "/no/tidemark")
    assert done.returncode == 1
    assert done.stderr.endswith("tidemark: node7 has no program /no/tidemark (--remote-path, TIDEMARK_REMOTE)\n")


def test_bound_key(machine, pid):
    """A key that may do nothing but `tidemark remote-end` is enough."""
    done = machine.tidemark("eval", f"node7:{pid}", "answer", env=machine.as_key("bound"))
    assert (done.returncode, done.stdout) == (0, "42\n")


def request(*words, protocol=1, version="0.1.0", settings=()):
    text = b"".join(word.encode() + b"\0" for word in (*settings, "", "", *words))
    return f"tidemark-remote {protocol} {version} node7 {len(text)} 0\n".encode() + text


def remote_end(data):
    """What the other side answers, by itself; its stdin stays open."""
    with subprocess.Popen([TIDEMARK, "remote-end"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as there:
        there.stdin.write(data)
        there.stdin.flush()
        out, err = there.stdout.read().decode(), there.stderr.read().decode()
        return there.wait(timeout=WAIT_S), out, err


def test_versions():
    """Another protocol is refused by the side that is older or newer; another version is named when an option fails."""
    version = subprocess.run([TIDEMARK, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert remote_end(request("ps", protocol=2, version="9.9.9")) == (
        2, "", f"tidemark: tidemark {version} on that machine and 9.9.9 here do not understand each other; install the "
        "same version on both\n")
    status, _, said = remote_end(request("peak", "--new-option", "--", "1", version="9.9.9"))
    assert status == 2 and said.endswith(f"tidemark: node7 has tidemark {version}, this machine 9.9.9\n")


@pytest.mark.parametrize("words", [("run", "--", "id"), ("sweep", "--", "id"), ("remote-end",), ("demo",), ("import", "x")])
def test_other_commands_are_refused(words):
    assert remote_end(request(*words)) == (
        2, "", f"tidemark: '{words[0]}' is not a command on a process of another machine\n")


def test_other_settings_are_refused(pid):
    """LD_PRELOAD of a request is not taken over."""
    status, out, said = remote_end(request("peak", "--", "4194303", settings=("LD_PRELOAD=/no/such.so", "TERM=x")))
    assert (status, out, said) == (3, "", "tidemark: there is no process 4194303\n")


def test_by_hand():
    done = subprocess.run([TIDEMARK, "remote-end"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert outcome(done) == (2, "", "tidemark: remote-end is started over ssh by: tidemark COMMAND HOST:PID\n")


# ---- signals

def ends_there(machine):
    """PIDs of the other sides that still run."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as words, open(f"/proc/{pid}/environ", "rb") as settings:
                if b"\0remote-end\0" in words.read() and f"HOME={machine.home}\0".encode() in settings.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def pending(pid):
    """Signals that wait for a process, as a mask."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return sum(int(line.split()[1], 16) for line in status if line.startswith(("SigPnd:", "ShdPnd:")))


@pytest.mark.parametrize("number, status", [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM),
                                            (signal.SIGHUP, -signal.SIGHUP), (signal.SIGKILL, -signal.SIGKILL)])
def test_signal_ends_it_there(machine, pid, number, status):
    """As a local one, the command ends by the signal; and nothing stays behind on the other side, however it died."""
    wait_until(lambda: not ends_there(machine), "earlier commands are over")
    with subprocess.Popen([TIDEMARK, "eval", f"node7:{pid}", "--every", "0.05", "answer"], env=machine.environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as asking:
        assert asking.stdout.readline() == "42\n"
        assert ends_there(machine)
        os.killpg(asking.pid, number) if number == signal.SIGINT else asking.send_signal(number)
        assert asking.wait(timeout=WAIT_S) == status
        assert asking.stderr.read() == ""
    wait_until(lambda: not ends_there(machine), "the other side ends")
    assert machine.tidemark("eval", f"node7:{pid}", "answer").stdout == "42\n"


def test_second_interrupt(machine):
    """One that the other side does not take is followed by one that ends the command here."""
    there = machine.home / "deaf"
    there.write_text("#!/bin/sh\necho deaf\nexec cat >/dev/null\n", encoding="utf-8")
    there.chmod(0o755)
    with subprocess.Popen([TIDEMARK, "peak", "node7:1", "--remote-path", str(there)], env=machine.environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True) as asking:
        assert asking.stdout.readline() == "deaf\n"
        asking.send_signal(signal.SIGINT)
        wait_until(lambda: not pending(asking.pid), "the first one is taken")
        assert asking.poll() is None
        asking.send_signal(signal.SIGINT)
        assert asking.wait(timeout=WAIT_S) == -signal.SIGINT


def test_reader_that_goes(machine, known):
    """`| head -1`: a closed pipe ends it there, too."""
    line = f"{TIDEMARK} query node7:{known} \"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i " \
        "FROM n\" --format csv | head -1"
    done = subprocess.run(["bash", "-c", line], env=machine.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=WAIT_S, check=False)
    assert done.stdout == "i\n"
    wait_until(lambda: not ends_there(machine), "the other side ends")


def test_query_from_stdin(machine, known):
    """Without SQL, statements are read here and run there."""
    done = machine.tidemark("query", f"node7:{known}", "--format", "csv", input="SELECT 1 AS a;\nSELECT count(*) AS n "
                            "FROM steps WHERE step < 3;\nSELECT alocated FROM steps")
    assert (done.returncode, done.stdout) == (2, "a\n1\nn\n3\n")
    assert done.stderr.splitlines()[:4] == ["tidemark: no such column: alocated", "  SELECT alocated FROM steps",
                                            "         ^", "tidemark: did you mean peak_allocated or end_allocated?"]


def test_query_shell(machine, known):
    """A shell here, which asks there statement by statement; its settings go along."""
    with Shell(machine.home, f"node7:{known}", cwd=machine.home,
               **machine.environment(HOME=str(machine.home))) as sh:
        assert sh.until(FIRST) == (f"node7:{known}, as it is at each statement. SQL ends with ;   .tables lists the "
                                   "tables, .help the commands.\n")
        assert sh.ask("SELECT step FROM steps WHERE step < 2 ORDER BY step;") == "step\n   0\n   1\n"
        assert sh.ask("SELECT stepp FROM steps;").startswith("tidemark: no such column: stepp\n")
        sh.ask(".mode csv")
        sh.ask(".limit 1")
        assert sh.ask("SELECT step FROM steps WHERE step >= 0 ORDER BY step;") == (
            "step\n0\ntidemark: 1 of 41 rows; --limit 0 shows all\n")
        sh.type("SELECT count(*) FROM sam\t;\n")
        assert sh.until(FIRST).endswith("count(*)\n0\n")
        assert sh.leave() == 0


# ---- the terminal

def on_terminal(command, env):
    """What a command writes to a terminal of 97 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 97, 0, 0))
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL,
                          start_new_session=True) as child:
        os.close(slave)
        text = b""
        while True:
            try:
                got = os.read(master, 65536)
            except OSError:
                break
            if not got:
                break
            text += got
        os.close(master)
        child.wait(timeout=WAIT_S)
    return text.decode()


def test_colours(machine, known):
    """Those that a local command has on this terminal, and none under NO_COLOR or in a pipe."""
    far, near = [TIDEMARK, "peak", f"node7:{known}"], [TIDEMARK, "peak", str(known)]
    coloured = {**machine.environment(), "TERM": "xterm"}
    assert "\x1b[" in on_terminal(far, coloured)
    assert on_terminal(far, coloured) == on_terminal(near, coloured)
    assert "\x1b[" not in on_terminal(far, {**coloured, "NO_COLOR": "1"})
    assert "\x1b[" not in machine.tidemark(*far[1:], env={"TERM": "xterm"}).stdout
    binary = on_terminal([TIDEMARK, "export", f"node7:{known}", "--to", "sqlite", "-o", "-"], coloured)
    assert binary == ""


def test_width(machine):
    """The other side is told how wide the terminal is, and of what kind."""
    there = machine.home / "there"
    there.write_text("#!/bin/sh\nexec head -c $1\n", encoding="utf-8")
    there.chmod(0o755)
    command = [TIDEMARK, "peak", "node7:1", "--remote-path"]
    shown = on_terminal([*command, f"{there} 145"], {**machine.environment(), "TERM": "xterm", "COLUMNS": "80"})
    assert "TIDEMARK_SCREEN=1\0TERM=xterm\0COLUMNS=97\0TIDEMARK_CHARSET=utf8\0" in shown
    plain = machine.tidemark(*command[1:], f"{there} 105", env={"TERM": "xterm", "COLUMNS": "80"}).stdout
    assert "TERM=xterm\0COLUMNS=80\0" in plain and "TIDEMARK_SCREEN" not in plain


# ---- files

def test_report_file(machine, known, tmp_path):
    done = machine.tidemark("report", f"node7:{known}", "--format", "csv", "-o", "the report.csv", cwd=tmp_path)
    assert outcome(done) == (0, "", "")
    here = locally("report", known, "--format", "csv").stdout
    assert (tmp_path / "the report.csv").read_text(encoding="utf-8").replace(f"node7:{known}", str(known)) == here


def test_export_file(machine, known, tmp_path):
    """Binary files come whole; the name is the one that was given; nothing is left there."""
    (tmp_path / "out").mkdir()
    done = machine.tidemark("export", f"node7:{known}", "--to", "sqlite", "-o", "out/a.sqlite", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.startswith("tidemark: a.sqlite: ")
    rows = subprocess.run([DEBIAN, "-c", "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("
                           "'SELECT count(*), sum(size) FROM allocations').fetchall())", tmp_path / "out" / "a.sqlite"],
                          capture_output=True, text=True, check=True).stdout
    assert rows == "[(40, 40000)]\n"
    assert not [name for name in os.listdir("/tmp") if name.startswith("tidemark-remote.")]


def test_file_that_fails(machine, known, tmp_path):
    """The file of before stays when the command fails; what has no place here is said."""
    kept = tmp_path / "kept.csv"
    kept.write_text("before", encoding="utf-8")
    done = machine.tidemark("export", f"node7:{known}", "--to", "csv", "--table", "nothing", "-o", kept)
    assert done.returncode == 2 and kept.read_text(encoding="utf-8") == "before"
    done = machine.tidemark("export", f"node7:{known}", "--to", "csv", "-o", "/no/folder/a.csv")
    assert done.returncode == locally("export", known, "--to", "csv", "-o", "/no/folder/a.csv").returncode
    done = machine.tidemark("report", f"node7:{known}", "-o", f"{tmp_path}/no/")
    assert outcome(done) == (2, "", f"tidemark: --output: '{tmp_path}/no/' is no name of a file\n")
    done = machine.tidemark("export", f"node7:{known}", "--to", "csv")
    assert outcome(done) == (2, "", "tidemark: of a process on another machine export wants -o FILE (-: stdout)\n")
    done = machine.tidemark("diff", f"node7:{known}", "--from", "1", "--to", "2", "--junit", "a.xml")
    assert outcome(done) == (2, "", "tidemark: --junit cannot be had of a process on another machine\n")


# ---- ps

def rows_of(done, *pids):
    return [row for row in json.loads(done.stdout)["processes"] if row["pid"] in pids]


def cells_of(line):
    """All but the time of the forecast, of which JSON has less digits."""
    return line[:-3] + line[-1:]


def test_ps(machine, known):
    """The rows of a machine are its own, with its name; one that is down spoils nothing."""
    here = rows_of(locally("ps", "--json"), known)
    assert [(row["host"], row["forecast"]["steps_to_oom"]) for row in here] == [(None, 60)]
    done = machine.tidemark("ps", "node7", "node9", "node8", "--json")
    assert done.returncode == 1
    assert rows_of(done, known) == [{**here[0], "host": host} for host in ("node7", "node8")]
    refused = f"ssh: connect to host 127.0.0.1 port {machine.nobody}: Connection refused"
    assert json.loads(done.stdout)["failed"] == [{"host": "node9", "reason": refused}]
    assert f"tidemark: node9: {refused}\n" in done.stderr
    far = [line.split() for line in machine.tidemark("ps", "node7").stdout.splitlines()]
    near = [line.split() for line in locally("ps").stdout.splitlines()]
    assert far[0] == ["HOST", *near[0]]
    assert [["node7", *cells_of(line)] for line in near if line[0] == str(known)] == [
        cells_of(line) for line in far if line[1] == str(known)]


def test_ps_of_many(machine, known):
    """More than are asked at a time, over one connection."""
    machine.tidemark("ps", "node7")
    before = machine.logins()
    done = machine.tidemark("ps", *["node7"] * 12, "--json")
    assert (done.returncode, len(rows_of(done, known))) == (0, 12), done.stderr
    assert machine.logins() == before


def test_ps_of_one_that_is_down(machine):
    done = machine.tidemark("ps", "node9", "--json")
    reason = "node9 cannot be reached over ssh, without asking for a password; try: ssh node9 true"
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"processes": [], "failed": [{"host": "node9", "reason": reason}]}
    assert "Connection refused\n" in done.stderr and done.stderr.endswith(f"tidemark: {reason}\n")


def test_child_signal_ignored(machine, pid):
    """Whoever starts tidemark may ignore SIGCHLD."""
    done = machine.tidemark("eval", f"node7:{pid}", "answer", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert outcome(done) == (0, "42\n", "")


def test_ps_of_strangers(machine):
    done = machine.tidemark("ps", "node7:22")
    assert outcome(done) == (2, "", "tidemark: node7:22: a port belongs into ~/.ssh/config (Port)\n")
    done = machine.tidemark("ps", "node7", "--json", "--remote-path", "echo")
    assert done.returncode == 1
    assert json.loads(done.stdout)["failed"] == [
        {"host": "node7", "reason": "what it printed is no list of processes: byte 0: an object should begin here"}]
