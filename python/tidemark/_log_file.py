# SPDX-License-Identifier: MIT
"""A log in a folder that was asked for: all that the package says, whatever logging is set to, in a file that is rotated.

It stands beside the logging that people set up: who sets up none still sees messages on stderr. Messages below INFO
are in it when the logger `tidemark` lets them through. When it cannot be written that is said, once, and the training
goes on without.
"""
import logging
import logging.handlers
import os
import sys
from typing import Optional

from ._files import new_file
from ._words import listeners, say, show, words

MAX_BYTES, BACKUPS = 10 * 1024 * 1024, 5


class LogFile(logging.handlers.RotatingFileHandler):
    """folder/name_STAMP.log; it listens until close(). A forked child writes nothing to it."""

    def __init__(self, folder: str, name: str, max_bytes: int = MAX_BYTES, backups: int = BACKUPS):
        path = new_file(folder, name, ".log")
        super().__init__(path, maxBytes=max_bytes, backupCount=backups, encoding="utf-8", errors="replace")
        self.path, self._pid = path, os.getpid()
        who = os.path.splitext(os.path.basename(path))[0]
        self.setFormatter(logging.Formatter(f"%(asctime)s - {who} - %(levelname)s - %(message)s", "%Y-%m-%d %H:%M:%S"))
        listeners.append(self)

    def write(self, text: str) -> None:
        """A line for this log alone."""
        self.handle(logging.LogRecord("tidemark", logging.INFO, __file__, 0, text, None, None))

    def emit(self, record: logging.LogRecord) -> None:
        if os.getpid() == self._pid:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """The disk is full, or the folder has gone."""
        self._stop_listening()
        show(words(f"[WARNING] the log is no longer written: {sys.exc_info()[1]}\n",
                   f"[WARNING] 日志停止写入: {sys.exc_info()[1]}\n"), sys.stderr)

    def close(self) -> None:
        self._stop_listening()
        super().close()

    def _stop_listening(self) -> None:
        if self in listeners:
            listeners.remove(self)


def log_in(folder: Optional[str], name: str) -> Optional[LogFile]:
    """One in this folder; None without a folder, or, which is said, where it cannot be made."""
    try:
        return None if folder is None else LogFile(folder, name)
    except OSError as reason:
        say(logging.WARNING, words(f"no log is written: {reason}", f"无法写入日志: {reason}"))
        return None
