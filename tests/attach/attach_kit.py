# SPDX-License-Identifier: MIT
"""Targets to attach to, and attaching to them: attach_target.c and attach_probe.c as the library."""
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TIDEMARK_BUILD", REPO / "build"))
TIME_LIMIT_S = 60


def program(name):
    """Path of something that the build makes; the test fails if it is nowhere."""
    for folder in (BUILD, BUILD / "gcc"):
        if (folder / name).exists():
            return str(folder / name)
    return pytest.fail(f"{name} is not in {BUILD}: run ./dev build", pytrace=False)


class Target:
    """A program that runs; `ready` is what it said before "ready"."""

    def __init__(self, command, **more):
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE,
                                        stdin=subprocess.PIPE, text=True, **more)
        self.pid = self.process.pid
        self.ready = []
        for line in self.process.stdout:
            if line == "ready\n":
                return
            self.ready.append(line.strip())
        pytest.fail(f"{command} did not get ready")

    def threads(self):
        return os.listdir(f"/proc/{self.pid}/task")

    def mappings(self):
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as maps:
            return maps.read().splitlines()

    def wait(self, stdin=None):
        """What it says when it ends by itself."""
        out, _ = self.process.communicate(stdin, timeout=TIME_LIMIT_S)
        assert self.process.returncode == 0, (self.process.returncode, out)
        return out.strip()

    def end(self):
        """What it says when it is told to end."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()


class Workshop:
    """A folder with the library in it, from which targets are attached to."""

    def __init__(self, folder):
        self.folder = folder
        folder.chmod(0o777)
        (folder / "lib").mkdir(mode=0o755)
        self.library = folder / "lib" / "libtidemark.so"
        shutil.copy(program("attach_probe.so"), self.library)
        self.library.chmod(0o755)
        self.targets = []
        self.n_runs = 0

    def target(self, *arguments, before=(), **more):
        return self.start(*before, program("attach_target"), *arguments, **more)

    def start(self, *command, **more):
        self.targets.append(Target(command, **more))
        return self.targets[-1]

    def tidemark(self, *arguments, before=(), tool=None):
        env = dict(os.environ, TIDEMARK_LIB=str(self.library))
        command = [*before, tool or program("tidemark"), *arguments]
        return subprocess.run([str(c) for c in command], cwd=self.folder, env=env, text=True,
                              capture_output=True, timeout=TIME_LIMIT_S, check=False)

    def attach(self, pid, *arguments):
        """Attach, which must succeed; (what was said, {line of RUN/calls}, held ms)."""
        self.n_runs += 1
        run = self.folder / f"run{self.n_runs}.tmk"
        done = self.tidemark("attach", pid, "-o", run.name, "--verbose", *arguments)
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        calls = (run / "calls").read_text().splitlines()
        held = re.search(r"the longest for (\d+(?:\.\d+)?) (ns|us|ms|s),", done.stderr)
        scale = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}
        return done.stderr, calls, float(held[1]) * scale[held[2]]

    def refused(self, pid, *arguments, **more):
        """Attach, which must fail; the reason."""
        done = self.tidemark("attach", pid, "-o", "refused.tmk", *arguments, **more)
        assert done.returncode == 1, done.stderr
        assert done.stdout == ""
        assert not (self.folder / "refused.tmk" / "calls").exists()
        return done.stderr.strip()

    def close(self):
        for target in self.targets:
            target.close()


def settled(look, wanted, seconds=TIME_LIMIT_S):
    """Wait until look() gives `wanted`; what it gave last."""
    limit = time.monotonic() + seconds
    while look() != wanted and time.monotonic() < limit:
        time.sleep(0.02)
    return look()


@pytest.fixture(name="shop")
def workshop_fixture(tmp_path):
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o777 if folder == tmp_path else 0o755)  # another user must get there
    shop = Workshop(tmp_path)
    yield shop
    shop.close()
