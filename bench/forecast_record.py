#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""forecast_record.py TIDEMARK OUT [KIND...]: record the series that forecast_score is checked with.

Runs each program of forecast_workloads.py watched and writes OUT/KIND.txt: what it is, the capacity, and the
peak of each step. Of one that ran out the capacity is what it had when it was refused, and what it asked
for (or its highest peak, where that was more); that is its last line. A quiet one is given a tenth more than it ever used. tests/data/forecast was made
by this; other machines give other series.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["leak_list", "leak_slow", "leak_graph", "leak_uneven", "leak_late", "leak_under_garbage",
         "growing_batch", "growing_square", "growing_context", "leak_at_evaluation", "evaluation", "lengths",
         "long_batch", "garbage", "bounded_cache", "accumulate", "flat"]


def query(tidemark, run, sql):
    done = subprocess.run([tidemark, "query", run, sql, "--format", "json"], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)["rows"]


def record(tidemark, kind, out):
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run.tmk")
        subprocess.run([tidemark, "run", "--quiet", "-o", run, "--", "/usr/bin/python3",
                        os.path.join(HERE, "forecast_workloads.py"), kind], check=True,
                       env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})  # else that is refused first
        peaks = [row["peak_allocated"] for row in query(
            tidemark, run, "SELECT peak_allocated FROM steps WHERE device = 'cpu' AND step IS NOT NULL "
            "AND finished ORDER BY start_ns")]
        ooms = query(tidemark, run, "SELECT allocated + requested AS bytes FROM ooms ORDER BY time_ns LIMIT 1")
    capacity = max(ooms[0]["bytes"], max(peaks) + 1) if ooms else int(max(peaks) * 1.1)
    peaks += [capacity] if ooms else []
    with open(os.path.join(out, kind + ".txt"), "w", encoding="ascii") as text:
        text.write(f"# {kind} {'runs_out' if ooms else 'quiet'} {capacity}\n")
        text.writelines(f"{peak}\n" for peak in peaks)
    print(kind, len(peaks), "steps,", f"{capacity / 2**20:.0f} MiB,", "ran out" if ooms else "quiet")


if __name__ == "__main__":
    for name in sys.argv[3:] or KINDS:
        record(sys.argv[1], name, sys.argv[2])
