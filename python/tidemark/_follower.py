# SPDX-License-Identifier: MIT
"""`tidemark monitor --follow` beside this process: the program samples, we read along.

The sampling is the program's own (NVML, amdgpu, the host's /proc): a process of its own, some hundred
microseconds of a core a second, and no fork a sample. It ends with stop(), with the interpreter, and,
since that closes its stdin, with the death of this process. A forked child lets go of it. When it ends
by itself, that is said, once; what it complains of goes to the logger.
"""
import collections
import json
import logging
import os
import select
import signal
import subprocess
import threading
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional

from . import _program
from ._helpers import helper
from ._words import log, say, words

ANSWER_S = 10.0
START_S = 10.0  # a driver may take seconds to be loaded; then we go on without having seen a sample
USAGE = 2       # its exit status when arguments are wrong
_followers: "weakref.WeakSet[Follower]" = weakref.WeakSet()


class Follower:
    """One such process, from here to stop(). Callbacks run on its thread, from begin() on: they may use whoever keeps
    the follower."""

    @helper()
    def __init__(self, arguments: List[str], on_samples: Optional[Callable[[List[Dict[str, Any]]], None]] = None,
                 on_warning: Optional[Callable[[Dict[str, Any]], None]] = None):
        self._on_samples, self._on_warning = on_samples, on_warning
        self._report: Optional[Dict[str, Any]] = None
        self._n_asked = self._n_reports = 0
        self._has_begun = False  # from then on signals are held back
        self._is_stopping = False
        #: It has ended, and nobody had it end; reason says how.
        self.has_ended = False
        self.reason = ""
        self._changed = threading.Condition()
        self._process = subprocess.Popen(_program.command("monitor", "--follow", *arguments), stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                                         env=_program.environment(), start_new_session=True)
        self._open = {self._process.stdout.fileno(), self._process.stderr.fileno()}
        self._rest = {fd: b"" for fd in self._open}  # of each, a line that has only begun
        self._lines: Deque[bytes] = collections.deque()
        self._complaints: List[str] = []  # until its first line
        self._thread = threading.Thread(target=self._read, name="tidemark-monitor", daemon=True)
        _followers.add(self)

    @helper()
    def begin(self) -> None:
        """Read what it says; once. ValueError with its reason where it refuses its arguments."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._has_begun or self.has_ended or self._is_stopping, START_S)
        if self.has_ended and not self._has_begun:
            self.stop()
            reason = "; ".join(self._complaints) or f"the monitor cannot begin: {self.reason}"
            raise (ValueError if self._process.returncode == USAGE else RuntimeError)(reason)

    # ---- reading

    def _read(self) -> None:
        while self._read_line():
            pass
        if not self._is_stopping:
            self._say_end()
        with self._changed:
            self._changed.notify_all()

    def _say_end(self) -> None:
        try:
            status = self._process.wait(ANSWER_S)
            self.reason = f"signal {-status}" if status < 0 else f"status {status}"
        except subprocess.TimeoutExpired:
            self.reason = "it says nothing any more"
        if self._has_begun:
            say(logging.WARNING, words(f"the monitor has ended by itself ({self.reason}): nothing is watched any more; "
                                       "start_monitoring() begins anew",
                                       f"监控进程意外结束 ({self.reason}): 不再监控; 可用 start_monitoring() 重新开始"))
        with self._changed:
            self.has_ended = True

    def _next_line(self) -> bytes:
        """Of its stdout; b"" at the end. Complaints are taken along."""
        while not self._lines and self._open:
            waiting = select.poll()
            for fd in self._open:
                waiting.register(fd, select.POLLIN)
            for fd, _ in waiting.poll():
                self._take_bytes(fd, os.read(fd, 1 << 16))
        return self._lines.popleft() if self._lines else b""

    def _take_bytes(self, fd: int, found: bytes) -> None:
        if not found:
            self._open.discard(fd)
        *lines, self._rest[fd] = (self._rest[fd] + found).split(b"\n")
        if fd == self._process.stdout.fileno():
            self._lines.extend(line for line in lines if line)
            return
        self._complaints += [line.decode("utf-8", "replace").partition("tidemark: ")[2] or
                             line.decode("utf-8", "replace") for line in lines]
        if self._has_begun:
            self._say_complaints()

    def _say_complaints(self) -> None:
        complaints, self._complaints = self._complaints, []
        for line in complaints:
            say(logging.WARNING, line)

    def _read_line(self) -> bool:
        line = self._next_line()
        if line and not self._has_begun:
            with self._changed:
                self._has_begun = True
                self._changed.notify_all()
            self._say_complaints()
        try:
            if line:
                self._take(line)
        except Exception as reason:  # a callback's: the monitor goes on
            say(logging.ERROR, words(f"a callback of the monitor failed: {reason!r}", f"监控回调出错: {reason!r}"))
        return bool(line)

    def _take(self, line: bytes) -> None:
        if line.startswith(b'{"samples"') and self._on_samples is None and not log.isEnabledFor(logging.DEBUG):
            return
        found = json.loads(line)
        if "samples" in found:
            for sample in found["samples"]:
                log.debug("sample: %s", sample)
            if self._on_samples is not None:
                self._on_samples(found["samples"])
        elif "warning" in found:
            log.debug("warning: %s", found)
            if self._on_warning is not None:
                self._on_warning(found)
        else:
            with self._changed:
                self._report = found
                self._n_reports += 1
                self._changed.notify_all()

    # ---- asking

    @helper()
    def report(self) -> Dict[str, Any]:
        """As of its last sample, or the first if there is none yet. One that does not come in time is the one before,
        and says so in `reason`."""
        with self._changed:
            self._n_asked += 1
            wanted = self._n_asked
            try:
                self._process.stdin.write(b"\n")
            except (OSError, ValueError):
                pass  # it has ended: its last report is there, or comes
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._n_reports >= wanted or not self._thread.is_alive(), ANSWER_S)
        if self._thread is threading.current_thread():  # a callback asks: nobody else reads meanwhile
            while self._n_reports < wanted and self._read_line():
                pass
        if self._report is None:
            raise RuntimeError("the monitor does not answer; try: tidemark monitor --all --duration 1")
        if self._n_reports >= wanted:
            return self._report
        reason = words(f"the monitor does not answer: this is its report of {self._report['timestamp']}",
                       f"监控进程没有应答: 这是 {self._report['timestamp']} 的报告")
        say(logging.WARNING, reason)
        return {**self._report, "reason": reason}

    # ---- the end

    @helper()
    def stop(self) -> Optional[Dict[str, Any]]:
        """End it; its last report. May be called again."""
        self._is_stopping = True
        try:
            self._process.stdin.close()
        except (OSError, ValueError):
            pass
        if self._has_begun and self._process.poll() is None:  # not to wait for the next sample
            self._process.send_signal(signal.SIGTERM)
        if self._thread is threading.current_thread():  # a callback ends it: the last report is ours to read
            while self._read_line():
                pass
        elif self._thread.ident is not None:
            self._thread.join(ANSWER_S)
        try:
            self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _followers.discard(self)
        return self._report

    def forget(self) -> None:
        """In a forked child, whose parent's it is."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            pipe.close()
        self._process.returncode = 0  # not ours to wait for


def _in_child() -> None:
    for follower in list(_followers):
        follower.forget()
    _followers.clear()


os.register_at_fork(after_in_child=_in_child)
