# SPDX-License-Identifier: MIT
"""Signals sent to `tidemark run` reach the program: each, once, with what came with it."""
import contextlib
import ctypes
import fcntl
import os
import platform
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from signal_log import LAST_VALUE
from test_cli_run import PATIENCE_S, TIDEMARK, Terminal, child_of, state_of, wait_until
from test_golden import SMALL, environment, shell

SIGNAL_LOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "signal_log.py")
SYS_SIGQUEUE = {"x86_64": 129, "aarch64": 138}[platform.machine()]
SI_USER, SI_QUEUE, SI_KERNEL = 0, -1, 0x80
RTMIN = 34  # of programs: the C library has 32 and 33
CATCHABLE = [n for n in range(1, 65) if n not in (signal.SIGKILL, signal.SIGSTOP)]
HARMLESS = (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGTSTP,
            signal.SIGTTIN, signal.SIGTTOU)


def queue(pid, number, value):
    """sigqueue(), which Python does not have."""
    info = struct.pack("iiiiiii", number, 0, SI_QUEUE, 0, os.getpid(), os.getuid(), value)
    done = ctypes.CDLL(None).syscall(SYS_SIGQUEUE, pid, number, info.ljust(128, b"\0"))
    assert done == 0


@contextlib.contextmanager
def watched(*command, folder, **more):
    """A program under `tidemark run` that has said "ready"."""
    with subprocess.Popen([TIDEMARK, "run", "-q", "--", *command], stdout=subprocess.PIPE,
                          text=True, cwd=folder, env=environment(), **more) as job:
        try:
            assert job.stdout.readline() == "ready\n"
            yield job
        finally:
            if job.poll() is None:
                with contextlib.suppress(OSError, IndexError):
                    os.kill(child_of(job.pid), signal.SIGKILL)
                job.kill()


def log(folder, **more):
    return watched(sys.executable, SIGNAL_LOG, str(PATIENCE_S), folder=folder, **more)


def rest(job):
    """What it says until it has got the last signal."""
    queue(job.pid, 64, LAST_VALUE)
    said = [tuple(map(int, line.split())) for line in job.stdout]
    assert job.wait(PATIENCE_S) == 5
    return said


def wait_until_taken(pid):
    """Until none waits: of two of a number that wait at once the kernel keeps one."""
    def none_waits():
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return "ShdPnd:\t0000000000000000" in status.read()

    wait_until("signals to be taken", none_waits)


# ---- each of them

def test_every_signal_arrives_once(tmp_path):
    with log(tmp_path) as job:
        for number in CATCHABLE:
            os.kill(job.pid, number)
            assert job.stdout.readline() == f"{number} {SI_USER} 0\n"
        assert rest(job) == []


STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["us", "group"])
def test_stop_signals_to_a_program_that_does_not_stop(send, tmp_path):
    """Each of three arrives, whether the program waits for them or has handlers."""
    handlers = ("import os, signal, time\n"
                "def got(number, frame): os.write(1, b'%d 0 0\\n' % number)\n"
                f"for n in {[int(n) for n in STOPS]}: signal.signal(n, got)\n"
                "print('ready', flush=True)\n"
                "while True: time.sleep(0.05)\n")
    with log(tmp_path, start_new_session=True) as waits, \
         watched(sys.executable, "-c", handlers, folder=tmp_path, start_new_session=True) as handles:
        for job in (waits, handles):
            for number in STOPS * 3:
                send(job.pid, number)
                assert job.stdout.readline() == f"{int(number)} {SI_USER} 0\n"
                wait_until_taken(job.pid)
        assert rest(waits) == []


def test_handler_that_is_set_later(tmp_path):
    """Nobody stops in a group without a shell; what came then is no reason to hold back the next."""
    later = ("import os, signal, sys, time\n"
             "print('ready', flush=True)\n"
             "sys.stdin.readline()\n"
             "signal.signal(signal.SIGTSTP, lambda n, f: os.write(1, b'got\\n'))\n"
             "print('set', flush=True)\n"
             "while True: time.sleep(0.05)\n")
    with watched(sys.executable, "-c", later, folder=tmp_path, start_new_session=True,
                 stdin=subprocess.PIPE) as job:
        os.kill(job.pid, signal.SIGTSTP)
        wait_until_taken(job.pid)
        job.stdin.write("\n")
        job.stdin.flush()
        assert job.stdout.readline() == "set\n"
        for _ in range(3):
            os.kill(job.pid, signal.SIGTSTP)
            assert job.stdout.readline() == "got\n"
            wait_until_taken(job.pid)


def test_values_of_queued_signals_are_kept(tmp_path):
    with log(tmp_path) as job:
        for number in (signal.SIGUSR1, signal.SIGTERM, RTMIN, 50, 64):
            queue(job.pid, number, 1000 + number)
            assert job.stdout.readline() == f"{int(number)} {SI_QUEUE} {1000 + number}\n"
        for value in range(20):
            queue(job.pid, RTMIN + 2, value)  # they queue up, in order
        assert rest(job) == [(RTMIN + 2, SI_QUEUE, value) for value in range(20)]


def test_signal_that_ends_the_program_ends_both(tmp_path):
    """The status is 128 + N for each, and nobody is left."""
    for number in sorted(set(CATCHABLE) - set(HARMLESS)):
        with watched("sh", "-c", "ulimit -c 0; echo ready; exec sleep 60", folder=tmp_path) as job:
            child = child_of(job.pid)
            os.kill(job.pid, number)
            assert job.wait(PATIENCE_S) == 128 + number
            assert not os.path.exists(f"/proc/{child}")


def test_signal_that_is_ignored_by_default(tmp_path):
    with watched("sh", "-c", "echo ready; sleep 0.3; exit 7", folder=tmp_path) as job:
        for number in (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH):
            os.kill(job.pid, number)
        assert job.wait(PATIENCE_S) == 7


# ---- the process group

GROUP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM, signal.SIGWINCH,
                 signal.SIGHUP, signal.SIGCONT, signal.SIGPIPE, RTMIN + 3)


def test_signal_to_the_group_comes_once(tmp_path):
    """kill -- -PGID reaches the program by itself."""
    with log(tmp_path, start_new_session=True) as job:
        for _ in range(5):
            for number in GROUP_SIGNALS:
                os.killpg(job.pid, number)
                assert job.stdout.readline() == f"{int(number)} {SI_USER} 0\n"
        wait_until_taken(job.pid)
        for number in GROUP_SIGNALS:  # and one sent to us alone is not taken for another such
            os.kill(job.pid, number)
            assert job.stdout.readline() == f"{int(number)} {SI_USER} 0\n"
        assert rest(job) == []


def test_nobody_of_ours_outlives_it(tmp_path):
    with log(tmp_path, start_new_session=True) as job:
        assert rest(job) == []
        with pytest.raises(ProcessLookupError):
            os.killpg(job.pid, 0)


def test_nobody_of_ours_outlives_a_kill(tmp_path):
    """SIGKILL of `tidemark run` cannot be handed on: the program goes on, alone."""
    with log(tmp_path, start_new_session=True) as job:
        program = child_of(job.pid)
        job.kill()
        assert job.wait(PATIENCE_S) == -signal.SIGKILL
        os.kill(program, signal.SIGUSR1)
        assert job.stdout.readline() == f"{int(signal.SIGUSR1)} {SI_USER} 0\n"
        os.kill(program, signal.SIGKILL)
        wait_until("the end of the group", lambda: not group_lives(job.pid))


def group_lives(group):
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                state, _, owner = stat.read().rsplit(")", 1)[1].split()[:3]
            if int(owner) == group and state != "Z":
                return True
    return False


# ---- before the program is there, and after

def block_and_raise():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
    os.kill(os.getpid(), signal.SIGUSR1)


def test_signal_that_came_before(tmp_path):
    """One that was pending when we began is the program's."""
    with log(tmp_path, preexec_fn=block_and_raise) as job:
        assert job.stdout.readline().split()[0] == str(int(signal.SIGUSR1))
        assert rest(job) == []


def test_terminated_at_any_moment_of_the_start(tmp_path):
    """However early: no program is left without us."""
    for delay in range(40):
        mark = f"60.{os.getpid()}{delay:02}"
        with subprocess.Popen([TIDEMARK, "run", "-q", "-o", "x/a.tmk", "--", "sleep", mark],
                              cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL) as job:
            time.sleep(delay * 0.0004)
            job.terminate()
            assert job.wait(PATIENCE_S) in (128 + signal.SIGTERM, -signal.SIGTERM)
        assert not is_running(mark)
    assert os.listdir(tmp_path) == []


def is_running(argument):
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/cmdline", "rb") as command:
                if argument.encode() in command.read().split(b"\0"):
                    return True
    return False


def test_signals_after_the_end_do_not_change_the_status(tmp_path):
    """The program's status is ours, whatever comes while its summary is made."""
    program = f"echo ready; tinytrain --steps 300 {SMALL}; exit 3"
    numbers = (signal.SIGUSR1, signal.SIGALRM, signal.SIGPWR, RTMIN + 1, signal.SIGIO)
    trap = "trap '' USR1 ALRM PWR IO 35; "
    for last in (signal.SIGUSR2, signal.SIGTERM, signal.SIGINT):
        command = [TIDEMARK, "run", "-o", f"{int(last)}.tmk", "--", "bash", "-c",
                   trap + ("" if last == signal.SIGUSR2 else "trap '' TERM INT; ") + program]
        with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as job:
            assert job.stdout.readline() == b"ready\n"
            while job.poll() is None:
                for number in numbers + ((last,) if last != signal.SIGUSR2 else ()):
                    job.send_signal(number)
                time.sleep(0.0005)
            assert job.returncode == 3
    assert sorted(os.listdir(tmp_path)) == ["12.tmk", "15.tmk", "2.tmk"]


# ---- what is inherited

STATE = "grep -E 'Sig(Blk|Ign|Cgt)|ShdPnd' /proc/self/status"


@pytest.mark.parametrize("before", ["", "trap '' HUP; ", "trap '' INT QUIT TERM CHLD PIPE; ",
                                    "trap '' $(seq 1 8) $(seq 10 18) $(seq 20 31) $(seq 34 64); "])
def test_dispositions_are_inherited(before, tmp_path):
    alone = shell(before + STATE, tmp_path).stdout
    assert shell(f"{before}tidemark run -q -- {STATE}", tmp_path).stdout == alone


@pytest.mark.parametrize("blocked", [[], [signal.SIGTERM], range(1, 65)])
def test_mask_is_inherited(blocked, tmp_path):
    def before():
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    alone, ours = (subprocess.run([*front, "bash", "-c", STATE], preexec_fn=before, cwd=tmp_path,
                                  env=environment(), capture_output=True, text=True, check=True)
                   for front in ([], [TIDEMARK, "run", "-q", "--"]))
    assert ours.stdout == alone.stdout


@pytest.mark.parametrize("which, number", [(signal.ITIMER_REAL, signal.SIGALRM),
                                           (signal.ITIMER_PROF, signal.SIGPROF)])
def test_alarm_that_was_set_before(which, number, tmp_path):
    """perl -e 'alarm 1; exec ...': the timer goes with the program, as it does without us."""
    done = subprocess.run([TIDEMARK, "run", "-q", "--", "sh", "-c", "while :; do :; done"],
                          preexec_fn=lambda: signal.setitimer(which, 0.2), cwd=tmp_path,
                          env=environment(), timeout=PATIENCE_S, check=False)
    assert done.returncode == 128 + number


def test_nohup(tmp_path):
    program = "echo ready; sleep 0.3; exit 6"
    with watched("sh", "-c", program, folder=tmp_path,
                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as job:
        os.kill(job.pid, signal.SIGHUP)
        assert job.wait(PATIENCE_S) == 6


# ---- terminals

def logging_terminal(folder):
    terminal = Terminal([TIDEMARK, "run", "-q", "--", sys.executable, SIGNAL_LOG, "3"], folder)
    terminal.read_until("ready\r\n")
    return terminal


def test_keys_come_once(tmp_path):
    terminal = logging_terminal(tmp_path)
    for key, number in (("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT), ("\x1a", signal.SIGTSTP),
                        ("\x03", signal.SIGINT)):
        before = len(terminal.text)
        terminal.type(key)
        terminal.read_until(f"{int(number)} {SI_KERNEL} 0\r\n")
        assert terminal.text[before:].count("\n") == 1
        terminal.text = ""
    assert terminal.wait() == 5
    assert terminal.text == ""


def test_interrupt_ends_the_loop_of_a_script(tmp_path):
    """A shell asks of what its child died: its loop goes on unless that was ^C."""
    (tmp_path / "loop.sh").write_text(f"for i in 1 2 3; do '{TIDEMARK}' run -q -o r$i.tmk -- "
                                      "sh -c 'echo ready; exec sleep 20'; done; echo finished\n")
    terminal = Terminal(["bash", "loop.sh"], tmp_path)
    terminal.read_until("ready\r\n")
    terminal.type("\x03")
    assert terminal.wait() == -signal.SIGINT
    assert "finished" not in terminal.text


def test_window_size_comes_once(tmp_path):
    terminal = logging_terminal(tmp_path)
    terminal.text = ""
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    terminal.read_until(f"{int(signal.SIGWINCH)} {SI_KERNEL} 0\r\n")
    wait_until_taken(terminal.pid)
    os.kill(terminal.pid, signal.SIGWINCH)
    terminal.read_until(f"{int(signal.SIGWINCH)} {SI_USER} 0\r\n")
    assert terminal.wait() == 5
    assert len(terminal.text.splitlines()) == 2


def test_hangup_of_the_terminal_ends_both(tmp_path):
    """Nobody but the leader of a session is told that its terminal is gone; here that is us."""
    terminal = Terminal([TIDEMARK, "run", "-q", "--", "sh", "-c", "echo ready; exec sleep 60"],
                        tmp_path)
    terminal.read_until("ready\r\n")
    program = child_of(terminal.pid)
    os.close(terminal.fd)
    wait_until("the end", lambda: not os.path.exists(f"/proc/{program}"))
    _, status = os.waitpid(terminal.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP


@pytest.mark.parametrize("seconds", [0, 0.3])
def test_program_that_stops_itself(seconds, tmp_path):
    """As editors do: a handler clears up, however long that takes, then stops. The shell sees it."""
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    (tmp_path / "editor.py").write_text(
        "import os, signal, time\n"
        "def stop(number, frame):\n"
        f"    time.sleep({seconds})\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    os.write(1, b'go' + b'es on')\n"
        "signal.signal(signal.SIGTSTP, stop)\n"
        "print('rea' + 'dy', flush=True)\n"
        "while True: time.sleep(0.05)\n")
    terminal.type(f"{TIDEMARK} run -q -- {sys.executable} editor.py\n")
    terminal.read_until("ready")
    job = child_of(terminal.pid)
    child = child_of(job)
    for stop in (lambda: terminal.type("\x1a"), lambda: os.kill(job, signal.SIGTSTP)):
        terminal.text = ""
        stop()
        wait_until("a stop", lambda: state_of(child) == state_of(job) == "T")
        terminal.type("until jobs | grep -q Stopped; do sleep 0.02; done; fg\n")
        terminal.read_until("goes on")
        wait_until_taken(job)
    os.kill(child, signal.SIGKILL)
    terminal.type("exit 3\n")
    assert terminal.wait() == 3


def test_stop_and_continue_again_and_again(tmp_path):
    """^Z, fg, kill -TSTP, a read in the background: a shell sees each stop, and each end of it."""
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    program = "print('rea' + 'dy', flush=True); print('got', input(), flush=True)"
    terminal.type(f'{TIDEMARK} run -q -- {sys.executable} -c "{program}"\n')
    terminal.read_until("ready")
    job = child_of(terminal.pid)
    child = child_of(job)
    for stop in (lambda: terminal.type("\x1a"), lambda: os.kill(job, signal.SIGTSTP)):
        terminal.text = ""
        stop()
        wait_until("a stop", lambda: state_of(child) == state_of(job) == "T")
        terminal.type("bg; echo back$((1 + 1))\n")  # its read of the terminal stops it again
        terminal.read_until("back2")
        wait_until("a stop in the background", lambda: state_of(child) == state_of(job) == "T")
        terminal.type("until jobs | grep -q Stopped; do sleep 0.02; done; fg\n")
        wait_until("both to go on", lambda: state_of(child) != "T" and state_of(job) != "T")
        wait_until_taken(job)
    terminal.type("it\n")
    terminal.read_until("got it")
    terminal.type("exit $?\n")
    assert terminal.wait() == 0
