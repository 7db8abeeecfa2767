#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: S4's two sweeps of a Llama with transformers and peft, and whether what they say is true.

    tests/gpu/check_sweep.py TIDEMARK OUT

The components of each configuration against the peak that torch itself counted; the fit against configurations left
out; "the largest that fits" tried on a card made smaller, for each sequence length, and one more; the built-in DP-SGD
against opacus, where that is installed; FSDP around frozen weights. Configurations run several at once (what torch
allocates is each process's own), so that all is done within eight minutes. Writes each check with its figures to OUT/check_sweep.json and files and
pictures of both sweeps to OUT/sweep.tar.gz, exit 1 when one fails. Without a GPU the CPU stands in with a tiny model,
which checks this script."""
import ctypes.util
import json
import os
import subprocess
import sys
import tarfile
import time

from check_diff import package_environment
from checks import Checks, command_line

N_AT_ONCE = max(2, min(12, len(os.sched_getaffinity(0)) - 2))
HAS_PANGO = ctypes.util.find_library("pangocairo-1.0") is not None  # else pictures are drawn later, of what is packed
MOST_PACKED = 6 << 20  # bytes of a trace
MOST_MISSING = 0.01   # of the peak, in the table of components; and of blocks that nobody can name
LOSS_BYTES = 16       # a logit: in fp32, its log-softmax, the gradient of each, copies in the model's own type
MOST_LEFT_OUT = 0.05  # median error of configurations left out
SHAPE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 1024,
         "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4,
         "vocab_size": 32000, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 4096,
         "tie_word_embeddings": False}
BASE = "--seq_lengths 128 256 512 --batch_sizes 8 16 32 --max_physical_batch_sizes 1 2 4 --lora_ranks 8 16 " \
       "--num_steps 5"
DETAILED = "--detailed --seq_lengths 128 256 --batch_sizes 8 16 --max_physical_batch_sizes 1 2 --num_steps 3"
TINY_SHAPE = {"hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "vocab_size": 512}
TINY = "--seq_lengths 32 64 --batch_sizes 4 8 --max_physical_batch_sizes 1 2 --lora_ranks 4 8 --num_steps 2"
TINY_DETAILED = "--detailed --seq_lengths 32 --batch_sizes 4 --max_physical_batch_sizes 1 2 --num_steps 2"
FILES = {False: ["memory_profile_results.json", "memory_profile_summary.csv", "memory_analysis_overview.png",
                 "memory_heatmap.png", "index.html"],
         True: ["detailed_memory_results.json", "detailed_memory_analysis.png", "operation_level_breakdown.png"]}

# One rank, so nothing is spread; but all that FSDP does to a model and its layers is done. The model is made on the
# CPU: before it is wrapped nothing is on the GPU, while it is wrapped never more than the model and two of its parts.
FSDP = """
import json, os, sys, tempfile, torch
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0",
                  TIDEMARK_RANKS_MEET=os.path.join(tempfile.mkdtemp(), "meeting"))
from tidemark import _ranks
from tidemark.lora_training import Hooks, LoraConfig, run
from tidemark.sweep_training import Engine
device = torch.device("cuda", 0)
config = LoraConfig(precision="bf16", num_steps=3, batch_size=4, max_physical_batch_size=2, learning_rate=0.01,
                    num_hidden_layers=16, hidden_size=1024, intermediate_size=2816)
losses, wrapped = {}, {}
for kind in ("off", "builtin"):
    for name in ("fsdp", "plain"):
        def wrap(model, config):
            if name == "plain":  # made on the CPU too, so that random weights are the same
                return model.to(device)
            if not torch.distributed.is_initialized():
                _ranks.join(device)
            sizes = [sum(p.nbytes for p in layer.parameters()) for layer in model.model.layers]
            whole = sum(p.nbytes for p in model.parameters())
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            shared = _ranks.shared_model(model, "fsdp", True, device)
            wrapped[kind] = {"before": before, "peak": torch.cuda.max_memory_allocated() - before, "whole": whole,
                             "largest_part": max(max(sizes), whole - sum(sizes))}
            return shared
        hooks = Hooks(wrap=wrap, made_on="cpu")
        if kind == "builtin":
            engine = Engine("builtin", 0.5, 0.0)
            hooks.privacy, hooks.after_backward, hooks.weighs_loss = engine.set_up, engine.after_backward, False
        losses[name, kind] = run(config, hooks=hooks).losses
_ranks.leave()
print(json.dumps({"plain": [losses["plain", kind] for kind in ("off", "builtin")],
                  "fsdp": [losses["fsdp", kind] for kind in ("off", "builtin")], "wrapped": wrapped}))
"""


def has_gpu():
    done = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"], text=True,
                          stdout=subprocess.PIPE, check=True)
    return done.stdout.strip() == "True"


class Sweeps:
    def __init__(self, tidemark, out, is_gpu):
        self.tidemark, self.out, self.is_gpu = tidemark, out, is_gpu
        self.vocabulary = (SHAPE if is_gpu else TINY_SHAPE)["vocab_size"]
        self.env = {**package_environment(tidemark), "LC_ALL": "C.UTF-8"}
        self.model = os.path.join(out, "llama")
        os.makedirs(self.model, exist_ok=True)
        with open(os.path.join(self.model, "config.json"), "w", encoding="utf-8") as file:
            json.dump({**SHAPE, **({} if is_gpu else TINY_SHAPE)}, file)

    def folder(self, is_detailed):
        return os.path.join(self.out, "detailed_results" if is_detailed else "memory_results")

    def run(self, is_detailed):
        """S4's command; its status and the seconds that it took."""
        words = {(True, False): BASE, (True, True): DETAILED, (False, False): TINY, (False, True): TINY_DETAILED}[
            self.is_gpu, is_detailed]
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "tidemark.sweep", "--token", "hf_notarealtoken", "--model_name", self.model,
             *words.split(), "--results_dir", self.folder(is_detailed), "--jobs", str(N_AT_ONCE), "--timeout", "200s"],
            env=self.env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
        print(done.stderr[-3000:], done.stdout[-9000:], sep="\n", flush=True)
        return done.returncode, time.monotonic() - start

    def results(self, is_detailed=False):
        with open(os.path.join(self.folder(is_detailed), "memory_profile_results.json"), encoding="utf-8") as file:
            return json.load(file)

    def ask(self, capacity):
        """What fits on such a card, of the sweep that has ended."""
        subprocess.run([self.tidemark, "sweep", "--resume", self.folder(False), "--capacity", str(capacity),
                        "--no-pictures"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=200, check=True)
        return self.results()

    def training(self, *words):
        return subprocess.Popen(
            [sys.executable, "-m", "tidemark.sweep_training", "--model_name", self.model, "--precision",
             "bf16" if self.is_gpu else "fp32", "--num_steps", "2", *map(str, words)],
            env={**self.env, "TIDEMARK_OFF": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_files(checks, sweeps, is_detailed, status, seconds):
    name = "detailed" if is_detailed else "base"
    folder = sweeps.folder(is_detailed)
    missing = [file for file in FILES[is_detailed] if not os.path.exists(os.path.join(folder, file)) and
               (HAS_PANGO or not file.endswith(".png"))]
    checks.add(f"{name}: runs to the end with all files", status == 0 and not missing, status=status, missing=missing,
               seconds=round(seconds, 1), has_pango=HAS_PANGO)
    found = sweeps.results(is_detailed)
    done = [cell for cell in found["results"] if cell["outcome"] == "done"]
    checks.add(f"{name}: all configurations are done", len(done) == len(found["results"]), counts=found["counts"])
    leaked = subprocess.run(["grep", "-rlF", "hf_notarealtoken", folder], stdout=subprocess.PIPE, text=True,
                            check=False)
    checks.add(f"{name}: the token is in no file", leaked.stdout == "", files=leaked.stdout.split())
    return done


def torch_peak(sweeps, is_detailed, cell):
    """What the training itself had from torch.cuda.max_memory_allocated(); on the CPU, where torch does not count,
    from the library in its process."""
    with open(os.path.join(sweeps.folder(is_detailed), cell["log"]), encoding="utf-8") as file:
        told = json.loads([line for line in file if line.startswith("{")][-1])
    return told["torch_max_allocated" if sweeps.is_gpu else "max_allocated"]


def check_components(checks, sweeps, is_detailed, done):
    """Against torch's count: what the table's lines add up to, without 'unknown', which would make any sum right.
    'other' is what no layer owns; that is the loss, which is as large as its logits are many."""
    name = "detailed" if is_detailed else "base"
    rows = []
    for cell in done:
        peak, parts = torch_peak(sweeps, is_detailed, cell), cell["by_component"]
        named = sum(size for part, size in parts.items() if part != "unknown")
        logits = int(cell["config"]["max_physical_batch_size"]) * int(cell["config"]["seq_length"]) * sweeps.vocabulary
        rows.append({"config": cell["config"], "torch": peak, "peak": abs(cell["peak_allocated"] / peak - 1),
                     "named": abs(named / peak - 1), "unknown": cell["by_category"].get("unknown", 0) / peak,
                     "other": parts.get("other", 0), "loss": LOSS_BYTES * logits, "by_component": parts})
    for key, text in (("peak", "peaks are those of torch"), ("named", "components add up to torch's peak"),
                      ("unknown", "next to nothing is of unknown category")):
        worst = max(rows, key=lambda row: row[key])
        checks.add(f"{name}: {text}", worst[key] <= MOST_MISSING, worst=worst)
    worst = max(rows, key=lambda row: row["other"] - row["loss"])
    checks.add(f"{name}: 'other' is not more than the loss", worst["other"] <= worst["loss"] + MOST_MISSING *
               worst["torch"], worst=worst)


def check_fit(checks, sweeps):
    fit = sweeps.results()["fit"]
    for of in ("allocated", "reserved") if sweeps.is_gpu else ("allocated",):
        median = fit[of]["left_out_median"] if fit[of] else None
        checks.add(f"fit of {of}: configurations left out", median is not None and median <= MOST_LEFT_OUT,
                   median=median, worst=fit[of] and fit[of]["left_out_worst"], terms=fit[of] and fit[of]["terms"])


def fits_into(sweeps, room, process):
    """A GPU's allocator was told; of the CPU's memory the training says what it took."""
    out, said = process.communicate(timeout=300)
    if sweeps.is_gpu and process.returncode != 0:
        return False if "out of memory" in said else None, said[-600:]
    told = json.loads(out) if process.returncode == 0 else {"max_allocated": None}
    return sweeps.is_gpu or told["max_allocated"] <= room, said[-600:]


def check_largest(checks, sweeps, done):
    """On a card half as large again as the largest configuration needed, for each sequence length: what is said to fit
    for sure does, one more than is said to be possible does not. What else is on the card is not known with several
    at once, and so is not to be in the answer."""
    key = "peak_reserved" if sweeps.is_gpu else "peak_allocated"
    room = int(1.5 * max(cell[key] for cell in done))
    found = sweeps.ask(room)
    checks.add("largest that fits: no overhead is made up", found["device_overhead"] is None,
               device_overhead=found["device_overhead"])
    limits = {int(limit["config"]["seq_length"]): limit for limit in found["largest_that_fits"]
              if limit["parameter"] == "max_physical_batch_size" and limit["capacity"] == room and limit["value"]}
    lengths = sorted({int(cell["config"]["seq_length"]) for cell in done})
    checks.add("largest that fits: an answer for each sequence length", sorted(limits) == lengths,
               limits=found["largest_that_fits"][:12])
    tried = {}
    for length, limit in limits.items():
        given = ["--seq_length", length, "--lora_rank", int(limit["config"].get("lora_rank", 8)),
                 *(["--limit_memory", room] if sweeps.is_gpu else [])]
        for n in (int(limit["value"]), int(limit["possible"]) + 1):
            tried[length, n] = sweeps.training(*given, "--batch_size", n, "--max_physical_batch_size", n)
    for (length, n), process in tried.items():
        is_so, said = fits_into(sweeps, room, process)
        wanted = n == int(limits[length]["value"])
        checks.add(f"largest that fits: {length} tokens, {n} {'fit' if wanted else 'do not fit'}", is_so is wanted, n=n,
                   limit=limits[length], room=room, said=said)


def is_alike(some, others):
    """Losses of the same steps. Attention's backward adds up in any order on a GPU, and Adam makes much of little."""
    return all(abs(a - b) < 1e-2 for one, other in zip(some, others) for a, b in zip(one, other))


def check_engines(checks, sweeps):
    """The same steps by both engines, without noise."""
    words = ["--batch_size", "8", "--max_physical_batch_size", "3", "--noise_multiplier", "0",
             "--max_grad_norm", "0.01", "--learning_rate", "0.01", "--seq_length", "64", "--privacy"]
    running = {kind: sweeps.training(*words, kind) for kind in ("builtin", "opacus")}
    said = {kind: process.communicate(timeout=300) for kind, process in running.items()}
    losses = {kind: json.loads(out)["losses"] if running[kind].returncode == 0 else None
              for kind, (out, _) in said.items()}
    if "opacus is not installed" in said["opacus"][1]:
        checks.add("DP-SGD: built-in (opacus is not installed)", losses["builtin"] is not None, losses=losses,
                   said=said["builtin"][1][-600:])
        return
    checks.add("DP-SGD: built-in and opacus alike", all(losses.values()) and
               is_alike([losses["builtin"]], [losses["opacus"]]), losses=losses,
               said=said["opacus"][1][-600:])


def check_fsdp(checks, sweeps):
    if not sweeps.is_gpu:
        return
    done = subprocess.run([sys.executable, "-c", FSDP], env={**sweeps.env, "TIDEMARK_OFF": "1"}, capture_output=True,
                          text=True, timeout=300, check=False)
    found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
    checks.add("FSDP: losses alike", found is not None and is_alike(found["plain"], found["fsdp"]), found=found,
               said=done.stderr[-1500:])
    checks.add("FSDP: the model comes to the GPU part by part", found is not None and all(
        one["peak"] <= one["whole"] + 2 * one["largest_part"] + (16 << 20) for one in found["wrapped"].values()) and
        found["wrapped"]["off"]["before"] < 16 << 20, wrapped=found and found["wrapped"])


def largest_run(folder):
    """The trace of the configuration with the largest peak, where it is not too large; relative to the folder."""
    try:
        with open(os.path.join(folder, "memory_profile_results.json"), encoding="utf-8") as file:
            cells = [cell for cell in json.load(file)["results"] if cell["run"] and cell["peak_allocated"]]
    except OSError:
        return None
    run = max(cells, key=lambda cell: cell["peak_allocated"])["run"] if cells else None
    path = os.path.join(folder, run or "nowhere")
    size = sum(entry.stat().st_size for entry in os.scandir(path)) if os.path.isdir(path) else 0
    return run if 0 < size <= MOST_PACKED else None


def pack(sweeps):
    with tarfile.open(os.path.join(sweeps.out, "sweep.tar.gz"), "w:gz") as tar:
        for is_detailed in (False, True):
            folder = sweeps.folder(is_detailed)
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
                run = largest_run(folder) if name == "runs" else name
                if run is not None:
                    tar.add(os.path.join(folder, run), os.path.join(os.path.basename(folder), run))


def main():
    tidemark, out, _ = command_line(__doc__, needs_gpu=False)
    sweeps = Sweeps(tidemark, out, has_gpu())
    checks = Checks()
    try:
        done = check_files(checks, sweeps, False, *sweeps.run(False))
        check_components(checks, sweeps, False, done)
        check_fit(checks, sweeps)
        check_components(checks, sweeps, True, check_files(checks, sweeps, True, *sweeps.run(True)))
        check_largest(checks, sweeps, done)
        check_engines(checks, sweeps)
        check_fsdp(checks, sweeps)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as reason:
        checks.add("sweep: it runs to the end", False, why=str(reason)[-1500:])
    finally:
        pack(sweeps)
        checks.save(sweeps.out, "check_sweep")
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
