# SPDX-License-Identifier: MIT
"""ps, env, and the PID of a watched process where a run is asked for."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from eval_kit import (BLOCKS, DEBIAN, NOBODY, REPO, TIDEMARK, environment, evaluate, need_root, tidemark,
                      value_of)

sys.path.insert(0, str(REPO / "tests" / "cli"))
from query_kit import FIRST, Shell  # noqa: E402 (the path comes first)

KNOWN = BLOCKS + """
for i in range(23):
    alloc(4096 * (i + 1), 1000)
for i in range(7):
    free(4096 * (i + 1))
idle()
"""


def query(target, sql):
    done = tidemark("query", target, sql, "--format", "csv")
    assert done.returncode == 0, done.stderr
    return [line.split(",") for line in done.stdout.splitlines()[1:]]


def listed(pid):
    """What ps says of a process; other tests may be running beside."""
    rows = json.loads(tidemark("ps", "--json").stdout)["processes"]
    return next((row for row in rows if row["pid"] == pid), None)


def test_known_blocks(shop):
    """23 allocations in, 23 rows out, while the process lives."""
    pid = shop.target(KNOWN, env={"RANK": "3"})
    script = str(shop.folder / "script0.py")
    assert listed(pid) == {"host": None, "pid": pid, "rank": 3, "run": str(shop.run), "device": "cuda:0",
                           "allocated": 16_000, "peak": 23_000, "command": f"{DEBIAN} {script}",
                           "forecast": None, "reserved": None, "step": None}
    table = [line.split() for line in tidemark("ps").stdout.splitlines()]
    assert table[0] == ["PID", "RANK", "DEVICE", "ALLOCATED", "RESERVED", "PEAK", "STEP", "FORECAST",
                        "RUN"]
    assert [str(pid), "3", "cuda:0", "15.6", "KiB", "-", "22.5", "KiB", "-", "-",
            str(shop.run)] in table
    assert query(pid, "SELECT count(*), sum(size), count(free_ns) FROM allocations") == [
        ["23", "23000", "7"]]
    assert query(pid, "SELECT pid, rank, state FROM processes") == [[str(pid), "3", "open"]]
    peak = json.loads(tidemark("peak", pid, "--json").stdout)
    assert (peak["allocated"], peak["device"]) == (23_000, "cuda:0")
    report = json.loads(tidemark("report", pid, "--format", "json").stdout)
    assert [(p["pid"], p["allocations"], p["live_bytes"]) for p in report["processes"]] == [
        (pid, 23, 16_000)]
    checked = tidemark("check", pid)
    assert checked.returncode == 0 and ": ok: 31 events, 23 allocations, 7 frees" in checked.stdout


def test_query_shell(shop):
    """Each statement of the shell sees the process as it is then; its end is no end of the shell."""
    pid = shop.target(BLOCKS + "alloc(4096, 100)\nidle()\n")
    with Shell(shop.folder, str(pid), cwd=shop.folder, **environment()) as sh:
        assert sh.until(FIRST).startswith(f"{pid}, as it is at each statement. ")
        assert sh.ask("SELECT count(*) AS n FROM allocations;") == "n\n1\n"
        evaluate(pid, "import __main__; __main__.alloc(8192, 100)")
        assert sh.ask("SELECT count(*) AS n FROM allocations;") == "n\n2\n"


def test_growing(shop):
    """Each look sees more, exactly what the process says it has done by then."""
    pid = shop.target(BLOCKS + """
n = 0
ready()
while True:
    n += 1
    alloc(4096 * n, 512)
    time.sleep(0.001)
""")
    last = 0
    for _ in range(4):
        least = int(value_of(pid, "n")) - 1
        count = int(query(pid, "SELECT count(*) FROM allocations")[0][0])
        most = int(value_of(pid, "n"))
        assert last < least <= count <= most
        last = count
        time.sleep(0.1)


def test_forecast(shop):
    """A thousand bytes stay after each of 40 steps, and there are 100,000: 60 more, everywhere."""
    pid = shop.target(BLOCKS + """
recorder.tidemark_record_step.argtypes = [ctypes.c_int64]
recorder.tidemark_record_oom.argtypes = [ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64,
                                         ctypes.c_void_p]
for i in range(40):
    recorder.tidemark_record_step(i)
    alloc(4096 * (i + 1), 1000)
    time.sleep(0.01)
recorder.tidemark_record_step(40)
recorder.tidemark_record_oom(256, 70000, 100000, ctypes.byref(site))
idle()
""")
    found = listed(pid)["forecast"]
    assert (found["risk"], found["steps_to_oom"], found["cause"]) == ("medium", 60, "leak")  # most is ahead
    assert 0 < found["seconds_low"] < found["seconds_to_oom"] < found["seconds_high"]
    assert 0.7 <= found["confidence"] < 1 and "tidemark leak" in found["advice"][0]
    assert query(pid, "SELECT device, pid, rank, risk, steps_to_oom, cause FROM forecast") == [
        ["cuda:0", str(pid), "", found["risk"], "60", "growth"]]  # less than `leak` reports, 1 MiB
    report = json.loads(tidemark("report", pid, "--format", "json").stdout)["processes"][0]
    assert report["forecast"]["steps_to_oom"] == 60
    assert report["forecast"]["capacity"] == 100_000
    text = " ".join(tidemark("report", pid).stdout.split())
    assert "FORECAST The risk that this job runs out of memory on cuda:0 (97.7 KiB) is" in text
    jobs = json.loads(tidemark("top", "--once", "--json").stdout)["jobs"]
    assert [job["forecast"]["steps_to_oom"] for job in jobs if job["pid"] == pid] == [60]


def test_trace_is_not_disturbed(shop):
    """Reading a living process leaves its ring and its trace to it."""
    pid, job = shop.start([*shop.command(), DEBIAN, shop.script(
        BLOCKS + "alloc(4096, 100)\nready()\nuntil('end')\nalloc(8192, 200)\n")])
    for _ in range(3):
        assert query(pid, "SELECT size FROM allocations") == [["100"]]
    (shop.folder / "end").touch()
    assert job.wait(timeout=20) == 0
    assert query(shop.run, "SELECT size FROM allocations") == [["100"], ["200"]]
    assert tidemark("check", shop.run).returncode == 0
    assert listed(pid) is None


def test_wrong_targets(shop):
    pid = shop.target()
    for command in (["query", "{}", "SELECT 1"], ["report", "{}"], ["peak", "{}"], ["check", "{}"]):
        for number, reason in ((999_999_999, "there is no process 999999999"),
                               (os.getpid(), f"process {os.getpid()} is not watched; to watch it: "
                                             f"tidemark attach {os.getpid()}")):
            done = tidemark(*[word.format(number) for word in command])
            assert (done.returncode, done.stdout) == (3, "")
            assert done.stderr == f"tidemark: {reason}\n"
    for verb in ("detach", "eval"):
        done = tidemark(verb, "12x", *(["1"] if verb == "eval" else []))
        assert done.returncode == 2 and "'12x' is not the PID of a process" in done.stderr
    (shop.folder / str(pid)).mkdir()  # a file of that name comes first
    done = tidemark("check", str(pid), cwd=shop.folder)
    assert done.returncode == 3 and "holds no trace" in done.stderr


def test_nothing_recorded_yet(shop):
    (shop.folder / "plain.py").write_text(
        "import os, time\nprint('ready', os.getpid(), flush=True)\ntime.sleep(60)\n",
        encoding="utf-8")
    pid, _ = shop.start([*shop.command(), DEBIAN, "plain.py"])
    done = evaluate(pid, "1")
    assert done.returncode == 1
    assert done.stderr == (f"tidemark: process {pid} records nothing that can be found: it has not allocated "
                           "anything yet, or only this moment, was detached from, or has no ring file "
                           f"(ulimit -f); after a detach, to watch it again: tidemark attach {pid}\n")
    assert listed(pid) is None


def test_another_user(shop):
    need_root()
    pid = shop.target(KNOWN)
    for command in (["query", str(pid), "SELECT 1"], ["detach", str(pid)]):
        done = subprocess.run([*NOBODY, TIDEMARK, *command], capture_output=True, text=True,
                              env=environment(), check=False)
        assert done.returncode in (1, 3) and "belongs to another user (uid 0)" in done.stderr
    done = subprocess.run([*NOBODY, TIDEMARK, "ps", "--json"], capture_output=True, text=True,
                          env=environment(), check=True)
    assert pid not in [row["pid"] for row in json.loads(done.stdout)["processes"]]


def test_in_a_container(shop):
    """Own mounts and own process numbers: found from outside, read and asked."""
    new = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0 or subprocess.run([*new, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs root and unshare")
    script = shop.script(KNOWN)
    inside = ("mount -t tmpfs none /mnt && mkdir -m 700 /mnt/run && cp \"$1\" /mnt/t.py && "
              "cd /mnt && XDG_RUNTIME_DIR=/mnt/run TIDEMARK_RING_DIR=/mnt "
              f"exec {TIDEMARK} run -q -o /mnt/a.tmk -- {DEBIAN} t.py")
    _, job = shop.start([*new, "sh", "-c", inside, "sh", script])
    rows = json.loads(tidemark("ps", "--json").stdout)["processes"]
    pid = next(row["pid"] for row in rows if row["command"] == f"{DEBIAN} t.py")
    assert listed(pid)["run"] == "/mnt/a.tmk"
    assert query(pid, "SELECT count(*), sum(size) FROM allocations") == [["23", "23000"]]
    assert int(value_of(pid, "os.getpid()")) != pid
    assert tidemark("detach", pid).stderr == "tidemark: detached; the trace is closed\n"
    assert job.poll() is None


# ---- env

def shell(script, folder, **env):
    return subprocess.run(["bash", "-ec", script], cwd=folder, text=True, capture_output=True,
                          timeout=60, env=environment(**env), check=False)


def test_env_limits_ranks(shop):
    done = shell("""
        eval "$(tidemark env -o "it's mine.tmk" --ranks 0,8-9 --max-size 8MiB)"
        for rank in 0 1 8 9 10; do RANK=$rank tinytrain --steps 1 --quiet; done
        tinytrain --steps 1 --quiet
    """, shop.folder, TIDEMARK_RING_DIR=shop.rings)
    assert (done.returncode, done.stderr) == (0, "")
    run = shop.folder / "it's mine.tmk"
    assert sorted(path.name.split(".")[1] for path in run.glob("*.trace")) == [
        "r-", "r0", "r8", "r9"]
    assert tidemark("check", run).returncode == 0


@pytest.mark.parametrize("options", ["", "--ranks 0 --cpu-tensors", "--native --max-size 1GiB"])
def test_env_is_what_run_does(shop, options):
    """The same variables with the same values, whatever was there before; but for the file by which a
    living `run` hears of programs that it cannot record."""
    show = "env | grep -E '^(LD_PRELOAD|TIDEMARK_)' | grep -v '^TIDEMARK_REFUSALS=' | sort"
    before = {"TIDEMARK_RANKS": "5", "TIDEMARK_NATIVE": "1", "LD_PRELOAD": "/nowhere/other.so"}
    under_run = shell(f"tidemark run -q -o x.tmk {options} -- bash -c \"{show}\"", shop.folder,
                      **before)
    by_env = shell(f"eval \"$(tidemark env -o x.tmk {options})\"; {show}", shop.folder, **before)
    assert by_env.stdout == under_run.stdout
    library = os.path.join(os.path.dirname(TIDEMARK), "libtidemark.so")
    assert f"LD_PRELOAD={os.path.realpath(library)}:/nowhere/other.so" in by_env.stdout.splitlines()
    assert f"TIDEMARK_RUN={shop.folder}/x.tmk" in by_env.stdout.splitlines()
    assert ("TIDEMARK_RANKS=0" in by_env.stdout.splitlines()) == ("--ranks" in options)
    assert "TIDEMARK_RANKS=5" not in by_env.stdout


def test_env_output(shop):
    done = tidemark("env", "-o", "/a/b.tmk", "--ranks", "0,8", "--cpu-tensors", "--native")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:5] == ["unset TIDEMARK_MAX_SIZE TIDEMARK_STEP_AT TIDEMARK_NO_STACKS TIDEMARK_NO_MODULES TIDEMARK_NO_CATEGORIES "
                         "TIDEMARK_SECCOMP TIDEMARK_REFUSALS", "export TIDEMARK_RUN='/a/b.tmk'",
                         "export TIDEMARK_RANKS='0,8'", "export TIDEMARK_CPU_TENSORS='1'",
                         "export TIDEMARK_NATIVE='1'"]
    assert lines[5].startswith("export LD_PRELOAD='/")
    assert lines[5].endswith("/libtidemark.so'${LD_PRELOAD:+:$LD_PRELOAD}")
    for wrong in ("", "a", "1,", "1--2", "-1", "1-", "0;rm"):
        assert tidemark("env", f"--ranks={wrong}").returncode == 2
    default = tidemark("env", cwd=shop.folder).stdout
    assert f"export TIDEMARK_RUN='{shop.folder}/job-" in default


# ---- doctor

def test_doctor_lists_orphans(shop):
    """What a killed process leaves, with and without its trace; the command that it gives removes it."""
    pid, job = shop.start(["sh", "-c", f"exec {DEBIAN} {shop.script('idle()')}"], env={
        "LD_PRELOAD": os.path.join(os.path.dirname(TIDEMARK), "libtidemark.so"),
        "TIDEMARK_RUN": str(shop.run)})
    def doctor(*more):
        done = subprocess.run([TIDEMARK, "doctor", "--json", *more], capture_output=True, text=True,
                              env=environment(TIDEMARK_RING_DIR=shop.rings), check=False)
        found = next(check for check in json.loads(done.stdout)["checks"] if check["name"] == "leftovers")
        numbers = re.findall(r"(\d+) rings? of killed processes \((\d+) without a trace\), (\d+) account",
                             found["text"])
        return found, *(map(int, numbers[0]) if numbers else (0, 0, 0))
    _, rings, orphans, accounts = doctor()  # of others
    os.kill(pid, signal.SIGKILL)
    job.wait()
    assert doctor()[1:] == (rings + 1, orphans, accounts + 1)
    shutil.rmtree(shop.run)
    found, *numbers = doctor()
    assert numbers == [rings + 1, orphans + 1, accounts + 1]
    assert found["grade"] == "fair" and found["fix"].startswith("tidemark doctor --clean ")
    assert doctor("--clean")[0]["text"].startswith("removed ")
    assert os.listdir(shop.rings) == []
