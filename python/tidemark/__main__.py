# SPDX-License-Identifier: MIT
"""`python -m tidemark ...` is `tidemark ...`: the same program. So is the command that pip installs."""
import os
import signal
import sys

from ._library import NotFound, program


def _undo_python() -> None:
    """What Python changed when it started, and a watched job would inherit: signals that it ignores, and the locale
    that it puts in the place of C (PEP 538)."""
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        with open("/proc/self/environ", "rb") as file:  # as it was given to us
            given = file.read().split(b"\0")
    except OSError:
        return
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given):
        os.environ.pop("LC_CTYPE", None)


def main() -> None:
    try:
        path = program()
    except NotFound as reason:
        sys.exit(f"tidemark: {reason}")
    _undo_python()
    os.execv(path, ["tidemark", *sys.argv[1:]])


if __name__ == "__main__":
    main()
