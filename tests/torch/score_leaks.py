# SPDX-License-Identifier: MIT
"""Score `tidemark leak` on programs that say themselves whether they leak:

    python3 tests/torch/score_leaks.py BUILD OUT [PATTERN]

Runs each program of programs/ under BUILD's tidemark (once: OUT/NAME.tmk is kept), asks `leak --json`, and
compares: the verdict with the program's name (leak_*, clean_*), the line of the largest finding with the
lines marked `# <-- leak`, `# <-- second` or `# <-- also`, and the sum of all rates with the first figure in
bytes a step of the first line, where there is one."""
import glob
import json
import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "programs"
PYTHON = os.environ.get("TIDEMARK_TEST_PYTHON", "/usr/bin/python3")
MARK = re.compile(r"# <-- (leak|second|also)$")


def truth_of(path):
    """(leaks, lines, bytes a step or None)"""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    rate = re.search(r"([\d,.]+) B/step", lines[0])
    marked = {number for number, line in enumerate(lines, 1) if MARK.search(line)}
    return Path(path).name.startswith("leak_"), marked, float(rate.group(1).replace(",", "")) if rate else None


def record(build, path, run):
    subprocess.run([f"{build}/tidemark", "run", "-q", "-o", str(run), "--", PYTHON, str(path)], capture_output=True,
                   check=True)


def score(build, path, run):
    """A row: what came out, and whether line and rate are right (None: nothing to compare)."""
    leaks, marked, rate = truth_of(path)
    told = json.loads(subprocess.run([f"{build}/tidemark", "leak", str(run), "--json"], capture_output=True, text=True,
                                     check=False).stdout)
    found = told["verdict"] == "leak"
    kind = "null" if told["verdict"] is None else {(True, True): "TP", (True, False): "FN", (False, True): "FP",
                                                   (False, False): "TN"}[leaks, found]
    first = told["leaks"][0] if told["leaks"] else None
    line = (os.path.basename(first["file"] or "?"), first["line"]) if first else None
    said = sum(leak["bytes_per_step"] or 0 for leak in told["leaks"])
    return {"program": Path(path).stem, "kind": kind, "line": line,
            "line_right": None if kind != "TP" or not marked else line[0] == Path(path).name and line[1] in marked,
            "rate": said, "truth": rate, "rate_right": None if kind != "TP" or not rate else abs(said / rate - 1) <= 0.05,
            "kept_by": [leak["kept_by"] for leak in told["leaks"]],
            "not_judged": [doubt["reason"] for doubt in told["not_judged"]]}


def main():
    build, out, pattern = sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "*"
    rows = []
    for path in sorted(glob.glob(str(FOLDER / pattern / "*_*.py"))):
        run = out / (Path(path).stem + ".tmk")
        if not run.exists():
            record(build, path, run)
        row = score(build, path, run)
        rows.append(row)
        line = "-" if not row["line"] else "ok" if row["line_right"] else "%s:%s" % row["line"]
        print("%-4s %-32s line %-28s %12.0f of %-12s %-5s %s %s" % (
            row["kind"], row["program"], line, row["rate"], row["truth"], {None: "", True: "ok", False: "wrong"}[row["rate_right"]],
            ",".join(str(k) for k in row["kept_by"]), ",".join(row["not_judged"])), flush=True)
    count = {kind: sum(row["kind"] == kind for row in rows) for kind in ("TP", "FN", "FP", "TN", "null")}
    print(count, "lines right:", sum(row["line_right"] is True for row in rows), "rates right:",
          sum(row["rate_right"] is True for row in rows), "of", sum(row["rate_right"] is not None for row in rows))


if __name__ == "__main__":
    main()
