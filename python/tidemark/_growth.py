# SPDX-License-Identifier: MIT
"""Does a series grow, as with a leak, or does it only go up and down?

The rule by which the program judges devices: each value counts as the lowest from there on (its floor), the last one as
the lowest of the last ninth, or of the last two. It grows when the floor rises in each third of the series by a tenth of
the whole or more. So neither a swing, nor one step up, nor a rise that has ended or has only begun counts.
"""
from typing import Sequence


def steady_rise(series: Sequence[float]) -> float:
    """By how much the floor rises from the first to the last, if it rises by that rule; else 0."""
    n = len(series)
    if n < 4:
        return 0
    floors = list(series)
    end = n - max(2, n // 9)
    floors[end:] = [min(floors[end:])] * (n - end)
    for i in range(end - 1, -1, -1):
        floors[i] = min(floors[i], floors[i + 1])
    bounds = [floors[(n - 1) * third // 3] for third in range(4)]
    growth = bounds[3] - bounds[0]
    return growth if all(b - a >= growth / 10 for a, b in zip(bounds, bounds[1:])) else 0
