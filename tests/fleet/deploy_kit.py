# SPDX-License-Identifier: MIT
"""What the tests of deploy/ share: an installed tree, and programs in namespaces and with rights of their own."""
import os
import shutil
import signal
import subprocess

import pytest
from agent_kit import LIMIT_S, REPO, Agent, program

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: namespaces and other users need root")
VERSION = next(line.split("'")[1] for line in (REPO / "meson.build").read_text(encoding="utf-8").splitlines()
               if line.strip().startswith("version:"))


def install(folder):
    """The tree that `./dev package` packs, of this build."""
    for name, where in (("tidemark", "bin"), ("tinytrain", "bin"), ("libtidemark.so", "lib")):
        (folder / where).mkdir(parents=True, exist_ok=True)
        shutil.copy(program(name), folder / where)
    shutil.copytree(REPO / "deploy", folder / "share" / "tidemark" / "deploy")
    for name in "LICENSE", "README.md":
        shutil.copy(REPO / name, folder)
    return folder


def with_rights(user, capabilities):
    """As a container runtime starts it: this user, and of root's rights these."""
    plus = "".join(f",+{name.lower()}" for name in capabilities)
    ids = () if user == 0 else (f"--reuid={user}", f"--regid={user}", "--clear-groups")
    return ("setpriv", "--no-new-privs", *ids, f"--inh-caps=-all{plus}", f"--bounding-set=-all{plus}")


def in_pod(folders, *, own_processes):
    """Empty folders that only the pod sees, and if it is to have them, PIDs of its own."""
    mounts = "".join(f"mount -t tmpfs -o mode=1777 none {folder} && " for folder in folders)
    pids = ("--pid", "--fork", "--mount-proc", "--kill-child=KILL") if own_processes else ()
    return ("unshare", "--mount", *pids, "sh", "-c", f'{mounts}exec "$@"', "sh")


class PodAgent(Agent):
    """An agent in PIDs of its own: unshare(1) is in front of it, which no signal ends."""

    def end(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            for pid in children.read().split():
                os.kill(int(pid), signal.SIGTERM)
        _, said = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, said


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=LIMIT_S,
                          **more)
