# SPDX-License-Identifier: MIT
"""The shell of `tidemark query`, typed at through a pseudo-terminal."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from test_golden import BUILD, environment, workshop

TIDEMARK = os.path.join(BUILD, "tidemark")
WAIT_S = 20
FIRST, NEXT = "tidemark> ", "     ...> "


class Shell:
    """`tidemark query` on a terminal of ours."""

    def __init__(self, home, *arguments, columns=100, cwd=None, **more):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.seen = ""
        self.is_busy = False
        self.process = subprocess.Popen(
            [TIDEMARK, "query", *arguments], stdin=slave, stdout=slave, stderr=slave,
            cwd=cwd or workshop().name, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**environment(), "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1", **more})
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def read_some(self, end):
        if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
            raise AssertionError(f"nothing came; so far: {self.seen!r}")
        try:
            self.seen += os.read(self.master, 65536).decode()
        except OSError:  # it has gone
            return False
        return True

    def until(self, text):
        """What came up to `text`, as a screen has it; it is taken off."""
        end = time.monotonic() + WAIT_S
        while text not in self.plain():
            assert self.read_some(end), f"it ended; so far: {self.seen!r}"
        before, _, self.seen = self.plain().partition(text)
        return before

    def plain(self):
        """Without what moves the cursor or clears the line."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen).replace("\r\n", "\n").replace("\r", "")

    def type(self, keys):
        """Once the editor reads; else the terminal would echo them, too."""
        end = time.monotonic() + WAIT_S
        while termios.tcgetattr(self.master)[3] & termios.ICANON and not self.is_busy:
            assert time.monotonic() < end
        os.write(self.master, keys.encode())

    def ask(self, line, prompt=FIRST):
        """What a line answers, without the line itself and the next prompt."""
        self.type(line + "\n")
        return self.until(prompt).partition("\n")[2]

    def leave(self, keys="\x04"):
        self.type(keys)
        end = time.monotonic() + WAIT_S
        while self.read_some(end):
            pass
        return self.process.wait(WAIT_S)
