#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record the allocator's truth: each program under each setting, on a machine with a GPU.

    tests/gpu/record_allocator.py TIDEMARK OUT [--jobs N]

OUT/truth.json gets what torch counted; OUT/NAME.tmk.tar and OUT/NAME.pickle.gz are the same run as tidemark and as
torch's own history recorded it, under torch's default settings (and `expandable` ones for some)."""
import concurrent.futures
import gzip
import json
import os
import shutil
import subprocess
import sys

from checks import command_line

HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = ["", "expandable_segments:True", "max_split_size_mb:32", "max_split_size_mb:128",
            "roundup_power2_divisions:4", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"]
LIMITED = ["", "garbage_collection_threshold:0.6", "garbage_collection_threshold:0.8,max_split_size_mb:64",
           "expandable_segments:True", "max_split_size_mb:32"]
# name of the run: program, options, settings
RUNS = {
    "lora": ("lora", [], SETTINGS),
    "varlen": ("varlen", [], SETTINGS),
    "varlen_limited": ("varlen", ["--seed", "1", "--fraction", "0.0062"], LIMITED),
    "growth": ("growth", ["--fraction", "0.004"], SETTINGS),
    "growth_more": ("growth", ["--seed", "3", "--fraction", "0.01"], SETTINGS + LIMITED[1:3]),
    "streams": ("streams", [], SETTINGS),
    "churn": ("churn", [], SETTINGS),
    "churn_limited": ("churn", ["--seed", "2", "--fraction", "0.0175"], LIMITED),
}


def one(tidemark, out, name, program, options, conf):
    command = [sys.executable, os.path.join(HERE, "allocator_programs.py"), program, *options]
    env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": conf}
    label = name if not conf else name + "_expandable" if conf == "expandable_segments:True" else None
    if label:
        command += ["--snapshot", os.path.join(out, label + ".pickle")]
        command = [tidemark, "run", "--quiet", "-o", os.path.join(out, label + ".tmk"), "--", *command]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    try:
        figures = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        figures = {"failed": done.returncode, "said": done.stderr[-1500:]}
    return {"run": name, "conf": conf, **figures}


def main():
    tidemark, out, words = command_line(__doc__)
    jobs = int(words[1]) if len(words) > 1 else 8
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        asked = [pool.submit(one, tidemark, out, name, program, options, conf)
                 for name, (program, options, settings) in RUNS.items() for conf in settings]
        truth = [future.result() for future in asked]
    for file in os.listdir(out):
        if file.endswith(".pickle"):
            path = os.path.join(out, file)
            with open(path, "rb") as plain, gzip.open(path + ".gz", "wb", 6) as packed:
                shutil.copyfileobj(plain, packed)
            os.unlink(path)
    with open(os.path.join(out, "truth.json"), "w", encoding="utf-8") as file:
        json.dump(truth, file, indent=1)
    for row in truth:
        print(row["run"], row["conf"] or "-", row.get("peak_allocated"), row.get("peak_reserved"), row.get("retries"),
              row.get("ooms"), row.get("said", "")[-300:], flush=True)


main()
