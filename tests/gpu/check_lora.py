#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: LoRA trainings and the tools that look at them, against torch's own numbers.

    tests/gpu/check_lora.py TIDEMARK OUT

Each precision; our Llama against transformers'; peft's adapters, where both are installed; an OOM that is survived;
what the checks of values and gradients cost; peaks of stages, of windows that overlap, between checkpoints and in
reports, with libtidemark's count and, with TIDEMARK_OFF, with torch's. (The examples and commands are check_python.py's
and check_seeds.py's.) Writes each check to OUT/check_lora.json, exit 1 when one fails."""
import json
import os
import subprocess
import sys
from pathlib import Path

import torch

from checks import Checks, command_line, need_gpu

HERE = os.path.dirname(os.path.abspath(__file__))

PRECISIONS = """
import json, math, tidemark, torch
from tidemark import debug_lora_training
found = []
for precision in ("fp32", "bf16", "fp16"):
    for more in ({}, {"gradient_checkpointing": True}):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        _, results = debug_lora_training({"num_steps": 3, "max_physical_batch_size": 4, **more}, precision=precision)
        peak = torch.cuda.max_memory_allocated() - before
        found.append({"check": f"{precision} {more}: peak is torch's, losses are numbers, nothing is wrong",
                      "ok": results["peak_mb"] * 1048576 == peak and results["precision_used"] == precision and
                            all(map(math.isfinite, results["losses"])) and results["memory_issues"] == [],
                      "peak": peak, "losses": results["losses"], "issues": results["memory_issues"]})
        del _, results
        torch.cuda.empty_cache()
print(json.dumps(found))
"""

TRANSFORMERS = """
import importlib.util, json, os, sys, tidemark, torch
if importlib.util.find_spec("transformers") is None:
    print(json.dumps([{"check": "our Llama against transformers'", "skipped": "transformers is not installed"}]))
    sys.exit()
import transformers
from tidemark._llama import LlamaForCausalLM
from tidemark.lora_training import LoraConfig, build_model, run
config = LoraConfig(num_hidden_layers=2, device="cuda:0")
shape = transformers.LlamaConfig(**{key: getattr(config, key) for key in (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size",
    "rms_norm_eps", "rope_theta")}, tie_word_embeddings=False)
ours, theirs = LlamaForCausalLM(config, device="cuda"), transformers.LlamaForCausalLM(shape).to("cuda")
missing = theirs.load_state_dict(ours.state_dict(), strict=False)
ids = torch.randint(config.vocab_size, (3, 40), device="cuda")
with torch.no_grad():
    a, b = ours(ids, labels=ids), theirs(input_ids=ids, labels=ids)
found = [{"check": "our Llama computes what transformers' does",
          "ok": not missing.unexpected_keys and torch.allclose(a.logits, b.logits, atol=1e-4) and
                abs(float(a.loss) - float(b.loss)) < 1e-4,
          "difference": float((a.logits - b.logits).abs().max()), "missing": missing.missing_keys}]
shape.save_pretrained("folder")
for precision in ("fp32", "bf16"):
    trained = run(config.with_({"model_name": "folder", "precision": precision, "num_steps": 2}))
    names = [name for name, p in trained.model.named_parameters() if p.requires_grad]
    n = sum(p.numel() for p in trained.model.parameters() if p.requires_grad)
    found.append({"check": f"transformers' model of a folder, adapters, {precision}",
                  "ok": n == 2 * 8 * 896 and all("lora_" in name for name in names), "names": names[:2],
                  "losses": trained.losses, "class": type(trained.model).__name__})
print(json.dumps(found))
"""

OOM = """
import json, tidemark, torch
from tidemark import debug_memory_with_different_configs
big = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 400, "num_attention_heads": 64}
before = torch.cuda.memory_allocated()
results = debug_memory_with_different_configs({"precision": "bf16"}, {"huge": big, "r8": {"r": 8}, "r64": {"r": 64}})
print(json.dumps([{"check": "an OOM is survived, and all is given back",
                   "ok": "out of memory" in (results["huge"]["error"] or "") and
                         results["r8"]["memory_mb"] < results["r64"]["memory_mb"] and
                         torch.cuda.memory_allocated() == before,
                   "sizes": [results[n]["memory_mb"] for n in ("r8", "r64")], "error": results["huge"]["error"]}]))
"""

COST = """
import json, time, tidemark, torch
from tidemark import analyze_model, check_gradients
model = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(1310720, device="cuda")) for _ in range(200))
for p in model:
    p.grad = torch.ones_like(p)
def best_ms(function):
    spent = []
    for _ in range(10):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - start)
    return min(spent) * 1e3
plain = best_ms(lambda: analyze_model(model, check_values=False))
flat = torch.ones(200 * 1310720, device="cuda")
gradients, values = best_ms(lambda: check_gradients(model)), best_ms(lambda: analyze_model(model)) - plain
to_host = best_ms(flat.cpu)
def extra_bytes(function):
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    function()
    return torch.cuda.max_memory_allocated() - before
taken = [extra_bytes(lambda: check_gradients(model)), extra_bytes(lambda: analyze_model(model))]
print(json.dumps([{"check": "checks of 1 GB in 200 tensors (ms) cost less than a copy to the host",
                   "ok": max(gradients, values) < to_host, "gradients": gradients, "values": values,
                   "sum": best_ms(flat.sum), "to_host": to_host},
                  {"check": "checks of fp32 take no copy of a tensor on the device", "ok": max(taken) < 1310720 * 4,
                   "taken": taken}]))
"""


# What a window says beside torch's own peak of the same time, which each of these begins anew.
PEAKS = """
import json, os, re, tidemark, torch
from tidemark import create_memory_debugger, debug_lora_training, memory_profiled_training
IS_OFF, found, MIB = os.environ.get("TIDEMARK_OFF") == "1", [], 1 << 20
def tell(what, ok, **figures):
    found.append({"check": ("TIDEMARK_OFF: " if IS_OFF else "") + what, "ok": bool(ok), **figures})
def make(n):
    return torch.empty(n * MIB, dtype=torch.uint8, device="cuda")
kept = [make(30)]
with memory_profiled_training() as profiler:
    right = {}
    def measured(name, function):
        torch.cuda.reset_peak_memory_stats()
        profiler.profile_stage(name, function)
        right[name] = torch.cuda.max_memory_allocated()
    def goes_back():
        make(200)
        torch.cuda.empty_cache()
    for name, function in (("bulk", lambda: kept.append(make(64))), ("passes", lambda: (make(128), None)[1]),
                           ("goes back", goes_back), ("nothing", lambda: None)):
        measured(name, function)
    def inside():
        make(40)
        profiler.profile_stage("small", make, 20)
        profiler.profile_stage("large", make, 300)
        make(22)
    torch.cuda.reset_peak_memory_stats()
    profiler.profile_stage("outside", inside)
    report = profiler.generate_training_report()
peaks, base = {s["name"]: s["gpu_changes"][0]["peak"] for s in report["stages"]}, torch.cuda.memory_allocated()
tell("peaks of stages are torch's", {name: peaks[name] for name in right} == right, found=peaks, torch=right)
tell("stages within a stage have their own", [peaks[name] - base for name in ("small", "large", "outside")] ==
     [20 * MIB, 300 * MIB, 300 * MIB], found=peaks, base=base)
tell("torch's own peak is left alone where libtidemark counts", IS_OFF or
     torch.cuda.max_memory_allocated() == peaks["outside"], torch=torch.cuda.max_memory_allocated())
debugger = create_memory_debugger(log_dir="logs")
debugger.create_memory_checkpoint("start")
torch.cuda.reset_peak_memory_stats()
make(500)
between = torch.cuda.max_memory_allocated()
entry = debugger.create_memory_checkpoint("end")["gpu_memory"][0]
tell("so is the peak between two checkpoints", entry["peak_since_mb"] * MIB == between, found=entry, torch=between)
held = make(400)
debugger.create_memory_checkpoint("held")
del held
debugger.create_memory_checkpoint("after")
text = debugger.generate_memory_report()
tell("the report has the peak, and an alarm that is over", f"  GPU 0  {between / MIB:.1f}MB; " in text and
     re.search(r"GPU 0 grew suddenly: [+]400[.]0MB > 100[.]0MB", text) and debugger.issues == [], text=text)
tell("so has the log", "GPU 0 grew suddenly" in open(debugger.log_file).read())
torch.cuda.empty_cache()
before = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
_, results = debug_lora_training({"num_steps": 3}, precision="bf16")
peak, stages = torch.cuda.max_memory_allocated(), results["stages"]
tell("the largest peak of a training's stages is the training's", stages["peak_stage"] == "training" and
     stages["peak_mb"] * MIB == peak and results["peak_mb"] * MIB == peak - before, stages=stages["peak_mb"] * MIB,
     found=results["peak_mb"] * MIB, torch=peak)
print(json.dumps(found))
"""


def python(tidemark, work, name, source, **variables):
    """Watched, in a folder of its own; with TIDEMARK_OFF not watched."""
    folder = Path(work, name)
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": os.path.join(HERE, "..", "..", "python"), **variables}
    front = [] if variables else [tidemark, "run", "--quiet", "-o", str(folder / "run.tmk"), "--"]
    return subprocess.run([*front, sys.executable, "-c", source], cwd=folder, env=env, capture_output=True, text=True,
                          timeout=400, check=False)


def add_all(checks, tidemark, work, name, source, **variables):
    done = python(tidemark, work, name, source, **variables)
    if done.returncode != 0:
        checks.add(name, False, error=done.stderr[-2000:])
        return
    for found in json.loads(done.stdout.splitlines()[-1]):
        if "skipped" in found:
            checks.skip(found["check"], found["skipped"])
        else:
            checks.add(found.pop("check"), found.pop("ok"), **found)


def library_beside(tidemark):
    """Of a package or a build folder."""
    folder = Path(tidemark).parent
    return str(next(path for path in (folder / "libtidemark.so", folder.parent / "lib" / "libtidemark.so")
                    if path.exists()))


def main():
    tidemark, out, _ = command_line(__doc__)
    need_gpu(torch.cuda.is_available())  # on a CPU the OOM would be the machine's
    checks = Checks()
    for name, source in (("lora_precisions", PRECISIONS), ("lora_transformers", TRANSFORMERS), ("lora_oom", OOM),
                         ("lora_cost", COST), ("peaks", PEAKS)):
        add_all(checks, tidemark, out, name, source)
    add_all(checks, tidemark, out, "peaks_off", PEAKS, TIDEMARK_OFF="1", TIDEMARK_PROGRAM=tidemark,
            TIDEMARK_LIBRARY=library_beside(tidemark))
    add_all(checks, tidemark, out, "peaks_alone", PEAKS, TIDEMARK_PROGRAM=tidemark, TIDEMARK_LIBRARY=library_beside(tidemark))
    checks.save(out, "check_lora")
    sys.exit(checks.exit_status())


if __name__ == "__main__":
    main()
