# SPDX-License-Identifier: MIT
"""frag on traces of an H200: against what torch's snapshot says, and against gaps counted here from the tables."""
import csv
import io
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
TIDEMARK = str(Path(os.environ.get("TIDEMARK_BUILD", REPO / "build")) / "tidemark")
DATA = REPO / "tests" / "data"
TRUTH = json.loads((DATA / "frag" / "truth.json").read_text(encoding="utf-8"))
TRACES = ["frag/streams", "ooms/churn", "ooms/churn_expandable", "ooms/fragmentation", "ooms/oom_growth", "ooms/outlier"]
SMALL = 2 << 20


def tidemark(*arguments):
    return subprocess.run([TIDEMARK, *map(str, arguments)], capture_output=True, text=True, check=False)


def frag(trace, *options):
    done = tidemark("frag", DATA / (trace + ".trace"), "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def query(trace, sql):
    done = tidemark("query", DATA / (trace + ".trace"), sql, "--format", "csv")
    assert done.returncode == 0, done.stderr
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


@pytest.mark.parametrize("trace", TRUTH)
def test_as_torch_says(trace):
    """At the end, when no block is left. What torch calls streams we call otherwise: pools are compared by size."""
    told = frag(trace, "--at", "end")
    pools = [{key: pool[key] for key in ("pool", "reserved", "segments", "largest_free")} for pool in told["pools"]]
    assert sorted(pools, key=lambda pool: (pool["pool"], pool["reserved"])) == TRUTH[trace]
    assert told["reserved"] == told["free"] == told["releasable"] == sum(pool["reserved"] for pool in TRUTH[trace])
    assert told["allocated"] == told["outside"] == 0 and told["pinned"] == []


def gaps(trace, at_ns):
    """(reserved, free, largest gap, number of gaps) of the moment, by brute force."""
    alive = f"alloc_ns <= {at_ns} AND (free_ns IS NULL OR free_ns > {at_ns})"
    blocks = [(int(a), int(s)) for a, s in
              query(trace, f"SELECT address, size FROM allocations WHERE device = 'cuda:0' AND {alive} ORDER BY 1")]
    segments = []
    for address, size, kind in query(trace, "SELECT address, size, kind FROM segments WHERE owner = 'torch' AND "
                                            f"kind IN ('device', 'mapping') AND {alive} ORDER BY 1"):
        address, size, page = int(address), int(size), int(size) if kind == "mapping" else 0
        last = segments[-1] if segments else None
        if page and last and last[0] + last[1] == address and (last[2] > SMALL) == (page > SMALL):
            last[1] += size
        else:
            segments.append([address, size, page])
    free = []
    for address, size, _ in segments:
        edges = [address, *[edge for a, s in blocks if address <= a < address + size for edge in (a, a + s)], address + size]
        free += [end - begin for begin, end in zip(edges[::2], edges[1::2]) if end > begin]
    return sum(segment[1] for segment in segments), sum(free), max(free, default=0), len(free)


@pytest.mark.parametrize("trace", TRACES)
def test_gaps(trace):
    for options in ([], ["--at", "5s"], ["--at", "5700ms"]):
        told = frag(trace, *options)
        assert told["device"] == "cuda:0"
        assert gaps(trace, told["time_ns"]) == (told["reserved"], told["free"], told["largest_free"], told["free_blocks"])
        assert told["allocated"] == told["reserved"] - told["free"]
        assert sum(pool["free"] for pool in told["pools"]) == told["free"]
        assert told["largest_allocatable"] <= told["largest_free"]


def test_fragmented():
    """The program keeps a small block in each of many segments and asks for one that is larger than all gaps."""
    told = frag("ooms/fragmentation")
    assert (told["moment"], told["request"], told["step"]) == ("oom", 64 << 20, 22)
    assert told["free"] > told["request"] > told["largest_free"] == told["largest_allocatable"]
    assert told["releasable"] == 0
    assert told["largest_allocatable_new"] is None  # torch was given a limit that is not the card's
    assert sum(segment["free"] for segment in told["pinned"]) > told["request"]
    worst = told["pinned"][0]
    assert worst["free"] >= worst["size"] / 2 and worst["by"]
    assert any("fragmentation.py:" in frame for frame in worst["by"][0]["stack"])


def test_sql():
    told = frag("ooms/fragmentation")
    rows = query("ooms/fragmentation", "SELECT time_ns, reserved, allocated, free, largest_free, request FROM fragmentation "
                                       "WHERE pool IS NULL")
    assert [[int(cell) for cell in row] for row in rows] == [
        [told["time_ns"], told["reserved"], told["allocated"], told["free"], told["largest_free"], told["request"]]]
    rows = query("ooms/fragmentation", f"SELECT pool, stream, free, segments FROM fragmentation({told['time_ns']}) "
                                       "WHERE pool IS NOT NULL")
    assert rows == [[pool["pool"], str(pool["stream"]), str(pool["free"]), str(pool["segments"])] for pool in told["pools"]]


def test_leak_on_the_card():
    """Seven tensors of 2 MiB and a sum of 512 bytes stay in every step, until memory is refused."""
    done = tidemark("leak", DATA / "ooms" / "leak.trace", "--json")
    assert done.returncode == 1
    (leak,) = json.loads(done.stdout)["leaks"]
    assert (leak["line"], leak["kept_by"], leak["device"]) == (17, "graph", "cuda:0")
    assert (leak["bytes_per_step"], leak["blocks_per_step"], leak["steps_left"]) == (7 * (2 << 20) + 512, 8, 0)


def test_text():
    done = tidemark("frag", DATA / "ooms" / "fragmentation.trace")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("cuda:0 when a request for 64.0 MiB failed, after ") and lines[0].endswith(", in step 22")
    assert "Pinned: " in done.stdout and "worst step: " in done.stdout
    assert all(len(line) <= 80 for line in lines)
    assert tidemark("frag", DATA / "ooms" / "fragmentation.trace", "--at", "step:99").returncode == 1


def test_docs(tmp_path):
    """The commands of docs/fragmentation.md run as they stand there."""
    (tmp_path / "oom.trace").symlink_to(DATA / "ooms" / "fragmentation.trace")
    text = (REPO / "docs" / "fragmentation.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{Path(TIDEMARK).parent}{os.pathsep}{os.environ['PATH']}"})
        assert done.returncode == 0 and done.stdout, done.stderr
