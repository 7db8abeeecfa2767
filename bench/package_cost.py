#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""package_cost.py - what calls of the Python package cost. Run it watched:

    PYTHONPATH=python tidemark run -o p.tmk -- python3 bench/package_cost.py [--rounds 20]

All is processor time. record(): of the thread that calls it, in a loop, best and median round; of the thread
that writes the log, a line. Monitors: of this process, and of the one beside it that samples, while a MemoryDebugger
reads along at 0.1 s, without and with snapshots (real time, as many kept as can be); and what it keeps of a device, at
most. NaN check: analyze_model with and without it, over a model of 268 MB in 200 parameters; beside it one sum over the
same memory. Gradient check: check_gradients over as much. Prints one JSON object.
"""
import argparse
import gc
import glob
import json
import logging
import statistics
import tempfile
import time
import tracemalloc

import tidemark
import torch
from tidemark import memory_debugger, quick_memory_debug

CALLS, MONITORED_S = 20000, 10.0


def rounds_us(profiler, n):
    spent = []
    for _ in range(n):
        start = time.thread_time()
        for _ in range(CALLS):
            profiler.record("forward")
        spent.append((time.thread_time() - start) / CALLS * 1e6)
        profiler._rows.clear()
        profiler._log._n_written = 0
    return spent


def record_cost(n):
    with tempfile.TemporaryDirectory() as folder:
        quiet = tidemark.GPUMemoryProfiler(folder, enable_file_logging=False, console=False)
        spent = rounds_us(quiet, n)
        quiet.cleanup()
        profiler = tidemark.GPUMemoryProfiler(folder, console=False)
        for _ in range(CALLS):
            profiler.record("forward")
        start = time.process_time()
        profiler.cleanup()
        line_us = (time.process_time() - start) / CALLS * 1e6
    return {"best_us": min(spent), "median_us": statistics.median(spent), "line_us": line_us}


def cpu_s(pid):
    """Of another process, finer than the kernel's ticks."""
    spent = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as file:
            spent += int(file.read().split()[0])
    return spent / 1e9


def kept_bytes():
    """As much as it can keep: snapshots, and samples for a strategy."""
    debugger = tidemark.MemoryDebugger(strategy=lambda samples: None)
    sample = {"device": "0", "kind": "gpu", "total": 1 << 36, "over_threshold": False, "risk_level": None}
    tracemalloc.start()
    for i in range(memory_debugger.MAX_HISTORY):
        debugger._keep(quick_memory_debug._take("real_time"))
        debugger._on_samples([{**sample, "time_s": i / 10, "allocated": i << 20, "utilization_percent": i / 7}])
    found = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return found


def monitored_percent(debugger):
    """Shares of a core while it monitors: of this process, and of the one beside it; it is stopped then."""
    debugger.get_status_report()
    pid = debugger._follower._process.pid
    start, start_beside = time.process_time(), cpu_s(pid)
    time.sleep(MONITORED_S)
    within, beside = time.process_time() - start, cpu_s(pid) - start_beside
    debugger.stop_monitoring()
    return {"within_percent": 100 * within / MONITORED_S, "beside_percent": 100 * beside / MONITORED_S}


def monitor_cost():
    plain, real_time = tidemark.MemoryDebugger(threshold=100.0), tidemark.MemoryDebugger(threshold=100.0)
    plain.start_monitoring()
    found = monitored_percent(plain)
    real_time.memory_history = [quick_memory_debug._take("real_time") for _ in range(memory_debugger.MAX_HISTORY)]
    real_time.start_real_time_monitoring(0.1)
    return {**found, "kept_bytes": kept_bytes(), "real_time": monitored_percent(real_time)}


def best_s(function, n=5):
    spent = []
    for _ in range(n):
        start = time.process_time()
        function()
        spent.append(time.process_time() - start)
    return min(spent)


def check_cost():
    model = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(335544)) for _ in range(200))
    flat = torch.ones(200 * 335544)
    plain = best_s(lambda: tidemark.analyze_model(model, check_values=False))
    whole = best_s(lambda: tidemark.analyze_model(model))
    for parameter in model:
        parameter.grad = torch.ones_like(parameter)
    gradients = best_s(lambda: tidemark.check_gradients(model))
    return {"check_ms": (whole - plain) * 1e3, "gradient_ms": gradients * 1e3, "sum_ms": best_s(flat.sum) * 1e3}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    logging.getLogger("tidemark").addHandler(logging.NullHandler())
    torch.set_num_threads(1)
    gc.freeze()
    print(json.dumps({"record": record_cost(options.rounds), "monitor": monitor_cost(), **check_cost()}))


main()
