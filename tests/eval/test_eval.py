# SPDX-License-Identifier: MIT
"""eval: what comes back, in whose namespace, and that the job does not notice."""
import json
import os
import subprocess
import time

import pytest
from eval_kit import DEBIAN, TIDEMARK, answer_of, environment, evaluate, pythons, tidemark, value_of, wait_until


@pytest.mark.parametrize("python", pythons())
def test_every_python(shop, python):
    pid = shop.target(python=python)
    assert value_of(pid, "answer + 1") == "43\n"
    assert value_of(pid, "print('a'); answer = 7; 'b' + 'c'") == "a\n'bc'\n"
    assert value_of(pid, "answer", "--main") == "7\n"
    assert value_of(pid, "None") == ""
    assert value_of(pid, "") == ""
    assert value_of(pid, "import threading\nthreading.current_thread() is threading.main_thread()",
                    "--main") == "True\n"
    failed = evaluate(pid, "def f(x):\n    return 1 / x\nf(0)")
    assert (failed.returncode, failed.stdout) == (1, "")
    lines = [line for line in failed.stderr.splitlines() if not set(line) <= set(" ~^")]
    assert lines[0] == "Traceback (most recent call last):"
    assert [line.strip().split(",")[1:] for line in lines[1:-1:2]] == [
        [" line 3", " in <module>"], [" line 2", " in f"]]
    assert [line.strip() for line in lines[2:-1:2]] == ["f(0)", "return 1 / x"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    wrong = evaluate(pid, "x = = 1")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.splitlines()[1].strip() == "x = = 1"
    assert wrong.stderr.splitlines()[-1] == "SyntaxError: invalid syntax"
    late = evaluate(pid, "while True: pass", "--timeout", "0.3")
    assert late.returncode == 1
    assert late.stderr.splitlines()[-1] == "tidemark: stopped: the code did not end within 0.3 s"
    late = evaluate(pid, "while True: pass", "--timeout", "0.3", "--main")
    assert late.stderr.splitlines()[-1] == "tidemark: stopped: the code did not end within 0.3 s"
    assert value_of(pid, "sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__") \
        == "False\n"  # while an eval runs, they are ours ...
    assert value_of(pid, "sys.stdout.real is sys.__stdout__") == "True\n"  # ... in front of them


def test_json(shop):
    pid = shop.target()
    assert answer_of(pid, "print('o'); print('e', file=sys.stderr); [1]") == {
        "pid": pid, "ok": True, "stdout": "o\n", "stderr": "e\n", "value": "[1]",
        "error": None, "reason": None, "note": None}
    failed = answer_of(pid, "int('x')")
    assert failed["ok"] is False and failed["value"] is None and failed["reason"] is None
    assert failed["error"].splitlines()[-1] == \
        "ValueError: invalid literal for int() with base 10: 'x'"


def test_stdin_and_unicode(shop):
    pid = shop.target()
    done = tidemark("eval", pid, "-", input="# 内存\nfor i in range(2):\n    print('行', i)\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "行 0\n行 1\n", "")
    long = "x = 1\n" * (200 * 1024)
    done = tidemark("eval", pid, "-", input=long)
    assert done.returncode == 2 and "1 MiB" in done.stderr
    done = subprocess.run([TIDEMARK, "eval", str(pid), b"'\xff'"], capture_output=True, text=True,
                          env=environment(), check=False)
    assert done.returncode == 1 and "not UTF-8" in done.stderr


def test_exits_do_not_end_the_job(shop):
    pid = shop.target()
    for option in ([], ["--main"]):
        done = evaluate(pid, "sys.exit(3)", *option)
        assert done.returncode == 1 and done.stderr.splitlines()[-1] == "SystemExit: 3"
    assert value_of(pid, "answer") == "42\n"
    done = evaluate(pid, "os._exit(0)")
    assert done.returncode == 1
    assert done.stderr == f"tidemark: process {pid} ended before it had answered\n"
    assert evaluate(pid, "1").stderr == f"tidemark: there is no process {pid}\n"


def test_job_output_is_its_own(shop):
    """A thread that prints all the time: every line of it is where it belongs, none is lost."""
    pid, job = shop.start([*shop.command(), DEBIAN, shop.script(
        "ready()\nn = 0\nwhile n < 1500 or not os.path.exists('end'):\n    print(n)\n    sys.stdout.flush()\n"
        "    n += 1\n    time.sleep(0.001)\n")])
    for _ in range(10):
        assert value_of(pid, "for i in range(50): print('mine', i); time.sleep(0.001)") \
            == "".join(f"mine {i}\n" for i in range(50))
    (shop.folder / "end").touch()
    lines = job.stdout.read().splitlines(keepends=True)
    assert len(lines) >= 1500 and lines == [f"{i}\n" for i in range(len(lines))]
    assert job.wait() == 0


def test_kept_stream_goes_on(shop):
    """Somebody kept our stream: after the eval it hands on to the old one."""
    pid, job = shop.start([*shop.command(), DEBIAN, shop.script("idle()\n")])
    value_of(pid, "import io\nkept = sys.stdout\nsys.stdout = io.StringIO()")
    value_of(pid, "sys.stdout = kept")
    value_of(pid, "threading.Thread(target=lambda: print('to the job', flush=True)).start()")
    assert job.stdout.readline() == "to the job\n"
    assert value_of(pid, "print('to me')") == "to me\n"


@pytest.mark.parametrize("python", pythons())
def test_streams_are_put_back_while_others_print(shop, python):
    """Threads that are inside print() when an eval ends: CPython's print() would not survive the
    end of the stream that it writes to."""
    pid, job = shop.start([*shop.command(), python, shop.script("""
said = [0] * 4
def talk(n):
    while said[n] < 1000 or not os.path.exists('end'):
        print('x', flush=True)
        said[n] += 1
        time.sleep(0.0005)
threads = [threading.Thread(target=talk, args=(n,)) for n in range(4)]
ready()
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(said))
""")])
    for _ in range(30):
        assert value_of(pid, "print('mine')", "--timeout", "20") == "mine\n"
    (shop.folder / "end").touch()
    text = job.stdout.read()
    assert job.wait() == 0
    n_said = int(text.split()[-1])
    assert (text.count("x"), text.count("\n")) == (n_said, n_said + 1)


def test_output_is_bounded(shop):
    pid = shop.target()
    done = evaluate(pid, "print('x' * (17 << 20))")
    assert done.returncode == 0 and done.stdout == "x" * (16 << 20)
    assert done.stderr == "tidemark: the output was cut after 16 MiB\n"


def test_streamed(shop):
    """What is printed comes at once, not at the end."""
    pid = shop.target()
    with subprocess.Popen([TIDEMARK, "eval", str(pid), "print('now'); until('go'); print('end')"],
                          stdout=subprocess.PIPE, text=True, env=environment()) as asker:
        assert asker.stdout.readline() == "now\n"
        (shop.folder / "go").touch()
        assert asker.stdout.read() == "end\n"


def test_every(shop):
    pid = shop.target()
    value_of(pid, "n = 0")
    before = time.monotonic()
    done = evaluate(pid, "n += 1\nn", "--every", "200ms", "--count", "4", "--json")
    assert [json.loads(line)["value"] for line in done.stdout.splitlines()] == ["1", "2", "3", "4"]
    assert time.monotonic() - before >= 0.6
    done = evaluate(pid, "n += 1\nif n == 6: os._exit(0)", "--every", "0.05")
    assert done.returncode == 1 and "ended before" in done.stderr
    assert evaluate(pid, "1", "--count", "2").returncode == 2


def test_interrupt_of_the_job_reaches_it(shop):
    """^C while an eval is on the main thread: the script gets it."""
    pid, job = shop.start([*shop.command(), DEBIAN, shop.script(
        "try:\n    idle()\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n")])
    with subprocess.Popen([TIDEMARK, "eval", str(pid), "--main", "print(1)\nwhile True: pass"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment()) as asker:
        assert asker.stdout.readline() == "1\n"
        os.kill(pid, 2)
        assert asker.stderr.read().splitlines()[-1] == "KeyboardInterrupt"
    assert job.stdout.read() == "interrupted\n"


def test_signals_as_on_the_main_thread(shop):
    """What the code starts inherits them: a program must be killable, a blocked signal blocked."""
    pid = shop.target("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\nidle()\n")
    for option in ([], ["--main"]):
        assert value_of(pid, "sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))", *option) \
            == "[<Signals.SIGUSR2: 12>]\n"
    assert value_of(pid, "import subprocess\n"
                         "subprocess.run(['sh', '-c', 'kill -TERM $$; echo alive']).returncode") \
        == "-15\n"


def test_not_python(shop):
    pid, _ = shop.start([*shop.command(), "sh", "-c",
                         "tinytrain --steps 1000000 --quiet & echo ready $!; wait"])

    def answer():
        done = evaluate(pid, "1")
        return None if "records nothing" in done.stderr or "not watched" in done.stderr else done

    done = wait_until(answer, "it is not watched")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tidemark: there is no Python interpreter in this process\n"
