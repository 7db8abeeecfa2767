#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch_steps.py - what being watched costs a training step. Run it watched:

    tidemark run -o s.tmk -- python3 bench/torch_steps.py [--workload lora] [--steps 2000] [--device cuda]
    tidemark run --no-modules -o s.tmk -- python3 bench/torch_steps.py --peer-steps 0

One process trains the shape of tests/torch/workloads/encoder.py, or of lora.py. Two steps run with the hooks in torch's
calls (of blocks, modules, backward and optimizers, whichever the run has) and two without them, in turn, so that
whatever drifts (clocks, temperature, what else the machine does) drifts for both: on a shared one step times are alike
for some tens of milliseconds only, and blocks of ten steps tell a third as much in the same time. Going back and forth
is a few stores (record/loader/import_slots.c). Then the peers, likewise in turn with nothing, but by ten steps, with two before them
that are not timed: torch's memory history, torch.profiler with memory. Prints one JSON object: for each the ratio of
mean step times, the 95 % interval of a bootstrap, the same without the tenth of pairs in which a block took longest
(machines have hiccups of their own), the same of the processor's time that the threads which compute took (main and
autograd's: without the time that one waits for the other to wake up), by how much each phase of a step grew, and the
step time itself. --raw writes the times of all pairs to a file.

--against blocks leaves the hooks of blocks and of autograd's nodes in all along, and takes those in calls of
modules, backward and optimizers in and out: what they cost by themselves.

--pin puts the threads that compute, the main one and autograd's, on one core and all others on the
rest: that leaves out the way from one sleeping core to another, several times a step. Whether it makes
the interval narrower is a matter of the machine; on a shared one it did not.
"""
import argparse
import ctypes
import gc
import json
import operator
import os
import random
import statistics
import sys
import time

import torch
from torch import nn

BLOCK, LONG_BLOCK = 2, 10  # steps
GROUPS = 400
PHASES = "forward", "backward", "optimizer", "zero_grad"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", choices=["encoder", "lora"], default="encoder")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=1e9, help="end then, with however many steps there were")
    parser.add_argument("--peer-steps", type=int, default=400)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, help="6; of lora 4")
    parser.add_argument("--dim", type=int, help="256; of lora 512")
    parser.add_argument("--batch", type=int, help="16; of lora 4")
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--against", choices=["nothing", "blocks"], default="nothing",
                        help="blocks: the other half has the hooks of blocks and nodes; the ratio is that of calls")
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("--raw", help="write [on, off, CPU on, CPU off, difference of each phase] of each pair, in "
                                      "seconds, to this file")
    a = parser.parse_args()
    for name, value in zip(("layers", "dim", "batch"), (4, 512, 4) if a.workload == "lora" else (6, 256, 16)):
        setattr(a, name, getattr(a, name) or value)
    return a


def computing_threads():
    """Numbers of the main thread and of autograd's."""
    for task in map(int, os.listdir("/proc/self/task")):
        with open(f"/proc/self/task/{task}/comm", encoding="utf-8") as name:
            if task == os.getpid() or name.read().startswith("pt_autograd"):
                yield task


def cpu_seconds(threads):
    """By the kernel's clock of each thread, whose number is made of the thread's."""
    return sum(time.clock_gettime(~thread << 3 | 6) for thread in threads)


class Training:
    """What the workloads have in common."""

    def __init__(self, a, model):
        self.a, self.model = a, model
        trained = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(trained)
        self.phases = [0] * len(PHASES)  # seconds of each, in this block
        self.threads = []

    def step(self):
        marks = [time.perf_counter()]
        loss = self.loss()
        marks.append(time.perf_counter())
        loss.backward()
        marks.append(time.perf_counter())
        self.optimizer.step()
        marks.append(time.perf_counter())
        self.optimizer.zero_grad(set_to_none=True)
        marks.append(time.perf_counter())
        self.phases = [sum(times) for times in zip(self.phases, map(operator.sub, marks[1:], marks))]

    def sync(self):
        if self.a.device == "cuda":
            torch.cuda.synchronize()

    def warm_up(self):
        for _ in range(60):
            self.step()
        self.sync()
        self.threads = list(computing_threads())

    def block(self, n, n_before=0):
        """Seconds of so many steps, the processor's, and those of each phase."""
        for _ in range(n_before):
            self.step()
        self.sync()
        start_cpu = cpu_seconds(self.threads)
        self.phases = [0] * len(PHASES)
        start = time.perf_counter()
        for _ in range(n):
            self.step()
        self.sync()
        taken = time.perf_counter() - start
        return taken, cpu_seconds(self.threads) - start_cpu, self.phases


class Encoder(Training):
    def __init__(self, a):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(a.dim, 8, a.dim * 4, batch_first=True, dropout=0.1)
        super().__init__(a, nn.TransformerEncoder(layer, a.layers).to(a.device))

    def loss(self):
        y = self.model(torch.randn(self.a.batch, self.a.seq, self.a.dim, device=self.a.device))
        return (y * y).mean()


class Lora(Training):
    def __init__(self, a):
        from peft import LoraConfig, get_peft_model
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        config = LlamaConfig(hidden_size=a.dim, intermediate_size=a.dim * 4, num_hidden_layers=a.layers,
                             num_attention_heads=8, num_key_value_heads=8, vocab_size=8000)
        model = LlamaForCausalLM(config).to(a.device)
        model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
        super().__init__(a, model.train())

    def loss(self):
        tokens = torch.randint(0, 8000, (self.a.batch, self.a.seq), device=self.a.device)
        return self.model(input_ids=tokens, labels=tokens).loss


def pin():
    cores, computing = sorted(os.sched_getaffinity(0)), set(computing_threads())
    for task in map(int, os.listdir("/proc/self/task")):
        os.sched_setaffinity(task, cores[-1:] if task in computing else cores[:-1])


def in_turn(training, n_steps, begin, end, *block):
    """Pairs (with, without, the processor's times of both, and by how much each phase is longer) of blocks; which of
    the two comes first changes."""
    pairs, until = [], time.perf_counter() + training.a.seconds
    for i in range(n_steps // (2 * block[0])):
        if time.perf_counter() > until:
            break
        times = {}
        for on in ((True, False) if i % 2 else (False, True)):
            (begin if on else end)()
            times[on] = training.block(*block)
        pairs.append((times[True][0], times[False][0], times[True][1], times[False][1],
                      *map(operator.sub, times[True][2], times[False][2])))
    end()
    return pairs


def ratio(pairs):
    return sum(p[0] for p in pairs) / sum(p[1] for p in pairs)


def cpu_ratio(pairs):
    return sum(p[2] for p in pairs) / sum(p[3] for p in pairs)


def interval(pairs, of=ratio):
    """95 %, of a bootstrap over some hundred groups of neighbours: what lasts longer than a pair is in one of them."""
    size = -(-len(pairs) // GROUPS)
    groups = [tuple(map(sum, zip(*pairs[i:i + size]))) for i in range(0, len(pairs), size)]
    chance = random.Random(1)
    samples = sorted(of(chance.choices(groups, k=len(groups))) for _ in range(2000))
    return {"ratio": round(of(pairs), 5), "low": round(samples[50], 5), "high": round(samples[1949], 5)}


def phases(pairs, n):
    """What each phase of a step takes longer, in microseconds, and the standard error of that."""
    found = {}
    for i, name in enumerate(PHASES, 4):
        more = [pair[i] / n * 1e6 for pair in pairs]
        found[name] = [round(statistics.mean(more), 1), round(statistics.stdev(more) / len(more) ** 0.5, 1)]
    return found


def figures(pairs, n):
    """Of pairs of blocks of n steps."""
    slow = sorted(max(p[:2]) for p in pairs)[len(pairs) * 9 // 10]
    steady = [p for p in pairs if max(p[:2]) < slow] or pairs
    return {**interval(pairs), "steady": interval(steady),
            "cpu": interval(pairs, cpu_ratio), "phases_us": phases(pairs, n),
            "median_pair": round(sorted(p[0] / p[1] for p in pairs)[len(pairs) // 2], 5),
            "step_ms": round(sum(p[1] for p in pairs) / len(pairs) / n * 1e3, 4),
            "n_steps": 2 * n * len(pairs)}


def peers(training, n_steps):
    result = {}
    record = getattr(torch.cuda.memory, "_record_memory_history", None)
    if training.a.device == "cuda" and record:
        pairs = in_turn(training, n_steps, lambda: record(max_entries=1_000_000), lambda: record(enabled=None),
                        LONG_BLOCK, 2)
        result["torch memory history"] = figures(pairs, LONG_BLOCK)
    profiler = [None]

    def begin():
        if profiler[0] is None:
            profiler[0] = torch.profiler.profile(profile_memory=True)
            profiler[0].__enter__()

    def end():
        if profiler[0] is not None:
            profiler[0].__exit__(None, None, None)
            profiler[0] = None

    pairs = in_turn(training, n_steps // 4, begin, end, LONG_BLOCK, 2)
    result["torch.profiler with memory"] = figures(pairs, LONG_BLOCK)
    return result


def main():
    a = arguments()
    if a.device == "cuda" and not torch.cuda.is_available():
        print("SKIPPED: no GPU")
        sys.exit(77)
    training = {"encoder": Encoder, "lora": Lora}[a.workload](a)
    training.warm_up()
    if a.pin:
        pin()
        training.warm_up()
    gc.collect()
    gc.disable()  # its pauses fall on one block or the other
    process = ctypes.CDLL(None)
    hook = process.tidemark_hook
    hook(0)
    result = {"workload": a.workload, "against": a.against, "torch": torch.__version__, "slots": hook(1)}
    hook(0)
    pairs = in_turn(training, a.steps, lambda: hook(1), lambda: hook(2 if a.against == "blocks" else 0), BLOCK)
    result["tidemark"] = figures(pairs, BLOCK)
    if a.raw:
        with open(a.raw, "w", encoding="ascii") as file:
            json.dump(pairs, file)
    if a.peer_steps:
        result.update(peers(training, a.peer_steps))
    hook(1)
    process.tidemark_record_mark(b"one step", b"")
    training.step()
    training.sync()
    process.tidemark_record_mark(b"end of it", b"")
    print(json.dumps(result))


main()
