#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: LoRA trainings and the tools that look at them, against torch's own numbers.

    tests/gpu/check_lora.py TIDEMARK OUT

The tests of tests/torch/test_lora_training.py that need no CPU; each precision; our Llama against transformers';
peft's adapters, where both are installed; an OOM that is survived. Writes each check to OUT/check_lora.json, exit 1
when one fails."""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "torch"))

import torch  # noqa: E402

from check_diff import Checks  # noqa: E402
from seeds_kit import examples  # noqa: E402
import test_lora_training as tests  # noqa: E402

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
    print(json.dumps([{"check": "transformers is not installed: not compared with it", "ok": True}]))
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
                         torch.cuda.memory_allocated() == before, "sizes": [results[n]["memory_mb"] for n in ("r8", "r64")],
                   "error": results["huge"]["error"]}]))
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
print(json.dumps([{"check": "cost of checks, 1 GB in 200 tensors (ms)", "ok": True,
                   "gradients": best_ms(lambda: check_gradients(model)), "values": best_ms(lambda: analyze_model(model)) - plain,
                   "sum": best_ms(flat.sum)}]))
"""


def environment(tidemark, **more):
    return {**os.environ, "TIDEMARK_PROGRAM": tidemark, "LC_ALL": "C.UTF-8",
            "PYTHONPATH": os.path.join(HERE, "..", "..", "python"), **more}


def python(tidemark, work, name, arguments, **more):
    """Watched, in a folder of its own."""
    folder = Path(work, name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder, subprocess.run(
        [tidemark, "run", "--quiet", "-o", str(folder / "run.tmk"), "--", sys.executable, *arguments], cwd=folder,
        env=environment(tidemark, **more), capture_output=True, text=True, timeout=400, check=False)


def add_all(checks, tidemark, work, name, source):
    _, done = python(tidemark, work, name, ["-c", source])
    if done.returncode != 0:
        checks.add(name, False, error=done.stderr[-2000:])
        return
    for found in json.loads(done.stdout.splitlines()[-1]):
        checks.add(found.pop("check"), found.pop("ok"), **found)


def check_examples(checks, tidemark, work):
    blocks = examples("s2.md", tests.IMPORTS)
    train, compare = (next(b for b in blocks if text in b) for text in ("debug_results", "best_config"))
    source = "\n".join([tests.PRELUDE, train, tests.DEBUGGED, compare, tests.COMPARED, tests.MODEL, tests.GRADIENTS])
    _, done = python(tidemark, work, "lora_examples", ["-c", source])
    checks.add("the seed's examples, the model, the checks", done.returncode == 0, error=done.stderr[-2000:]
               if done.returncode else None)


def check_commands(checks, tidemark, work):
    for command in tests.shell_commands():
        level = command[1]
        folder, done = python(tidemark, work, "lora_" + level, ["-m", "tidemark.debug", *command])
        error = done.stderr[-2000:] if done.returncode else None
        if error is None:
            (written,) = (folder / "logs/memory_debug/matplotlib-3.8.0").glob("*.json")
            try:
                tests.TIDEMARK = tidemark
                tests.CHECKS[level](json.loads(written.read_text(encoding="utf-8")), done.stdout, folder)
            except AssertionError as reason:
                error = repr(reason)
        checks.add(f"python -m tidemark.debug {' '.join(command)}", error is None, error=error)


def check_training(checks, tidemark, work):
    """What the sweep runs."""
    folder, done = python(tidemark, work, "lora_training", [
        "-m", "tidemark.lora_training", "--seq_length", "128", "--batch_size", "8", "--max_physical_batch_size", "2",
        "--lora_rank", "8", "--num_steps", "3", "--precision", "bf16"])
    result = json.loads(done.stdout)
    peak = json.loads(subprocess.run([tidemark, "peak", str(folder / "run.tmk"), "--json"], capture_output=True,
                                     check=True).stdout)
    checks.add("python -m tidemark.lora_training: the run's peak is torch's", peak["allocated"] == result["max_allocated"],
               peak=peak["allocated"], torch=result["max_allocated"])


def main():
    tidemark, out = os.path.abspath(sys.argv[1]), sys.argv[2]
    if not torch.cuda.is_available():
        sys.exit("check_lora: torch finds no GPU here")  # on a CPU the OOM would be the machine's
    checks = Checks()
    check_examples(checks, tidemark, out)
    check_commands(checks, tidemark, out)
    check_training(checks, tidemark, out)
    for name, source in (("lora_precisions", PRECISIONS), ("lora_transformers", TRANSFORMERS), ("lora_oom", OOM),
                         ("lora_cost", COST)):
        add_all(checks, tidemark, out, name, source)
    with open(os.path.join(out, "check_lora.json"), "w", encoding="utf-8") as file:
        json.dump(checks.results, file, indent=1)
    sys.exit(0 if checks.all_ok() else 1)


if __name__ == "__main__":
    main()
