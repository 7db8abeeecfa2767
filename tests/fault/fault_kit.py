# SPDX-License-Identifier: MIT
"""Where the programs are, and how a program is watched.

`watch` runs a program under build/tidemark; where that is not built, under the library alone, which
is what `tidemark run` does for it. Each test has rings in a folder of its own, so that one left
behind is seen.
"""
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TIDEMARK_BUILD", REPO / "build"))


def program(name):
    """Path of something that the build makes; the test fails if it is nowhere."""
    for folder in (BUILD, BUILD / "gcc"):
        if (folder / name).exists():
            return str(folder / name)
    pytest.fail(f"{name} is not in {BUILD}: run ./dev build", pytrace=False)


def has_tidemark():
    path = BUILD / "tidemark"
    return path.exists() and subprocess.run([path, "--help"], capture_output=True).returncode == 0


class Watch:
    """Runs programs watched, in a folder of its own."""

    def __init__(self, folder, rings):
        self.folder = folder
        self.rings = rings
        self.run = folder / "a.tmk"
        self.journal = folder / "journal"

    def environment(self, preload):
        env = dict(os.environ, TIDEMARK_RING_DIR=str(self.rings))
        for name in ("TIDEMARK_RUN", "TIDEMARK_MAX_SIZE", "LD_PRELOAD", "XDG_RUNTIME_DIR"):
            env.pop(name, None)
        if preload:
            env["LD_PRELOAD"] = program("libtidemark.so")
            env["TIDEMARK_RUN"] = str(self.run)
        return env

    def command(self, args, alone=False, max_size=None):
        """(arguments, environment) to run `args` watched; `alone`: without `tidemark run`."""
        args = [str(arg) for arg in args]
        if alone or not has_tidemark():
            env = self.environment(preload=True)
            if max_size:
                env["TIDEMARK_MAX_SIZE"] = str(max_size)
            return args, env
        front = [program("tidemark"), "run", "--quiet", "-o", str(self.run)]
        if max_size:
            front += ["--max-size", str(max_size)]
        return front + ["--"] + args, self.environment(preload=False)

    def __call__(self, *args, alone=False, max_size=None, timeout=240, **more):
        args, env = self.command(args, alone, max_size)
        env.update(more.pop("env", {}))
        return subprocess.run(
            args, env=env, capture_output=True, text=True, timeout=timeout, **more
        )

    def report(self, mode, *numbers, **more):
        """Run the journal program."""
        return self(program("journal"), mode, self.journal, *numbers, **more)

    def traces(self):
        return sorted(self.run.glob("*.trace")) if self.run.exists() else []

    def check(self, *flags):
        """The journal agrees with the traces, and `tidemark check` finds nothing. Its figures."""
        self.check_ok()
        done = subprocess.run(
            [program("journal_check"), *flags, self.journal, *self.traces()],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        assert list(self.rings.iterdir()) == [], "something was left behind"
        return json.loads(done.stdout)

    def check_ok(self):
        """`tidemark check` says ok to every trace; its output."""
        if not has_tidemark():
            return ""
        done = subprocess.run(
            [program("tidemark"), "check", str(self.run)],
            capture_output=True,
            text=True,
            env=self.environment(preload=False),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        oks = [line for line in done.stdout.splitlines() if ": ok: " in line]
        assert len(oks) == len(self.traces()), done.stdout
        return done.stdout

    def without_drops(self, attempt, *ways):
        """What attempt(way) gives, the first time that no event was dropped. Recording keeps up with
        the first way; on a machine that is busy with other work it may take a slower one."""
        for way in ways:
            shutil.rmtree(self.run, ignore_errors=True)
            self.journal.unlink(missing_ok=True)
            given = attempt(way)
            said = self.tidemark("query", self.run, "--format", "csv", "SELECT sum(dropped) FROM processes")
            if said.splitlines()[1] == "0":
                return given
        return pytest.fail("events were dropped in each way", pytrace=False)

    def tidemark(self, *args):
        """Output of a tidemark command that must succeed."""
        if not has_tidemark():
            pytest.skip("build/tidemark is not built")
        done = subprocess.run(
            [program("tidemark"), *[str(arg) for arg in args]],
            capture_output=True,
            text=True,
            env=self.environment(preload=False),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def unmount(folder):
    """Once nobody looks into it, or for them when they are done: on a machine for several, an agent
    or `top` of this user's reads every watched process."""
    for _ in range(100):
        done = subprocess.run(["umount", folder], capture_output=True, text=True, check=False)
        if done.returncode == 0 or "busy" not in done.stderr:
            break
        time.sleep(0.05)
    else:
        done = subprocess.run(["umount", "--lazy", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def fresh_rings():
    """A folder on tmpfs, where there is one that rings may use."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="tidemark-test.", dir=parent))


@pytest.fixture
def watch(tmp_path):
    rings = fresh_rings()
    yield Watch(tmp_path, rings)
    shutil.rmtree(rings)


@pytest.fixture
def many_watches(tmp_path_factory):
    """A function that makes one after the other; each removes what the one before left."""
    made = []

    def make():
        while made:
            old = made.pop()
            shutil.rmtree(old.rings)
            shutil.rmtree(old.folder)
        made.append(Watch(tmp_path_factory.mktemp("run"), fresh_rings()))
        return made[-1]

    yield make
    for last in made:
        shutil.rmtree(last.rings)
