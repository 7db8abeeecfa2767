# SPDX-License-Identifier: MIT
"""What the package says, in English, and under zh_CN in Chinese; through the logger `tidemark`."""
import locale
import logging
import os
import sys
import unicodedata
from typing import List, Optional

log = logging.getLogger("tidemark")


def is_chinese() -> bool:
    """True under TIDEMARK_LANG=zh or, without that, under zh_CN, by the variables that decide the language of messages,
    in their order."""
    if os.environ.get("TIDEMARK_LANG"):
        return os.environ["TIDEMARK_LANG"].startswith("zh")
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable, "")
        if value:
            return value.startswith("zh_CN")
    return (locale.getlocale(getattr(locale, "LC_MESSAGES", locale.LC_CTYPE))[0] or "").startswith("zh_CN")


def words(english: str, chinese: str) -> str:
    """Whichever of the two is wanted here."""
    return chinese if is_chinese() else english


#: Handlers that get what is said, whatever logging is set to: files that were asked for (_log_file.py).
listeners: List[logging.Handler] = []


def _tell_listeners(record: logging.LogRecord) -> bool:
    """A filter of the logger, since handlers of its own would be taken for logging that was set up."""
    for listener in list(listeners):
        listener.handle(record)
    return True


log.addFilter(_tell_listeners)


def say(level: int, text: str) -> None:
    """To the logger; where nobody has set up logging, to stderr as `[INFO] text`, from INFO on (the root's level, which
    nobody has set either, is WARNING), unless logging.disable() says not to. To the listeners in any case."""
    is_set_up = log.hasHandlers()
    if is_set_up and log.isEnabledFor(level):
        log.log(level, "%s", text)
        return
    _tell_listeners(log.makeRecord(log.name, level, __file__, 0, "%s", (text,), None))
    if not is_set_up and level >= max(log.level, logging.INFO) and level > log.manager.disable and not log.disabled:
        show(f"[{logging.getLevelName(level)}] {text}\n", sys.stderr)


def show(text: str, stream: Optional[object]) -> None:
    """Write to a stream that may be closed, absent, or unable to show every letter."""
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except UnicodeEncodeError as wrong:
        stream.write(text.encode(wrong.encoding, "backslashreplace").decode(wrong.encoding))
        stream.flush()
    except (OSError, ValueError):  # a terminal that has gone, a closed file
        pass


def width(text: str) -> int:
    """Columns on a terminal: letters of East Asia take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in text)


def padded(text: str, columns: int) -> str:
    """Followed by blanks to that many columns."""
    return text + " " * (columns - width(text))
