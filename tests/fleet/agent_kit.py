# SPDX-License-Identifier: MIT
"""An agent under test: on made-up cards, beside real watched processes, asked over real sockets."""
import ctypes
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "fault"))
sys.path.insert(0, str(REPO / "tests" / "monitor"))
from fault_kit import program  # noqa: E402
from monitor_kit import GIB, Machine  # noqa: E402,F401

LIMIT_S = 60
HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
UNESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


def labels_of(text):
    """{name: value}; every byte of the text must be understood."""
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match and match.group(1) not in labels, text
        labels[match.group(1)] = re.sub(r'\\["\\n]', lambda m: UNESCAPED[m.group()], match.group(2))
        at = match.end()
    return labels


def bcrypt(password):
    """The quickest hash that there is, by crypt(3)."""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    return library.crypt(password.encode(), b"$2b$04$abcdefghijklmnopqrstuu").decode()


class Metrics:
    """The samples of an answer: [(name, labels, value)]."""

    def __init__(self, text):
        self.samples = []
        for line in text.split("\n"):
            if line and not line.startswith("#"):
                match = SAMPLE.match(line)
                assert match, line
                self.samples.append((match.group(1), labels_of(match.group(2) or ""),
                                     float(match.group(3))))

    def of(self, name, **wanted):
        """[(labels, value)] of the series with these labels."""
        return [(labels, value) for found, labels, value in self.samples
                if found == name and wanted.items() <= labels.items()]

    def value(self, name, **wanted):
        found = self.of(name, **wanted)
        assert len(found) == 1, (name, wanted, found)
        return found[0][1]


def wait_for(what, look):
    """The first true thing that look() gives."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Agent:
    def __init__(self, *arguments, environment=None, prefix=()):
        self.process = subprocess.Popen(
            [*prefix, program("tidemark"), "agent", "--listen", "0", "--interval", "0.2", *arguments],
            stderr=subprocess.PIPE, text=True, env=environment)
        line = self.process.stderr.readline()
        match = re.search(r"(https?)://127\.0\.0\.1:(\d+)/metrics", line)
        assert match, line + (self.process.stderr.read() if not match else "")
        self.url, self.port = match.group(0)[:-len("/metrics")], int(match.group(2))

    def curl(self, path, *arguments):
        """(status, body) as the real curl sees it; status 0: it could not connect."""
        done = subprocess.run(["curl", "-sS", "--max-time", str(LIMIT_S), "-w", "\n%{http_code}",
                               *arguments, self.url + path], capture_output=True, check=False,
                              timeout=2 * LIMIT_S)
        body, _, status = done.stdout.decode().rpartition("\n")
        return int(status), body

    def text(self, accept="text/plain", *arguments):
        return wait_for("the agent sees nothing", lambda: self.answer(accept, *arguments))

    def answer(self, accept, *arguments):
        status, body = self.curl("/metrics", "-H", f"Accept: {accept}", *arguments)
        assert status in (200, 503), (status, body)
        return body if status == 200 else None

    def metrics(self):
        return Metrics(self.text())

    def wait_metrics(self, what, is_so):
        """The first metrics of which is_so says something true."""
        def look():
            metrics = self.metrics()
            return metrics if is_so(metrics) else None
        return wait_for(what, look)

    def send(self, data, timeout=LIMIT_S):
        """What the agent answers to these bytes, until it closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            answer = b""
            while part := s.recv(65536):
                answer += part
        return answer

    def end(self):
        """(exit status, what it said)"""
        self.process.terminate()
        _, said = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, said


class Watched:
    """tests/fleet/watched_job.py under `tidemark run`: it does a line, and answers when it is done."""

    def __init__(self, folder, run, environment, prefix=()):
        env = {"PATH": "/usr/bin:/bin", "TIDEMARK_RING_DIR": str(folder), **environment}
        self.process = subprocess.Popen(
            [*prefix, program("tidemark"), "run", "--quiet", "-o", str(folder / run), "--", PYTHON,
             str(HERE / "watched_job.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=env, errors="surrogateescape")
        self.pid = int(self.process.stdout.readline())

    def do(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n", line

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(timeout=LIMIT_S)
        self.process.stdout.close()


def clean_environment(folder):
    """Without cards, and without what the tester's own environment says of jobs."""
    kept = {name: value for name, value in os.environ.items()
            if name in ("HOME", "TMPDIR") or name.endswith("SAN_OPTIONS")}
    return {**kept, "PATH": "/usr/bin:/bin", "TIDEMARK_RING_DIR": str(folder)}
