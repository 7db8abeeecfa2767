# SPDX-License-Identifier: MIT
"""Debian's real sshd on loopback: a machine of its own for tests of HOST:PID, with keys, configuration and a port that
only they know. Nothing of the user's ~/.ssh is read."""
import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "eval"))
from eval_kit import BLOCKS, BUILD, DEBIAN, TIDEMARK, Workshop, environment  # noqa: E402 (the path comes first)

SSHD = next((path for path in ("/usr/sbin/sshd", "/usr/local/sbin/sshd") if os.path.exists(path)), None)
WAIT_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what):
    for _ in range(WAIT_S * 50):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"waited {WAIT_S} s in vain: {what}")


class Machine:
    """An sshd of this user's, and what a client needs to reach it as `node7`, `node8` and `node9` (where nobody
    listens). `there` is the HOME and PATH of commands over ssh."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tidemark-sshd."))
        self.home = self.folder / "home"
        self.runtime = self.folder / "runtime"
        self.runtime_there = self.folder / "runtime-there"
        for folder in (self.home, self.runtime, self.runtime_there):
            folder.mkdir(mode=0o700)
        self.log = self.folder / "sshd.log"
        self.config = self.folder / "ssh_config.user"
        self.port, self.nobody = free_port(), free_port()
        self.make_keys()
        self.write_configuration()
        self.sshd = self.start()

    def make_keys(self):
        public = {}
        for name in ("host", "user", "stranger", "bare", "bound"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True)
            public[name] = (self.folder / f"{name}.pub").read_text(encoding="utf-8")
        bare = 'command="PATH=/usr/bin:/bin; eval \\"$SSH_ORIGINAL_COMMAND\\"" '
        (self.folder / "authorized_keys").write_text(
            f"{public['user']}{bare}{public['bare']}command=\"tidemark remote-end\" {public['bound']}", encoding="utf-8")
        host_key = " ".join((self.folder / "host.pub").read_text(encoding="utf-8").split()[:2])
        (self.folder / "known_hosts").write_text("".join(f"{name} {host_key}\n" for name in ("node7", "node8", "node9")),
                                                 encoding="utf-8")

    def write_configuration(self):
        settings = {"HOME": self.home, "PATH": f"{BUILD}:/usr/bin:/bin", "XDG_RUNTIME_DIR": self.runtime_there}
        (self.folder / "sshd_config").write_text(f"""\
Port {self.port}
ListenAddress 127.0.0.1
HostKey {self.folder}/host
PidFile none
AuthorizedKeysFile {self.folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
LogLevel VERBOSE
SetEnv {" ".join(f"{name}={value}" for name, value in settings.items())}
""", encoding="utf-8")
        for name in ("user", "stranger", "bare", "bound"):
            self.write_client(self.folder / f"ssh_config.{name}", name)

    def write_client(self, path, key):
        ports = {"node7": self.port, "node8": self.port, "node9": self.nobody}
        path.write_text("".join(f"""\
Host {name}
    HostName 127.0.0.1
    HostKeyAlias {name}
    Port {port}
""" for name, port in ports.items()) + f"""\
Host *
    User {getpass.getuser()}
    IdentityFile {self.folder}/{key}
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {self.folder}/known_hosts
    GlobalKnownHostsFile /dev/null
""", encoding="utf-8")

    def start(self):
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # sshd of root wants it; a service makes it elsewhere
        sshd = subprocess.Popen([SSHD, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.log)],
                                stdin=subprocess.DEVNULL)
        wait_until(lambda: sshd.poll() is not None or "Server listening" in self.said(), "sshd listens")
        assert sshd.poll() is None, self.said()
        return sshd

    def check_login(self):
        """Whether this user may log in at all: a locked account may not."""
        done = subprocess.run(["ssh", "-F", str(self.config), "-o", "BatchMode=yes", "node7", "true"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_S, check=False)
        if "account is locked" in self.said():
            self.close()
            pytest.skip(f"SKIPPED: sshd lets nobody into the account {getpass.getuser()}, which is locked")
        assert done.returncode == 0, done.stderr + self.said()

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def logins(self):
        """How often somebody has logged in."""
        return self.said().count("Accepted publickey")

    def environment(self, **more):
        return environment(**{"XDG_RUNTIME_DIR": str(self.runtime), "TIDEMARK_SSH": f"ssh -F {self.config}",
                              "HOME": str(self.folder), **more})

    def as_key(self, name):
        """Settings to log in with another key: `stranger` is not known, `bare` has no tidemark on its PATH, `bound` may
        do nothing but tidemark remote-end."""
        return {"TIDEMARK_SSH": f"ssh -F {self.folder}/ssh_config.{name}"}

    def tidemark(self, *arguments, env=None, **more):
        """Run the program as somebody on another machine would; what came of it."""
        more = {"stdin": subprocess.DEVNULL, **more} if "input" not in more else more
        return subprocess.run([TIDEMARK, *map(str, arguments)], capture_output=True, text=True, timeout=WAIT_S,
                              env=self.environment(**(env or {})), check=False, start_new_session=True, **more)

    def sockets(self):
        return [path for path in self.runtime.iterdir() if path.name.startswith("tidemark-ssh.")]

    def hang_up(self):
        """End the connections that are kept, so that the next command logs in."""
        for path in self.sockets():
            subprocess.run(["ssh", "-F", str(self.config), "-S", str(path), "-O", "exit", "node7"],
                           capture_output=True, timeout=WAIT_S, check=False)
        wait_until(lambda: not self.sockets(), "connections end")

    def close(self):
        try:
            self.hang_up()
        finally:
            self.sshd.terminate()
            self.sshd.wait()
            shutil.rmtree(self.folder, ignore_errors=True)


def locally(*arguments, **more):
    """The same program, asked on the machine of the process."""
    more = {"stdin": subprocess.DEVNULL, **more} if "input" not in more else more
    return subprocess.run([TIDEMARK, *map(str, arguments)], capture_output=True, text=True, timeout=WAIT_S,
                          env=environment(), check=False, **more)


def need_sshd():
    if not SSHD or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
        pytest.skip("SKIPPED: needs OpenSSH's server and client (openssh-server, openssh-client)")


__all__ = ["BLOCKS", "DEBIAN", "Machine", "REPO", "TIDEMARK", "WAIT_S", "Workshop", "environment", "locally", "need_sshd",
           "wait_until"]
