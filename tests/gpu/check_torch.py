#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: what tidemark records of a training equals what torch counts, exactly.

    tests/gpu/check_torch.py TIDEMARK OUT [WORKLOAD...]

Each workload is run unwatched and watched; losses must be equal to the last digit; counts, bytes and
peaks of the trace must be those of torch.cuda.memory_stats(). Prints a line for each comparison,
writes them to OUT/check_torch.json, exit 1 when one differs."""
import csv
import io
import json
import os
import subprocess
import sys

from checks import command_line

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "..", "torch", "workloads")
SCRIPTS = {
    "encoder": ["encoder.py", "--steps", "60"],
    "encoder_expandable": ["encoder.py", "--steps", "20"],
    "lora": ["lora.py", "--steps", "60"],
    "leak_graph": ["leak_graph.py", "--steps", "60"],
    "oom_growth": ["oom_growth.py"],
}


def run(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def rows(tidemark, folder, sql):
    status, out, err = run([tidemark, "query", folder, sql, "--format", "csv"])
    if status != 0:
        raise RuntimeError(err)
    return list(csv.reader(io.StringIO(out)))[1:]


def of_trace(tidemark, folder):
    (mark,), = rows(tidemark, folder, "SELECT time_ns FROM marks WHERE event = 'stats'")
    (n, size, live, live_bytes), = rows(
        tidemark, folder,
        f"SELECT count(*), sum(size), sum(free_ns IS NULL OR free_ns > {mark}), "
        f"sum(CASE WHEN free_ns IS NULL OR free_ns > {mark} THEN size ELSE 0 END) "
        "FROM allocations WHERE device = 'cuda:0'")
    (peak, peak_reserved), = rows(
        tidemark, folder, "SELECT max(peak_allocated), max(peak_reserved) FROM steps WHERE device = 'cuda:0'")
    (ooms,), = rows(tidemark, folder, "SELECT count(*) FROM ooms")
    return {"allocations": int(n), "frees": int(n) - int(live), "live": int(live), "bytes": int(size),
            "live_bytes": int(live_bytes), "peak_bytes": int(peak), "peak_reserved": int(peak_reserved or 0),
            "ooms": int(ooms)}


def lines_known(tidemark, folder):
    """Share of allocations on the device whose stack has a line of a Python file."""
    (with_line, all_of_them), = rows(
        tidemark, folder,
        "SELECT sum(EXISTS (SELECT 1 FROM frames f WHERE f.stack_id = a.stack_id AND f.line > 0)), "
        "count(*) FROM allocations a WHERE device = 'cuda:0'")
    return int(with_line) / int(all_of_them)


def losses(text):
    return [line for line in text.splitlines() if line.startswith("step ")]


def compare(tidemark, out, name):
    script = [os.path.join(WORKLOADS, SCRIPTS[name][0]), *SCRIPTS[name][1:]]
    env = dict(os.environ)
    if name.endswith("_expandable"):
        env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    with_stats = [sys.executable, os.path.join(HERE, "with_stats.py"), *script]
    status, plain, err = run(with_stats, env)
    if status != 0:
        return {"workload": name, "ok": False, "why": "unwatched: " + err[-1000:]}
    folder = os.path.join(out, name + ".tmk")
    status, text, err = run([tidemark, "run", "-o", folder, "--", *with_stats], env)
    if status != 0:
        return {"workload": name, "ok": False, "why": "watched: " + err[-1000:]}
    truth = json.loads(text.splitlines()[-1])
    found = of_trace(tidemark, folder)
    result = {"workload": name, "torch": truth, "tidemark": found, "summary": err[-1500:],
              "same_losses": losses(plain) == losses(text), "n_losses": len(losses(text)),
              "unwatched": json.loads(plain.splitlines()[-1]), "lines_known": lines_known(tidemark, folder)}
    result["differences"] = {key: (found[key], truth[key]) for key in found if found[key] != truth[key]}
    check_status, check_text, check_err = run([tidemark, "check", folder])
    result["check"] = (check_text + check_err).strip()
    events = rows(tidemark, folder, "SELECT count(*) FROM events")[0][0]
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    result["bytes_per_event"] = round(size / int(events), 2)
    result["n_events"] = int(events)
    result["top"] = run([tidemark, "peak", folder, "--by", "stack"])[1][:3000]
    result["ok"] = not result["differences"] and result["same_losses"] and check_status == 0 \
        and result["lines_known"] > 0.99
    return result


def main():
    tidemark, out, names = command_line(__doc__)
    results = [compare(tidemark, out, name) for name in names or SCRIPTS]
    with open(os.path.join(out, "check_torch.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    for r in results:
        print(r["workload"], "ok" if r["ok"] else "DIFFERS",
              r.get("why") or {key: r[key] for key in ("tidemark", "differences", "same_losses",
                                                       "lines_known", "bytes_per_event", "n_events")})
    sys.exit(0 if all(r["ok"] for r in results) else 1)


main()
