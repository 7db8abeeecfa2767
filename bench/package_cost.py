#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""package_cost.py - what calls of the Python package cost. Run it watched:

    PYTHONPATH=python tidemark run -o p.tmk -- python3 bench/package_cost.py [--rounds 20]

All is processor time. record(): of the thread that calls it, in a loop, best and median round; of the thread
that writes the log, a line. Monitors: of this process while a MemoryDebugger reads along at 0.1 s. NaN check:
analyze_model with and without it, over a model of 256 MB in 200 parameters; beside it one sum over the same
memory. Gradient check: check_gradients over as much. Prints one JSON object.
"""
import argparse
import gc
import json
import logging
import statistics
import tempfile
import time

import tidemark
import torch

CALLS, MONITORED_S = 20000, 5.0


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


def monitor_cost():
    debugger = tidemark.MemoryDebugger(threshold=100.0)
    debugger.start_monitoring()
    debugger.get_status_report()
    start = time.process_time()
    time.sleep(MONITORED_S)
    spent = time.process_time() - start
    debugger.stop_monitoring()
    return 100 * spent / MONITORED_S


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
    print(json.dumps({"record": record_cost(options.rounds), "monitor_percent": monitor_cost(), **check_cost()}))


main()
