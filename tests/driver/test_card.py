# SPDX-License-Identifier: MIT
"""What people read of a card: the report, the post-mortem, and the queries of docs/card.md."""
import json
import os
import re
import subprocess

import pytest
from driver_kit import GIB, MIB, PYTHON, REPO

SCRIPT = """
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
context, p = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
for _ in range(6):
    assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(100 << 20)) == 0
assert cuda.cuMemAllocHost_v2(ctypes.byref(p), ctypes.c_size_t(1 << 20)) == 0
time.sleep(1)
assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(100 << 30)) == 2
"""


@pytest.fixture(name="seen")
def fixture_seen(watch, cards, tmp_path):
    """A program on a card of 32 GiB that others use as well; it asks for more than there is."""
    cards.make(32 * GIB, more=f"process 1 {5 * GIB}\nhidden {100 * MIB}\n")
    script = tmp_path / "fill.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([REPO / "build" / "tidemark", "run", "-o", watch.run, "--", PYTHON, script], capture_output=True, text=True,
                          env={**os.environ, **cards.environment()}, check=False)
    assert done.returncode == 0, done.stderr
    return watch, done.stderr


def test_nearly_out_of_memory(watch, cards, tmp_path):
    """All views call 97 % of the card in use a near miss, in the same words."""
    cards.make(4 * GIB, more=f"process 1 {3 * GIB}\n")
    script = tmp_path / "fill.py"
    script.write_text(SCRIPT[:SCRIPT.rindex("assert")], encoding="utf-8")
    done = subprocess.run([REPO / "build" / "tidemark", "run", "-o", watch.run, "--", PYTHON, script], capture_output=True, text=True,
                          env={**os.environ, **cards.environment()}, check=False)
    assert done.returncode == 0, done.stderr
    health = json.loads(watch.tidemark("report", watch.run, "--json"))["health"]
    assert health["verdict"] == "nearly_ran_out" and health["next"] == f"tidemark explain {watch.run}"
    assert re.fullmatch(r"Nearly out of memory on cuda:0: 3[.]\d\d GiB of its 4[.]00 GiB were in use", health["text"])
    for text in (done.stderr, watch.tidemark("report", watch.run), watch.tidemark("explain", watch.run)):
        assert health["text"] in " ".join(text.split())


def test_driver_memory_alone(watch, cards, tmp_path):
    """A program without a framework's allocator has recorded something all the same."""
    cards.make(32 * GIB)
    script = tmp_path / "fill.py"
    script.write_text(SCRIPT[:SCRIPT.rindex("assert")], encoding="utf-8")
    assert watch(PYTHON, script, env=cards.environment()).returncode == 0
    text = " ".join(watch.tidemark("report", watch.run).split())
    assert "No framework's allocator was seen; this process had 600.0 MiB from the driver on cuda:0." in text
    assert "DEVICE MEMORY" in text


def section(text, name):
    """The lines of a section, without blanks at their ends, until the next empty one."""
    lines = [line.rstrip() for line in text.splitlines()]
    start = lines.index(name) + 1
    return lines[start:lines.index("", start)]


def test_report(seen):
    text = seen[0].tidemark("report", seen[0].run, "--full")
    card = section(text, "DEVICE MEMORY")
    assert re.sub(r"\s+", " ", " ".join(card[:2])).startswith(
        " cuda:0: 5.98 GiB of 32.00 GiB were in use when this process used most, after ")
    assert card[2:] == ["  part                               size  share",
                        "  user                          600.0 MiB   10 %  6 segments",
                        "  context, loaded code          300.0 MiB    5 %",
                        "  other processes                5.00 GiB   84 %",
                        "  unexplained                   100.0 MiB    2 %"]
    oom = re.sub(r"\s+", " ", " ".join(section(text, "OUT OF MEMORY")))
    assert "Out of memory on cuda:0: the request to the driver for 100.00 GiB at fill.py:12 <module> failed with " in oom
    assert oom.endswith("The GPU had 5.98 GiB of 32.00 GiB in use, 600.0 MiB by segments of this process.")


def test_report_for_machines(seen):
    report = json.loads(seen[0].tidemark("report", seen[0].run, "--format", "json"))
    (process,) = report["processes"]
    peak = next(account for account in process["accounting"] if account["moment"] == "peak")
    assert {key: peak[key] for key in ("device", "total", "used", "context", "others", "unexplained")} == {
        "device": "cuda:0", "total": 32 * GIB, "used": 5 * GIB + 1000 * MIB, "context": 300 * MIB, "others": 5 * GIB,
        "unexplained": 100 * MIB}
    assert peak["segments"] == [{"owner": "user", "bytes": 600 * MIB, "segments": 6}]
    (oom,) = process["ooms"]
    assert (oom["source"], oom["segments"], oom["device_used"], oom["device_total"]) == \
        ("driver", 600 * MIB, 5 * GIB + 1000 * MIB, 32 * GIB)


def test_post_mortem(seen):
    talk = re.sub(r"\s+", " ", seen[1])
    assert "device 5.98 GiB of 32.00 GiB in use, 600.0 MiB of it by this process" in talk
    assert "line fill.py:12 <module>" in talk


HOST_SCRIPT = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, p = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
assert cuda.cuMemAllocHost_v2(ctypes.byref(p), ctypes.c_size_t(64 << 40)) == 2
"""


def test_host_memory_that_is_refused(watch, cards, tmp_path):
    """It is no card's matter: nothing is said of one."""
    script = tmp_path / "pin.py"
    script.write_text(HOST_SCRIPT, encoding="utf-8")
    done = subprocess.run([REPO / "build" / "tidemark", "run", "-o", watch.run, "--", PYTHON, script], capture_output=True, text=True,
                          env={**os.environ, **cards.environment()}, check=False)
    assert done.returncode == 0, done.stderr
    talk = re.sub(r"\s+", " ", done.stderr)
    assert "request 64.00 TiB of host memory line pin.py:8 <module>" in talk
    assert "device " not in talk
    oom = re.sub(r"\s+", " ", " ".join(section(watch.tidemark("report", watch.run, "--full"), "OUT OF MEMORY")))
    assert re.fullmatch(r" After .*: Out of host memory: the request to the driver for 64.00 TiB at pin.py:8 <module> failed with "
                        r".* allocated.", oom)
    (oom,) = json.loads(watch.tidemark("report", watch.run, "--format", "json"))["processes"][0]["ooms"]
    assert (oom["device"], oom["source"], oom["request_bytes"]) == ("cpu", "driver", 64 << 40)
    assert (oom["segments"], oom["device_used"], oom["device_total"]) == (None, None, None)


def test_without_nvml(watch, cards, tmp_path):
    """Where the driver tells nothing, nothing is said to be zero."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    (folder / "libcuda.so.1").symlink_to(f"{cards.libraries}/libcuda.so.1")
    script = tmp_path / "fill.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = watch(PYTHON, script, env=cards.environment(LD_LIBRARY_PATH=str(folder)))
    assert done.returncode == 0, done.stderr
    report = json.loads(watch.tidemark("report", watch.run, "--format", "json"))
    last = report["processes"][0]["accounting"][-1]
    assert last["segments"] == [{"owner": "user", "bytes": 600 * MIB, "segments": 6}]
    assert last["used"] == 900 * MIB  # the driver's own answer, when it refused
    assert (last["context"], last["others"], last["unexplained"]) == (None, None, None)
    text = watch.tidemark("report", watch.run, "--full")
    assert section(text, "DEVICE MEMORY")[-3:] == ["  context, loaded code                  -      -",
                                              "  other processes                       -      -",
                                              "  unexplained                           -      -"]


def documented():
    text = (REPO / "docs" / "card.md").read_text(encoding="utf-8")
    return re.findall(r'^tidemark query RUN "(.*)"$', text, re.MULTILINE)


def test_documented_queries(seen):
    queries = documented()
    assert len(queries) == 5
    for sql in queries:
        rows = json.loads(seen[0].tidemark("query", "--json", seen[0].run, sql))["rows"]
        assert rows or "nccl" in sql
