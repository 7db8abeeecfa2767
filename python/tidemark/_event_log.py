# SPDX-License-Identifier: MIT
"""Lines to a log file that is rotated, and to the console, written by a thread of their own.

Who has something to say appends a row to a list, which is all it costs. The thread comes by ten times a
second, makes lines of what is new, and writes them at once. It ends with close(), with its owner, and
with the interpreter; none is lost then. A forked child has the rows and writes no lines.
"""
import itertools
import logging.handlers
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable, List, Optional

from ._words import say, show, words

PAUSE_S = 0.1
BATCH_ROWS = 500  # written at once, so that a file is not much larger than it may be
_logs: "weakref.WeakSet[EventLog]" = weakref.WeakSet()
_logs_lock = threading.RLock()  # held only to change or to copy the set
_serials = itertools.count()
_forking = threading.local()   # .taken: logs whose locks a thread that forks has taken


class EventLog:
    """rows: appended to by others. line_of(row): (ns since 1970, text), texts with several lines too."""

    def __init__(self, rows: List[Any], line_of: Callable[[Any], Any], name: str, path: Optional[str],
                 console: bool, max_bytes: int, backups: int):
        self._rows, self._line_of, self._name, self._console = rows, line_of, name, console
        self._n_written = 0
        self._second, self._second_text = -1, ""
        #: Held while rows are written or dropped; a fork waits for it, and the child has a new one.
        self.lock = threading.RLock()
        self._pid, self.serial = os.getpid(), next(_serials)
        self._ended = threading.Event()
        self._max_bytes, self._n_bytes = max_bytes, 0
        self._file = None
        if path is not None:
            self._file = logging.handlers.RotatingFileHandler(path, backupCount=backups, encoding="utf-8",
                                                              errors="replace")
        self._thread: Optional[threading.Thread] = None
        if self._file is not None or console:
            self._thread = threading.Thread(target=self._write_on, name="tidemark-log", daemon=True)
        with _logs_lock:  # before the thread is there: a fork from now on finds it
            _logs.add(self)
        if self._thread is not None:
            self._thread.start()

    def _write_on(self) -> None:
        while not self._ended.wait(PAUSE_S):
            self.flush()

    def _stamp(self, time_ns: int) -> str:
        second = time_ns // 1_000_000_000
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return self._second_text

    def write(self, time_ns: int, text: str, level: str = "INFO") -> None:
        """A line that is no row, after all rows so far."""
        if self._is_anothers():
            return
        with self.lock:
            self.flush()
            self._put(self._lines(time_ns, text, level))

    def flush(self) -> None:
        """Write what has come since."""
        if self._is_anothers():
            return
        with self.lock:
            end = len(self._rows)
            if self._file is None and not self._console:
                self._n_written = end
            while self._n_written < end:
                rows = self._rows[self._n_written:min(self._n_written + BATCH_ROWS, end)]
                self._n_written += len(rows)
                self._put("".join(map(self._row_lines, rows)))

    def drop(self, n: int) -> List[Any]:
        """Take the oldest n rows out of the list, once they are written; they are returned."""
        with self.lock:
            self.flush()
            dropped = self._rows[:n]
            del self._rows[:n]
            self._n_written = max(0, self._n_written - n)
            return dropped

    def _row_lines(self, row: Any) -> str:
        try:
            return self._lines(*self._line_of(row))
        except Exception as reason:  # one row's fault is not the others'
            return self._lines(time.time_ns(), words(f"a line could not be made: {reason!r}", f"无法生成日志行: {reason!r}"))

    def _lines(self, time_ns: int, text: str, level: str = "INFO") -> str:
        head = f"{self._stamp(time_ns)} - {self._name} - {level} - "
        return head + text.replace("\n", "\n" + head) + "\n"

    def _put(self, text: str) -> None:
        try:
            if self._console:
                show(text, sys.stderr)
        except Exception:  # what stands in stderr's place may raise anything; the file is still there
            self._console = False
        if self._file is None:
            return
        try:
            n_bytes = len(text.encode("utf-8", "replace"))
            if self._n_bytes > 0 and self._n_bytes + n_bytes > self._max_bytes:
                self._file.doRollover()
                self._n_bytes = 0
            self._n_bytes += n_bytes
            self._file.stream.write(text)
            self._file.stream.flush()
        except (OSError, ValueError) as reason:  # the training goes on without
            self._file = None
            say(logging.WARNING, words(f"the log is no longer written: {reason}", f"日志停止写入: {reason}"))

    def _is_anothers(self) -> bool:
        """This is a forked child: neither the thread nor who holds the lock is here."""
        return self._pid != os.getpid()

    def close(self) -> None:
        """Write what is left and end. May be called again."""
        if self._is_anothers():
            self.forget()
            return
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        if self._thread is None and self._file is None:
            return
        self._thread = None
        self.flush()
        if self._file is not None:
            self._file.close()
        self._file, self._console = None, False

    def forget(self) -> None:
        """In a forked child, whose parent's log it is: let go of everything, and write nothing."""
        self.lock, self._thread, self._file, self._console = threading.RLock(), None, None, False
        self._ended = threading.Event()  # the old one's lock may have been the thread's
        self._ended.set()


def _all_logs() -> List[EventLog]:
    """In the same order for all who fork at once: nobody waits for who waits for them."""
    return sorted(_logs, key=lambda log: log.serial)


def _before_fork() -> None:
    _forking.taken = []
    with _logs_lock:
        logs = _all_logs()
    for log in logs:
        log.lock.acquire()  # no line is half written in what the child gets
        _forking.taken.append(log)


def _after_fork() -> None:
    while _forking.taken:  # not those that another thread has made meanwhile
        _forking.taken.pop().lock.release()


def _in_child() -> None:
    global _logs_lock
    _logs_lock = threading.RLock()
    _forking.taken = []
    for log in _all_logs():
        log.forget()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
