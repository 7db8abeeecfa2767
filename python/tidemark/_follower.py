# SPDX-License-Identifier: MIT
"""`tidemark monitor --follow` beside this process: the program samples, we read along.

The sampling is the program's own (NVML, amdgpu, the host's /proc): a process of its own, some hundred
microseconds of a core a second, and no fork a sample. It ends with stop(), with the interpreter, and,
since that closes its stdin, with the death of this process. A forked child lets go of it.
"""
import json
import logging
import os
import signal
import subprocess
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional

from . import _program
from ._words import log, say, words

ANSWER_S = 10.0
_followers: "weakref.WeakSet[Follower]" = weakref.WeakSet()


class Follower:
    """One such process, from here to stop(). Callbacks run on its thread, from begin() on: they may use whoever keeps
    the follower."""

    def __init__(self, arguments: List[str], on_samples: Optional[Callable[[List[Dict[str, Any]]], None]] = None,
                 on_warning: Optional[Callable[[Dict[str, Any]], None]] = None):
        self._on_samples, self._on_warning = on_samples, on_warning
        self._report: Optional[Dict[str, Any]] = None
        self._n_reports = 0
        self._has_begun = False  # from then on signals are held back
        self._changed = threading.Condition()
        self._process = subprocess.Popen(_program.command("monitor", "--follow", *arguments), stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, env=_program.environment(), start_new_session=True)
        self._thread = threading.Thread(target=self._read, name="tidemark-monitor", daemon=True)
        _followers.add(self)

    def begin(self) -> None:
        """Read what it says; once."""
        self._thread.start()

    def _read(self) -> None:
        while self._read_line():
            pass
        with self._changed:
            self._changed.notify_all()

    def _read_line(self) -> bool:
        line = self._process.stdout.readline()
        self._has_begun = self._has_begun or bool(line)
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

    def report(self, interval_s: float) -> Dict[str, Any]:
        """As of its next sample."""
        with self._changed:
            wanted = self._n_reports + 1
            try:
                self._process.stdin.write(b"\n")
                self._process.stdin.flush()
            except (OSError, ValueError):
                pass  # it has ended: its last report is there, or comes
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._n_reports >= wanted or not self._thread.is_alive(),
                                       interval_s + ANSWER_S)
        if self._thread is threading.current_thread():  # a callback asks: nobody else reads meanwhile
            while self._n_reports < wanted and self._read_line():
                pass
        if self._report is None:
            raise RuntimeError("the monitor has ended without a report; try: tidemark monitor --all --duration 1")
        return self._report

    def stop(self) -> Optional[Dict[str, Any]]:
        """End it; its last report. May be called again."""
        try:
            self._process.stdin.close()
        except (OSError, ValueError):
            pass
        if self._has_begun and self._process.poll() is None:  # not to wait for the next sample
            self._process.send_signal(signal.SIGTERM)
        if self._thread is threading.current_thread():  # a callback ends it: the last report is ours to read
            while self._read_line():
                pass
        else:
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
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.raw.close()  # not its buffer, which a thread of the parent's may have locked
        self._process.returncode = 0  # not ours to wait for


def _in_child() -> None:
    for follower in list(_followers):
        follower.forget()
    _followers.clear()


os.register_at_fork(after_in_child=_in_child)
