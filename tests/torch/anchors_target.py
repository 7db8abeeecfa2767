# SPDX-License-Identifier: MIT
"""Called by test_anchors.py, and by tests/gpu/check_frames.py: reports blocks from within calls of torch's modules,
called in every way that there is, and prints what its own traceback was at each.

While a module is called the recorder looks only at the frames above that call (record/python/pyknown.h)."""
import contextlib
import functools
import itertools
import json
import random
import threading

import frames_site
import torch
from torch import nn

FIRST = 1_000_003  # sizes of our blocks: torch's own are multiples of four
numbers = itertools.count(FIRST, 4)
chance = random.Random(7)


def site():
    frames_site.site(next(numbers))


class Plain(nn.Module):
    def forward(self, n=1, **more):
        for _ in range(n):
            site()
        if more:
            site()
        return n


class Around(nn.Module):
    """Calls others, from several lines and by several ways."""

    def __init__(self, *inner):
        super().__init__()
        self.inner = nn.ModuleList(inner)

    def forward(self, *arguments, **more):
        site()
        for module in self.inner:
            module(2)
            site(); module(1, more=1)
        list(map(self.inner[0], [1, 2]))
        functools.reduce(lambda _, module: module(1), self.inner, None)
        sum(module(1) for module in self.inner)
        sorted(self.inner, key=lambda module: module(1))
        self.again(3)
        site()
        return 1

    def again(self, depth):
        """More frames than are looked at one by one."""
        if depth < 24:
            return self.again(depth + 1)
        site()
        return self.inner[-1](1)


class Raises(nn.Module):
    def forward(self, depth):
        site()
        if depth == 0:
            raise ValueError
        self.inner(depth - 1)


class Generator(nn.Module):
    """Goes on in the middle of another's call."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *_):
        yield self.inner(1)
        site()
        yield self.inner(1)


class Wander(nn.Module):
    """Calls itself and functions, at random."""

    def forward(self, depth):
        if depth == 0 or chance.random() < 0.25:
            site()
        if depth:
            for _ in range(chance.randrange(1, 3)):
                chance.choice([self, self.by_function, self.by_list, lambda n: self(n)])(depth - 1)

    def by_function(self, depth):
        site()
        self(depth)
        site()

    def by_list(self, depth):
        [site() for _ in range(2)]
        return [self(depth) for _ in range(1)]


def ways():
    plain = Plain()
    plain(1)
    around = Around(Plain(), Around(Plain(), Plain()), Plain())
    for _ in range(2):
        around(1, key=2)
        site()
    raises = Raises()
    raises.inner = Raises()
    raises.inner.inner = raises
    for depth in (0, 3):
        with contextlib.suppress(ValueError):
            raises(depth)
        site()
    one, other = Generator(plain)(), Generator(around)()
    for pair in zip(one, other):
        site()
    handle = plain.register_forward_hook(lambda *_: site())
    plain(1)
    handle.remove()
    plain(1)
    deep = plain
    for _ in range(30):
        deep = nn.Sequential(deep)
    deep(2)
    plain(1)


def main():
    nn.Linear(4, 4)(torch.zeros(2, 4)).sum().backward()  # the recorder's ways into calls are in
    ways()
    for _ in range(8):
        Wander()(7)
    threads = [threading.Thread(target=ways) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ways()
    print(json.dumps({"stacks": frames_site.stacks}))


main()
