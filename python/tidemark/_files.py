# SPDX-License-Identifier: MIT
"""Files that the package writes: each under a name of its own, and whole or not at all.

Reports come from several processes (ranks) into one folder, several within a second. So a name that we make up is taken
by making the file, which only one of them can; and what is written goes to a file beside it first (*.part), which then
takes its place: who reads along sees the old text or the new one.
"""
import itertools
import os
import time
from typing import Optional


def new_file(folder: str, name: str, ending: str, stamp: Optional[str] = None) -> str:
    """Make folder/name_STAMP ending, empty, that nobody else has; its path. Several of one second: _2, _3 and so on.

    >>> new_file("logs", "memory_report", ".txt")
    'logs/memory_report_20261115_184237.txt'
    """
    os.makedirs(folder, exist_ok=True)
    stamp = stamp or time.strftime("%Y%m%d_%H%M%S")
    for serial in itertools.count(1):
        path = os.path.join(folder, f"{name}_{stamp}{'' if serial == 1 else f'_{serial}'}{ending}")
        try:
            with open(path, "x", encoding="utf-8"):
                return path
        except FileExistsError:
            pass
    raise AssertionError("numbers do not end")


def write_file(path: str, text: str) -> None:
    """Make this text all of the file. When it fails, the file is as it was, and nothing is left beside it.

    >>> write_file("custom_report.txt", "all is well")
    """
    for serial in itertools.count():
        part = f"{os.fspath(path)}.{os.getpid()}{f'-{serial}' if serial else ''}.part"
        try:
            file = open(part, "x", encoding="utf-8", errors="replace")
            break
        except FileExistsError:  # another thread's, or one of another machine
            pass
    try:
        with file:
            file.write(text)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def write_new_file(folder: str, name: str, ending: str, text: str, stamp: Optional[str] = None) -> str:
    """new_file() with this text; its path. When it fails, there is none.

    >>> write_new_file("logs", "full", ".json", "{}")
    'logs/full_20261115_184237.json'
    """
    path = new_file(folder, name, ending, stamp)
    try:
        write_file(path, text)
    except BaseException:
        os.unlink(path)
        raise
    return path
