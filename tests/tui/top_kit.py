# SPDX-License-Identifier: MIT
"""A machine that is made up (cards by tests/fake_cuda, /proc and /sys by this kit), jobs that are
really watched, and `tidemark top` in a tmux of a given size that looks at both."""
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
BUILD = Path(os.environ.get("TIDEMARK_BUILD", REPO / "build"))
PYTHON = "/usr/bin/python3"
GIB = 1 << 30
WAIT_S = 15
# Other watched processes of this machine are not ours to show: all commands of ours have this.
OURS = "x7k2"


def without_graphs(screen):
    """Graphs grow with time: how wide they are is not compared, nor what their time axes say."""
    lines = (re.sub("[▁▂▃▄▅▆▇█┄]", " ", line).rstrip() for line in screen.split("\n"))
    return re.sub(r"└─*(?: \w+ ago ─+ now)?", lambda axis: "└".ljust(len(axis[0]), "─"),
                  "\n".join(lines))


def fake_cuda():
    folders = [BUILD / part / "tests" / "fake_cuda" for part in ("", "gcc")]
    found = [f for f in folders if (f / "libnvidia-ml.so.1").exists()]
    assert found, "tests/fake_cuda is not built: run ./dev check first"
    return str(found[0])


class Machine:
    """Cards, processes on them, jobs; all of it ends with close()."""

    def __init__(self, folder, cuda=None):
        self.folder = Path(folder)
        self.cuda = cuda or fake_cuda()
        self.rings = tempfile.mkdtemp(prefix="tidemark-test.", dir="/dev/shm")
        self.started = []
        self.loads = []  # lines about how busy each card is
        self.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module "
                   "for x86_64  580.95.05  Release Build\n")
        self.write("proc/meminfo", f"MemTotal: {512 << 20} kB\nMemAvailable: {448 << 20} kB\n")
        (self.folder / "sys").mkdir()
        self.set_cards([])

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8")
        part.rename(path)

    def set_cards(self, cards):
        """cards: [(name, total GiB, [(pid, GiB)])]"""
        lines = ["driver 580.95.05", "cuda 13000"]
        for name, total, processes in cards:
            lines += [f"device {total * GIB} {name}", f"reserved {GIB // 2}"]
            lines += self.loads.pop(0) if self.loads else []
            lines += [f"process {pid} {int(size * GIB)}" for pid, size in processes]
        self.write("cards", "\n".join(lines) + "\n")

    def add_process(self, pid, command, resident_gib=1, is_real=False):
        """A process as /proc would have it; a real one started when it did."""
        self.write(f"proc/{pid}/status", f"Name:\t{command[0][:15]}\nNSpid:\t{pid}\n")
        real = Path(f"/proc/{pid}/stat")
        self.write(f"proc/{pid}/stat", real.read_text(encoding="utf-8") if is_real else
                   f"{pid} (x) S " + "0 " * 18 + "77 0 0\n")
        self.write(f"proc/{pid}/cmdline", "".join(word + "\0" for word in command))
        self.write(f"proc/{pid}/statm", f"99999999 {resident_gib * GIB // 4096} 1 1 0 1 0\n")

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if name in ("HOME", "TMPDIR") or name.endswith("SAN_OPTIONS")}
        return {**kept, "PATH": f"{BUILD}:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
                "LD_LIBRARY_PATH": self.cuda, "FAKE_CUDA_STATE": str(self.folder / "cards"),
                "TIDEMARK_PROC_DIR": str(self.folder / "proc"),
                "TIDEMARK_SYS_DIR": str(self.folder / "sys"), **more}

    def job(self, name, n_steps, more_gib=0, rank=None):
        """PID of a watched job, which has come to its last step."""
        script = self.folder / f"{name}-{OURS}.py"
        shutil.copy(HERE / "top_job.py", script)
        env = {"PATH": f"{BUILD}:/usr/bin:/bin", "TIDEMARK_RING_DIR": self.rings,
               **({"RANK": str(rank), "WORLD_SIZE": "2"} if rank is not None else {})}
        child = subprocess.Popen(
            [str(BUILD / "tidemark"), "run", "-q", "-o", str(self.folder / f"{name}.tmk"), "--",
             PYTHON, script.name, str(n_steps), str(more_gib)], env=env, cwd=self.folder,
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.started.append(child)
        word, pid = child.stdout.readline().split()
        assert word == "ready"
        return int(pid)

    def ranks(self, name, n):
        """PIDs of the ranks of one watched run, in order; each is a process of /proc here too."""
        script = self.folder / f"{name}-{OURS}.py"
        shutil.copy(HERE / "top_job.py", script)
        each = [f"RANK={i} WORLD_SIZE={n} {PYTHON} {script.name} 40 &" for i in range(n)]
        child = subprocess.Popen(
            [str(BUILD / "tidemark"), "run", "-q", "-o", str(self.folder / f"{name}.tmk"), "--",
             "sh", "-c", " ".join(each) + " wait"], cwd=self.folder, stdout=subprocess.PIPE,
            text=True, start_new_session=True,
            env={"PATH": f"{BUILD}:/usr/bin:/bin", "TIDEMARK_RING_DIR": self.rings})
        self.started.append(child)
        pids = {}
        for _ in range(n):
            pid = int(child.stdout.readline().split()[1])
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            pids[next(int(e[5:]) for e in environ if e.startswith(b"RANK="))] = pid
            self.add_process(pid, ["python3"], is_real=True)
        return [pids[rank] for rank in range(n)]

    def once(self, *arguments, **more):
        return subprocess.run([str(BUILD / "tidemark"), "top", "--once", "--filter", OURS,
                               *arguments], capture_output=True, text=True, timeout=240,
                              check=False, env=self.environment(**more))

    def close(self):
        for child in self.started:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
            child.stdout.close()
        shutil.rmtree(self.rings, ignore_errors=True)


def usual_machine(folder, cuda=None):
    """Eight cards, two watched jobs on four of them, and others: one in a container, one whose
    name has wide characters."""
    machine = Machine(folder, cuda)
    first = machine.job("train", 40, rank=0)
    second = machine.job("tune", 7, more_gib=2)
    machine.add_process(first, ["python3"], 6, is_real=True)
    machine.add_process(second, ["python3"], 5, is_real=True)
    machine.add_process(40001, [f"/opt/serve-{OURS}", "--model", "llama-70b"], 12)
    machine.add_process(40002, [f"训练任务-{OURS}", "--config", "配置.yaml"], 3)
    on = {0: [(first, 41.5)], 1: [(second, 47.25)], 2: [(40001, 76.25)], 3: [(40001, 70.5)],
          5: [(40002, 0.75)]}
    machine.loads = [["busy 97", "power 512345 700000", "temperature 61"],
                     ["busy 100", "power 698700 700000", "temperature 83"],
                     ["busy 3", "power 120000 -", "temperature 40"], [],
                     *(["busy 0", "power 71000 700000", f"temperature {30 + i}"]
                       for i in range(4))]
    machine.set_cards([("NVIDIA H100 80GB HBM3", 80, on.get(i, [])) for i in range(8)])
    return machine, {str(first): "PID-A", str(second): "PID-B"}


class Terminal:
    """A tmux server of its own with one window."""

    def __init__(self, machine, width, height, arguments=(), term=None, **more):
        self.machine = machine
        self.folder = tempfile.mkdtemp(prefix="tmux.")
        self.socket = os.path.join(self.folder, "s")
        env = machine.environment(**more)
        words = ["env", *(f"{name}={value}" for name, value in env.items())]
        words += [f"TERM={term}"] if term else []
        words += [str(BUILD / "tidemark"), "top", "--filter", OURS, *arguments]
        self.command = " ".join("'" + word + "'" for word in words)
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height),
                 "env LC_ALL=C.UTF-8 PS1='$ ' ENV= sh")

    def run(self, *arguments):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *arguments], check=True,
                              capture_output=True, text=True, timeout=WAIT_S,
                              env={**self.machine.environment(), "TERM": "xterm"}).stdout

    def start(self):
        self.type("clear; " + self.command + "\n")

    def keys(self, *names):
        self.run("send-keys", *names)

    def type(self, text):
        for line in text.splitlines(keepends=True):
            self.run("send-keys", "-l", line.rstrip("\n"))
            if line.endswith("\n"):
                self.run("send-keys", "Enter")

    def screen(self, *arguments):
        return self.run("capture-pane", "-p", *arguments)

    def until(self, pattern):
        """The screen, once it fits the pattern."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            screen = self.screen()
            if re.search(pattern, screen):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"never saw {pattern!r} but:\n{screen}")

    def settled(self, pattern):
        """The same, once it stays so: not in the middle of being drawn."""
        before = None
        while True:
            screen = re.sub(r"\d\d:\d\d:\d\d", "HH:MM:SS", without_graphs(self.until(pattern)))
            if screen == before:
                return without_graphs(self.until(pattern))
            before = screen
            time.sleep(0.3)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False,
                       capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def masked(screen, pids):
    """Without what differs each time: PIDs, user, clock, host (which moves the rest of the title),
    how long graphs are, folders and times of the run."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    shown_user = user if len(user) <= 8 else user[:7] + "…"
    for pid, name in pids.items():
        screen = screen.replace(f"process    {pid}", f"process    {name}")
        screen = screen.replace(f"{pid:>7} {shown_user:<8}", f"{name:>7} {user:<8}")
    screen = screen.replace(f" {shown_user:<8} ", " USER     ")
    title = rf" tidemark top  {re.escape(os.uname().nodename)}  (4 processes, 2 watched, driver .*) *"
    screen = re.sub("^" + title + r"\d\d:\d\d:\d\d\n", " tidemark top  HOST  4 processes, 2 watched, "
                    "driver ...\n", screen)
    screen = re.sub(r" +[\d.]+ [num]s (?=[-\w])", lambda m: "TIME ".rjust(len(m[0])), screen)
    screen = re.sub(r"(run  +)\S+", r"\1RUN", screen)
    screen = re.sub(r"after [\d.]+ \w+,", "after TIME,", screen)
    return re.sub(r"(steps +\d+ of) [\d.]+ \w+", r"\1 TIME", screen)


def main():
    """Show screens: top_kit.py WIDTH HEIGHT [KEY...]"""
    width, height, keys = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder:
        machine, _ = usual_machine(folder)
        terminal = Terminal(machine, width, height, ["--interval", "0.2"])
        try:
            terminal.start()
            terminal.until("4 processes, 2 watched")
            time.sleep(5)
            for key in keys:
                terminal.keys(key)
                time.sleep(1)
            print(terminal.screen("-e"))
        finally:
            terminal.close()
            machine.close()


if __name__ == "__main__":
    main()
