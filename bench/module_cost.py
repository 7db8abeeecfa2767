#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""module_cost.py - what being watched costs the call of a module. Run it watched:

    tidemark run -o m.tmk -- python3 bench/module_cost.py [--rounds 200]

A tree of modules whose forward does nothing but call its children is called with the hooks in torch's
calls and without them, in turn: one under another (deep), and many beside each other (wide), as in a
training, where the stage is open and every module is known. The peer, likewise in turn with nothing:
torch's own global forward hooks, in Python, that do nothing. Prints one JSON object: ns a call without
hooks, and for each kind of hook the ns it adds, mean, median of rounds, and the tenth least and most;
and how many calls were watched, for whoever looks into the trace.
"""
import argparse
import ctypes
import gc
import json
import statistics
import time

import torch
from torch import nn
from torch.nn.modules import module as torch_module

CALLS, WARM = 2000, 20  # modules in a round, about; trees before the first one


class Leaf(nn.Module):
    def forward(self, x):
        return x


class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.inner = Deep(depth - 1) if depth > 1 else Leaf()

    def forward(self, x):
        return self.inner(x)


class Wide(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.parts = nn.ModuleList(Leaf() for _ in range(n))

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Peer:
    """Global hooks that do nothing: what a profiler in Python begins with."""

    def __init__(self):
        self.handles = []

    def switch(self, is_on):
        for handle in self.handles:
            handle.remove()
        self.handles = []
        if is_on:
            self.handles = [
                torch_module.register_module_forward_pre_hook(lambda module, arguments: None),
                torch_module.register_module_forward_hook(lambda module, arguments, result: None)]


def size_of(tree):
    """Calls of modules in one of the tree."""
    return sum(not isinstance(module, nn.ModuleList) for module in tree.modules())


def seconds(tree, x):
    """Of a call of a module, the mean of a round, after some to get warm."""
    tree(x)
    n = CALLS // size_of(tree)
    start = time.perf_counter()
    for _ in range(n):
        tree(x)
    return (time.perf_counter() - start) / n / size_of(tree)


def measure(tree, x, rounds, switch):
    """(ns a call without, ns that a call costs more) of each round."""
    plain, more = [], []
    for i in range(rounds):
        times = {}
        for is_on in ((True, False) if i % 2 else (False, True)):
            switch(is_on)
            times[is_on] = seconds(tree, x) * 1e9
        plain.append(times[False])
        more.append(times[True] - times[False])
    switch(False)
    return plain, more


def figures(more):
    tenths = statistics.quantiles(more, n=10)
    return {"mean_ns": round(statistics.fmean(more), 1), "median_ns": round(statistics.median(more), 1),
            "low_ns": round(tenths[0], 1), "high_ns": round(tenths[-1], 1)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    x, hook, peer = torch.ones(1), ctypes.CDLL(None).tidemark_hook, Peer()
    gc.collect()
    gc.disable()  # its pauses fall on one round or the other
    result = {"torch": torch.__version__, "watched_calls": 0}
    for name, tree in (("deep", Deep(20)), ("wide", Wide(50))):
        hook(1)
        for _ in range(WARM):
            tree(x)
        result["watched_calls"] += size_of(tree) * (WARM + rounds * (1 + CALLS // size_of(tree)))
        plain, more = measure(tree, x, rounds, lambda is_on: hook(int(is_on)))
        _, of_peer = measure(tree, x, rounds, peer.switch)
        result[name] = {"call_ns": round(statistics.median(plain), 1), "tidemark": figures(more),
                        "global forward hooks": figures(of_peer)}
    hook(1)
    print(json.dumps(result))


main()
