# SPDX-License-Identifier: MIT
"""How many objects of which type Python's collector knows: one look, in the process itself.

The package calls it, and `tidemark leak PID` has this very text run in the process that it looks at, so neither
backslashes nor three apostrophes may stand in it, and nothing that Python 3.6 does not know.

A list of everything must be gone before another thread of Python's may run: a tensor that one lets go of
meanwhile is told to be in use, and torch warns, which under -W error ends the job. Between two instructions
of Python's, and after each call, another thread may run. So the list is made, gone through and dropped within
a single call of C's, which starmap() begins and chain() ends; of each object its type alone is kept, and
type() of one argument runs nobody's code. Types are told apart by their addresses, since their own hash may be
anybody's code.
"""
import collections
import gc
import itertools
import time


def count_types():
    """(milliseconds of a core that it took, objects, {"module.Class": objects of it}).

    >>> count_types()[2]["dict"] > 0
    True
    """
    start = time.thread_time()
    things = itertools.chain.from_iterable(itertools.starmap(gc.get_objects, [()]))
    types = list(map(type, things))
    numbers = collections.Counter(map(id, types))
    kinds = dict(zip(map(id, types), types))
    total = len(types)
    del types
    spent = time.thread_time() - start
    counts = {}
    for number, kind in kinds.items():
        name = str(kind.__module__) + "." + str(kind.__qualname__)
        name = name.split(chr(10))[0][:200].replace("builtins.", "")
        counts[name] = counts.get(name, 0) + numbers[number]
    return spent * 1e3, total, counts


def print_counts():
    """For `tidemark leak PID`: cost and number of objects, then a number and a type in each line."""
    cost_ms, total, counts = count_types()
    print("%.3f %d" % (cost_ms, total))
    for name, count in counts.items():
        print(count, name)
