# SPDX-License-Identifier: MIT
"""eval that cannot be done in time, is asked by the wrong one, or meets another: the job goes on."""
import glob
import os
import platform
import socket
import struct
import subprocess
import sys
import time

from eval_kit import (DEBIAN, NOBODY, TIDEMARK, WAIT_S, environment, evaluate, need_root, tidemark, value_of,
                      wait_until)

REQUEST = struct.Struct("6I")
FRAME = struct.Struct("2I")
MAGIC, EVAL, FAIL, DONE = 0x444B4D54, 2, 5, 8


def socket_of(shop, pid):
    return os.path.join(shop.runtime, f"tidemark.{pid}.sock")


def goes_on(pid):
    """The job still runs: a counter of its main thread moves."""
    before = int(value_of(pid, "ticks"))
    wait_until(lambda: int(value_of(pid, "ticks")) > before, "the job stands still")


COUNTING = """
ticks = 0
ready()
while True:
    ticks += 1
    time.sleep(0.005)
"""


OPENS = 257 if platform.machine() == "x86_64" else 56  # the number of openat()


def put_gate(shop):
    """A call of open() on `gate` does not return before open_gate()."""
    os.mkfifo(shop.folder / "gate")


def open_gate(shop):
    with open(shop.folder / "gate", "w", encoding="ascii"):
        pass


def is_at_gate(pid):
    """Whether the main thread is inside open()."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as call:
        return call.read().split()[0] == str(OPENS)


def test_sleeps_past_its_time(shop):
    """It is answered in time, although the call into C goes on."""
    pid = shop.target(COUNTING)
    put_gate(shop)
    late = evaluate(pid, "open('gate').read()", "--timeout", "0.3")
    assert late.returncode == 1 and late.stdout == ""
    assert late.stderr.startswith("tidemark: the code did not end within 0.3 s; it is inside a call")
    refused = evaluate(pid, "1")
    assert refused.returncode == 1 and "inside a call into C; nothing was run" in refused.stderr
    open_gate(shop)
    wait_until(lambda: evaluate(pid, "1").returncode == 0, "it is still inside the call")
    goes_on(pid)
    threads = [open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8").read().strip()
               for task in os.listdir(f"/proc/{pid}/task")]
    assert sorted(threads) == ["python3", "tidemark", "tidemark-door"]


def test_swallowed_exception(shop):
    """`except Exception` does not catch the one that stops it."""
    pid = shop.target(COUNTING)
    late = evaluate(pid, "while True:\n    try:\n        while True: pass\n"
                         "    except Exception: pass", "--timeout", "0.3")
    assert late.stderr.splitlines()[-1] == "tidemark: stopped: the code did not end within 0.3 s"
    goes_on(pid)


def test_lock_is_held(shop):
    """A C call that keeps the interpreter's lock: told, and what was asked is never run."""
    put_gate(shop)
    pid = shop.target("libc = ctypes.PyDLL(None)\nready()\nuntil('go')\nlibc.open(b'gate', os.O_RDONLY)\nidle()\n")
    (shop.folder / "go").touch()
    wait_until(lambda: is_at_gate(pid), "it does not call open()")
    late = evaluate(pid, "ran = True", "--timeout", "0.3")
    assert late.returncode == 1
    assert late.stderr == ("tidemark: nothing was run: a call into C held the interpreter's lock "
                           "(the GIL) for 0.3 s\n")
    refused = evaluate(pid, "ran = True", "--timeout", "0.3")
    assert refused.returncode == 1 and "still waits for the interpreter's lock" in refused.stderr
    open_gate(shop)
    wait_until(lambda: evaluate(pid, "1").returncode == 0, "the lock is still held")
    assert value_of(pid, "'ran' in globals()") == "False\n"


def test_main_thread_does_not_come(shop):
    put_gate(shop)
    pid = shop.target("ready()\nopen('gate').close()\nidle()\n")
    wait_until(lambda: is_at_gate(pid), "it does not call open()")
    for _ in range(2):
        late = evaluate(pid, "ran = True", "--main", "--timeout", "0.3")
        assert late.returncode == 1
        assert late.stderr == ("tidemark: nothing was run: the main thread was inside a call into "
                               "C for 0.3 s; try without --main\n")
    assert value_of(pid, "answer") == "42\n"  # on a thread of its own it works meanwhile
    open_gate(shop)
    assert value_of(pid, "'ran' in globals()", "--main", "--timeout", "10") == "False\n"


def test_two_at_once(shop):
    pid = shop.target(COUNTING)
    askers = [subprocess.Popen([TIDEMARK, "eval", str(pid), f"time.sleep(0.4); {n}"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment()) for n in range(3)]
    assert [asker.communicate()[:2] for asker in askers] == [(f"{n}\n", "") for n in range(3)]


def test_asker_is_killed(shop):
    """Nobody waits for the answer any more: the code is stopped."""
    pid = shop.target(COUNTING)
    with subprocess.Popen([TIDEMARK, "eval", str(pid), "print(1)\nwhile True: pass", "--timeout",
                           "600"], stdout=subprocess.PIPE, text=True, env=environment()) as asker:
        assert asker.stdout.readline() == "1\n"
        asker.kill()
    before = time.monotonic()
    goes_on(pid)
    assert time.monotonic() - before < WAIT_S / 2


def test_silent_client(shop):
    """One that connects and says nothing is given up; the next is served."""
    pid = shop.target(COUNTING)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(socket_of(shop, pid))
        assert value_of(pid, "answer") == "42\n"


def frames_of(connection):
    """[(kind, bytes)] up to the end."""
    data = b""
    while part := connection.recv(65536):
        data += part
    out = []
    while data:
        kind, n = FRAME.unpack_from(data)
        out.append((kind, data[FRAME.size:FRAME.size + n]))
        data = data[FRAME.size + n:]
    return out


def test_wrong_requests(shop):
    pid = shop.target(COUNTING)
    for request, reason in [
            (REQUEST.pack(MAGIC, 99, EVAL, 0, 1000, 0), b"does not know that"),
            (REQUEST.pack(MAGIC, 1, 77, 0, 1000, 0), b"does not know that"),
            (REQUEST.pack(MAGIC, 1, EVAL, 0, 1000, 1 << 30), b"longer than 1 MiB"),
            (REQUEST.pack(1, 1, EVAL, 0, 1000, 0), None)]:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(socket_of(shop, pid))
            client.sendall(request)
            frames = frames_of(client)
        assert frames[-1] == (DONE, b"")
        assert [kind for kind, _ in frames[:-1]] == ([FAIL] if reason else [])
        assert reason is None or reason in frames[0][1]
    goes_on(pid)


def test_another_user(shop):
    need_root()
    pid = shop.target(COUNTING)
    path = socket_of(shop, pid)
    assert os.stat(path).st_mode & 0o777 == 0o600
    refused = subprocess.run([*NOBODY, TIDEMARK, "eval", str(pid), "1"], capture_output=True,
                             text=True, env=environment(), check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "belongs to another user (uid 0)" in refused.stderr
    # even where the file system would let them in
    os.chmod(shop.runtime, 0o755)
    os.chmod(path, 0o666)
    ask = ("import socket, struct, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
           "try: s.sendall(struct.pack('6I', 0x444b4d54, 1, 2, 0, 1000, 7) + b'ran = 1')\n"
           "except OSError: pass  # it may have hung up already\n"
           "try:  # what it said comes before the end, or before the reset by what it did not read\n"
           "    while piece := s.recv(1000): sys.stdout.buffer.write(piece)\n"
           "except ConnectionResetError: pass")
    answer = subprocess.run([*NOBODY, DEBIAN, "-c", ask, path], capture_output=True, check=True)
    assert b"only the user of the process, or root" in answer.stdout
    assert value_of(pid, "'ran' in globals()") == "False\n"


def test_root_may_ask_another_user(shop):
    need_root()
    for folder in (shop.folder, shop.rings, shop.runtime):
        os.chown(folder, 65534, 65534)
    parent = shop.folder
    while parent != parent.parent:  # pytest's folders are root's alone
        if os.stat(parent).st_uid == 0 and not os.stat(parent).st_mode & 1:
            os.chmod(parent, 0o711)
        parent = parent.parent
    pid = shop.start([*NOBODY, *shop.command(), DEBIAN, shop.script("idle()\n")])[0]
    assert value_of(pid, "os.getuid()") == "65534\n"


def test_folder_that_is_not_ours_alone(shop):
    """A runtime folder that others may enter is not used; the door is elsewhere."""
    os.chmod(shop.runtime, 0o755)
    pid = shop.target(COUNTING)
    assert os.listdir(shop.runtime) == []
    assert value_of(pid, "answer") == "42\n"
    assert tidemark("detach", pid).returncode == 0  # takes the socket away


def sockets_in(folder):
    """The control sockets there, beside which `run` has a file of its own while its program runs
    (src/cli/run/refusal_watch.h)."""
    names = sorted(os.listdir(folder))
    others = [name for name in names if not name.endswith(".sock")]
    assert len(others) == 1 and others[0].endswith(".refusals"), names
    return [name for name in names if name not in others]


def test_long_path(shop):
    deep = os.path.join(shop.runtime, "d" * 100, "e" * 60)
    os.makedirs(deep, 0o700)
    pid = shop.target(COUNTING, env={"XDG_RUNTIME_DIR": deep})
    assert sockets_in(deep) == [f"tidemark.{pid}.sock"]
    assert value_of(pid, "answer") == "42\n"


FORKING = """
child = os.fork()
if child == 0:
    until('record')
    recorder.tidemark_record_mark(b"child", None)
    until('end')
    sys.exit(0)
idle()
"""


def test_forked_child(shop):
    """Its own door after its first event; the parent's is the parent's throughout."""
    pid = shop.target(FORKING)
    child = int(value_of(pid, "child"))
    assert "records nothing" in evaluate(child, "1").stderr
    (shop.folder / "record").touch()
    wait_until(lambda: evaluate(child, "1").returncode == 0, "the child has no door")
    assert value_of(child, "os.getpid()", "--main") == f"{child}\n"
    assert value_of(pid, "os.getpid()", "--main") == f"{pid}\n"
    assert sockets_in(shop.runtime) == sorted(f"tidemark.{n}.sock" for n in (pid, child))
    (shop.folder / "end").touch()
    assert value_of(pid, "os.waitpid(child, 0)[1]") == "0\n"
    assert sockets_in(shop.runtime) == [f"tidemark.{pid}.sock"]
    assert value_of(pid, "answer") == "42\n"


def test_fork_during_eval(shop):
    """A child forked by the code itself: what it prints is not taken for the parent's answer."""
    pid = shop.target(COUNTING)
    assert value_of(pid, "child = os.fork()\nif child == 0:\n    print('lost'); os._exit(5)\n"
                         "os.waitpid(child, 0)[1] >> 8") == "5\n"
    goes_on(pid)


def test_detach(shop):
    pid, job = shop.start([*shop.command(), DEBIAN, shop.script(
        "ready()\nuntil('end')\nrecorder.tidemark_record_mark(b'late', None)\nprint('end')\n")])
    done = tidemark("detach", pid)
    assert (done.returncode, done.stdout, done.stderr) == (
        0, "", "tidemark: detached; the trace is closed\n")
    assert sockets_in(shop.runtime) == [] and glob.glob(f"{shop.rings}/*.ring") == []
    assert tidemark("query", shop.run, "SELECT state FROM processes", "--format", "csv"
                    ).stdout == "state\nclosed\n"
    again = tidemark("detach", pid)
    assert again.returncode == 1 and "records nothing" in again.stderr
    asked = evaluate(pid, "1 + 1")
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr.endswith(f"after a detach, to watch it again: tidemark attach {pid}\n")
    (shop.folder / "end").touch()
    assert job.stdout.read() == "end\n" and job.wait() == 0
    assert tidemark("query", shop.run, "SELECT event FROM marks", "--format", "csv"
                    ).stdout == "event\nstart\n"
    assert tidemark("check", shop.run).returncode == 0


def test_ends_cleanly(shop):
    """No socket, no ring, no thread that keeps the process from ending."""
    pid, job = shop.start([*shop.command(), DEBIAN, shop.script("ready()\nuntil('end')\n")])
    assert value_of(pid, "answer") == "42\n"
    (shop.folder / "end").touch()
    assert job.wait(timeout=WAIT_S) == 0
    assert os.listdir(shop.runtime) == [] and os.listdir(shop.rings) == []


def test_ends_during_an_eval(shop):
    """The script's end does not wait for an eval; who asked is told."""
    pid, job = shop.start([*shop.command(), DEBIAN, shop.script("ready()\nuntil('end')\n")])
    with subprocess.Popen([TIDEMARK, "eval", str(pid), "print(1)\nwhile True: time.sleep(0.01)",
                           "--timeout", "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=environment()) as asker:
        assert asker.stdout.readline() == "1\n"
        (shop.folder / "end").touch()
        assert job.wait(timeout=WAIT_S) == 0
        assert asker.wait(timeout=WAIT_S) == 1
        assert asker.stderr.read() == f"tidemark: process {pid} ended before it had answered\n"


def test_name_is_taken(shop):
    """Another process listens under our name: ours gets another; one that is gone makes way."""
    script = shop.script("ready()\nuntil('go')\n"
                         "recorder.tidemark_record_mark(b'again', None)\nidle()\n")
    text = open(script, encoding="utf-8").read().replace(
        "recorder.tidemark_record_mark(b\"start\", None)", "")
    open(script, "w", encoding="utf-8").write(text)
    pid, _ = shop.start([*shop.command(), DEBIAN, script])
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(socket_of(shop, pid))
        other.listen()
        (shop.folder / "go").touch()
        wait_until(lambda: evaluate(pid, "1").returncode == 0, "it has no door")
        assert sockets_in(shop.runtime) == [f"tidemark.{pid}.1.sock", f"tidemark.{pid}.sock"]
    os.kill(pid, 9)


def test_killed_process_leaves_no_socket(shop):
    pid, job = shop.start([*shop.command(), DEBIAN, shop.script("idle()\n")])
    os.kill(pid, 9)
    assert job.wait(timeout=WAIT_S) == 137
    assert os.listdir(shop.runtime) == [] and os.listdir(shop.rings) == []


EMBED = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    (void)argc;
    void *python = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!python)
        return 1;
    ((void (*)(void))dlsym(python, "Py_Initialize"))();
    void (*mark)(const char *, const char *) = dlsym(RTLD_DEFAULT, "tidemark_record_mark");
    mark("start", NULL);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    ((int (*)(const char *))dlsym(python, "PyRun_SimpleString"))(
        "import time\nanswer = 42\nwhile True: time.sleep(0.01)");
}
"""


def test_embedded_for_itself_alone(shop):
    """libpython opened RTLD_LOCAL: its names are in no global scope."""
    import sysconfig
    import pytest
    name = f"libpython{sys.version_info[0]}.{sys.version_info[1]}.so.1.0"
    places = [os.path.join(sysconfig.get_config_var(key) or "", name)
              for key in ("LIBDIR", "LIBPL")] + [f"/usr/lib/x86_64-linux-gnu/{name}"]
    library = next((place for place in places if os.path.exists(place)), None)
    if not library:
        pytest.skip(f"no {name}")
    (shop.folder / "embed.c").write_text(EMBED, encoding="utf-8")
    subprocess.run(["cc", "-o", "embed", "embed.c", "-ldl"], cwd=shop.folder, check=True)
    pid = shop.start([*shop.command(), "./embed", library])[0]
    assert value_of(pid, "answer") == "42\n"
