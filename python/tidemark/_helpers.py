# SPDX-License-Identifier: MIT
"""How long a thread has waited for helpers of the package: processes that answer a question beside the training.

What is measured between two moments is less what helped_s() has grown by, so that a stage is never charged for them.
"""
import contextlib
import threading
import time
from typing import Iterator


class _Helped(threading.local):
    seconds = 0.0
    depth = 0


_helped = _Helped()


def helped_s() -> float:
    """Seconds that this thread has waited for helpers, since it began.

    >>> helped_s()
    0.0
    """
    return _helped.seconds


@contextlib.contextmanager
def helper() -> Iterator[None]:
    """Around a wait for a helper; one within another counts once.

    >>> with helper():
    ...     subprocess.run(command)
    """
    start = time.monotonic()
    _helped.depth += 1
    try:
        yield
    finally:
        _helped.depth -= 1
        if _helped.depth == 0:
            _helped.seconds += time.monotonic() - start
