#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: LoRA trainings and the tools that look at them, against torch's own numbers.

    tests/gpu/check_lora.py TIDEMARK OUT

Each precision; our Llama against transformers'; peft's adapters, where both are installed; an OOM that is survived;
what the checks of values and gradients cost. (The examples and commands are check_python.py's.) Writes each check to
OUT/check_lora.json, exit 1 when one fails."""
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


def python(tidemark, work, name, source):
    """Watched, in a folder of its own."""
    folder = Path(work, name)
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": os.path.join(HERE, "..", "..", "python")}
    return subprocess.run([tidemark, "run", "--quiet", "-o", str(folder / "run.tmk"), "--", sys.executable, "-c", source],
                          cwd=folder, env=env, capture_output=True, text=True, timeout=400, check=False)


def add_all(checks, tidemark, work, name, source):
    done = python(tidemark, work, name, source)
    if done.returncode != 0:
        checks.add(name, False, error=done.stderr[-2000:])
        return
    for found in json.loads(done.stdout.splitlines()[-1]):
        if "skipped" in found:
            checks.skip(found["check"], found["skipped"])
        else:
            checks.add(found.pop("check"), found.pop("ok"), **found)


def main():
    tidemark, out, _ = command_line(__doc__)
    need_gpu(torch.cuda.is_available())  # on a CPU the OOM would be the machine's
    checks = Checks()
    for name, source in (("lora_precisions", PRECISIONS), ("lora_transformers", TRANSFORMERS), ("lora_oom", OOM),
                         ("lora_cost", COST)):
        add_all(checks, tidemark, out, name, source)
    checks.save(out, "check_lora")
    sys.exit(checks.exit_status())


if __name__ == "__main__":
    main()
