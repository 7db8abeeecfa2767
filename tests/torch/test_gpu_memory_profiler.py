# SPDX-License-Identifier: MIT
"""GPUMemoryProfiler: its seed's examples, and its figures against bytes that torch has."""
import json
import re

import pytest
from seeds_kit import examples, run_python, run_script
from torch_kit import REPO

PRELUDE = """
import glob, json, os
import tidemark, torch
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
input_tensor = torch.ones(1 << 20, device=DEVICE)
output_tensor = torch.ones(3, 5, dtype=torch.float16, device=DEVICE)
r, hidden_size, num_epochs, dataloader = 8, 256, 2, [torch.ones(4, 4, device=DEVICE)] * 2
weight = torch.ones(4, 4, device=DEVICE, requires_grad=True)
model = lambda batch: (batch @ weight).sum()
optimizer = torch.optim.SGD([weight], lr=0.1)
threshold, max_size, log_file = 10, 1 << 30, __file__
"""

# After the first example, whose profiler has ended: what it wrote.
FIRST = """
assert json_file == glob.glob("logs/my_training/memory_profiler_*.json")[0]
found = json.load(open(json_file, encoding="utf-8"))
assert list(found) == ["模型创建", "前向传播", "训练步骤"]
(made,), (step,) = found["模型创建"], found["训练步骤"]
assert list(made) == ["time", "allocated", "reserved", "max_allocated", "max_reserved", "timestamp", "device"]
assert found["前向传播"][0]["info"] == "loss=0.1234"
assert step["tensors"]["input"] == {"shape": [1 << 20], "dtype": "torch.float32",
                                    "device": str(input_tensor.device), "bytes": 4 << 20}
assert step["tensors"]["output"]["bytes"] == 30
assert step["model"] == {"total_params": 1000000, "trainable_params": 500000}
assert summary["total_events"] == 3 and summary["events"]["模型创建"]["count"] == 1
"""

EXACT = """
import gc
from tidemark import GPUMemoryProfiler
assert tidemark.is_watched()


def torch_says():
    '''What is allocated on the device: of the GPU torch counts it, of the CPU it is what its tensors hold.'''
    if DEVICE == "cuda":
        return torch.cuda.memory_allocated()
    gc.collect()
    tensors = [thing for thing in gc.get_objects() if isinstance(thing, torch.Tensor)]
    tensors += [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    return sum({tensor.storage().data_ptr(): tensor.storage().nbytes() for tensor in tensors}.values())


profiler = GPUMemoryProfiler("exact", console=False, max_log_bytes=20000, log_backups=2)
before = torch_says()
profiler.record("before")
kept = [torch.empty(n << 20, dtype=torch.uint8, device=DEVICE) for n in (3, 5, 6)]  # none leaves a MiB of 16, which a GPU's would keep
profiler.record("three")
kept.pop()
profiler.record("two")
try:
    torch.empty(1 << 60, dtype=torch.uint8, device=DEVICE)
except RuntimeError:
    profiler.record("out of memory")
if DEVICE == "cuda":
    torch.cuda.empty_cache()
    profiler.record("cache given back")
for i in range(2000):
    profiler.record("many", str(i))
found = profiler._entries()
sizes = [found[event][0]["allocated"] for event in ("before", "three", "two", "out of memory")]
assert [size - sizes[0] for size in sizes] == [0, 14, 8, 8] and sizes[0] == before / 1048576
assert found["three"][0]["max_allocated"] == found["two"][0]["max_allocated"] >= sizes[0] + 14
known = found["three"][0]
assert (known["reserved"] is None) == (known["max_reserved"] is None) == (DEVICE == "cpu")  # the C library does not say
if DEVICE == "cuda":
    last = found["cache given back"][0]
    assert last["reserved"] == torch.cuda.memory_reserved() / 1048576
name = "cuda:0" if DEVICE == "cuda" else "cpu"  # also where there is but one
assert {entry["device"] for entries in found.values() for entry in entries} == {name}
assert [entry["info"] for entry in found["many"]] == [str(i) for i in range(2000)]

class Wrong:
    def __str__(self):
        raise KeyError("mine")
import gc, weakref
loss = torch.ones(3, device=DEVICE)
gone = weakref.ref(loss)
for info in (loss, {"loss": loss, "n": [1]}, 0, 0.5, False, "", Wrong()):
    profiler.record("odd", info)
profiler.record_detailed(3, {5: loss}, {"loss": loss, 7: float("nan")}, loss)
profiler.record(3)
del loss, info
gc.collect()
assert gone() is None  # what is kept is text
text = f"tensor(shape=(3,), dtype=torch.float32, device={input_tensor.device})"
found = json.load(open(profiler.save_to_json(), encoding="utf-8"))
assert [entry["info"] for entry in found["odd"]] == [
    text, "{loss: " + text + ", n: [1]}", "0", "0.5", "False", "", "<Wrong>"]
assert found["3"][0]["info"] == text and found["3"][0]["model"] == {"loss": text, "7": "nan"}
assert list(found["3"][0]["tensors"]) == ["5"] and "info" not in found["3"][1]
profiler._rows.append(("a row that cannot be shown",))
profiler._log.flush()
profiler._rows.pop()
profiler._log._n_written -= 1
profiler.record("many", "1999")

import tidemark._figures as figures
from tidemark.gpu_memory_profiler import Lines  # each device has its own maxima of the time before
lines = Lines(0, {figures.CARD: figures.Figures(0, 0, 0, 7, 9), figures.CARD + 1: figures.Figures(0, 0, 0, 1, 2)})
packed = figures.ROW.pack(1, 1, 1, 3, 3)
assert lines.figures(packed, figures.HOST) == (1, 1, None, 3, None)
assert [lines.figures(packed, figures.CARD + n)[3:] for n in range(3)] == [(7, 9), (3, 3), (3, 3)]

few = GPUMemoryProfiler("few", enable_file_logging=False, console=False, max_records=100)
for i in range(250):
    few.record(f"name {i % 5}")
for i in range(3000):
    few.record(f"once {i}")
summary = few.generate_summary_report()
assert 90 <= len(few._rows) <= 100 and summary["total_events"] == 3250 and summary["peak_allocated"] >= sizes[0] + 14
assert summary["events"]["name 3"]["count"] == 50 and summary["events"]["..."]["count"] == 3000 - 995 - len(few._rows)
assert list(few._entries())[-1] == "once 2999"

child = os.fork()
if child == 0:  # has what was recorded, writes no line, and ends
    profiler.record("in the child")
    profiler.cleanup()
    os._exit(0 if len(profiler._entries()["in the child"]) == 1 else 1)
assert os.waitpid(child, 0)[1] == 0
profiler.cleanup()
profiler.cleanup()
profiler.record("after the end")
logs = sorted(glob.glob("exact/*.log*"))
assert [name.split(".log")[1] for name in logs] == ["", ".1", ".2"], logs
assert all(0 < os.path.getsize(name) <= 20000 + 80000 for name in logs)
text = open(logs[0], encoding="utf-8").read()
assert text.splitlines()[-1].endswith(" | 额外信息: 1999") and "in the child" not in text

import threading
gone = weakref.ref(GPUMemoryProfiler("gone", console=False))
gc.collect()
assert gone() is None and [t.name for t in threading.enumerate()] == ["MainThread"]
left_open = GPUMemoryProfiler("left", console=False)
left_open.record("the last words")
"""


def test_examples(tmp_path, rings):
    """Under zh_CN, whose lines are those of the seed."""
    blocks = examples("s3.md", ["memoryCheck"])
    assert len(blocks) == 8
    first, lora, *others = blocks
    source = "\n".join([PRELUDE, first, FIRST, lora, "train_lora_with_profiling()", *others,
                        "if DEVICE == 'cuda': custom_memory_cleanup()", EXACT])
    done = run_python(source, tmp_path, rings, LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1")
    lines = done.stdout.splitlines()
    assert lines[0] == "==== GPU Memory Timeline ====="
    assert re.fullmatch(r"初始化 {15}\| Allocated: +4[.]0MB \| Reserved: +(\d+[.]\dMB|-)", lines[1])
    assert lines[2].startswith("模型创建             | Allocated: ")
    assert "Epoch 2 开始         | Allocated: " in done.stdout
    log = next((tmp_path / "logs" / "my_training").glob("memory_profiler_*.log")).read_text(encoding="utf-8")
    name = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d - MemoryProfiler_\d{8}_\d{6} - INFO - "
    expected = ["=" * 80, "GPU内存分析器初始化", "=" * 80, r"日志文件: logs/my_training/memory_profiler_\d+_\d+[.]log",
                "CUDA可用: (True|False)", r"GPU数量: \d+", r"(GPU 0|CPU): .* \(\d+[.]\dGB\)",
                r"事件: 模型创建 \| 分配: +4[.]0MB \| 保留: +(\d+[.]\dMB|-  ) \| 最大分配: +4[.]0MB \| "
                r"最大保留: +(\d+[.]\dMB|-  ) \| 耗时: \d+[.]\d\ds"]
    for pattern, line in zip(expected, log.splitlines()):
        assert re.fullmatch(name + pattern, line), line
    assert log in done.stderr  # the console has the same
    (left,) = (tmp_path / "left").glob("*.log")
    assert "the last words" in left.read_text(encoding="utf-8")


#: A torch with two GPUs, as far as the package asks one.
TWO_GPUS = """
import types
MIB = 1 << 20
stats = {0: [0, 0], 1: [0, 0]}  # MiB allocated, reserved
peaks, current = {0: [0, 0], 1: [0, 0]}, 0

def have(device, allocated, reserved):
    stats[device] = [allocated, reserved]
    peaks[device] = [max(pair) for pair in zip(peaks[device], stats[device])]

def memory_stats_as_nested_dict(device):
    return {key: {"all": {"current": stats[device][i] * MIB, "peak": peaks[device][i] * MIB}}
            for i, key in enumerate(("allocated_bytes", "reserved_bytes"))}

class device(str):
    pass

cuda = types.SimpleNamespace(
    device_count=lambda: 2, is_initialized=lambda: True, _initialized=True, memory_snapshot=lambda: [],
    memory_stats_as_nested_dict=memory_stats_as_nested_dict,
    get_device_properties=lambda i: types.SimpleNamespace(name="fake", total_memory=(1000 + i) * MIB))
_C = types.SimpleNamespace(_cuda_getDevice=lambda: current)
"""

SEVERAL = """
import json, sys
import tidemark, torch
from tidemark import GPUMemoryProfiler

one = GPUMemoryProfiler("one", console=False)
torch.have(0, 10, 20)
one.record("a")
one.record_detailed("b", device="cuda:0")
assert [list(entry) for entry in (one._entries()["a"][0], one._entries()["b"][0])] == [
    ["time", "allocated", "reserved", "max_allocated", "max_reserved", "timestamp", "device"],
    ["time", "allocated", "reserved", "max_allocated", "max_reserved", "timestamp", "device", "tensors", "model"]]
one.print_report()
assert list(one.generate_summary_report()) == ["total_events", "duration_s", "peak_allocated", "peak_reserved", "peak_event",
                                               "events", "warnings"]
one.cleanup()
assert "device:" not in open(one.log_file).read()

two = GPUMemoryProfiler("two", console=False)
torch.have(1, 300, 400)
two.record("forward")
for device in (0, 1, "cuda:1", torch.device("cuda:1"), "cuda", "cpu"):
    two.record("forward", "info", device)
torch.current = 1
two.record("backward", device="cuda")
torch.have(1, 200, 400)
two.record("backward")
two.record_detailed("step", extra_info="x", device=0)
found = json.load(open(two.save_to_json(), encoding="utf-8"))
assert [(e["device"], e["allocated"], e["reserved"], e["max_allocated"]) for e in found["forward"][:6]] == [
    ("cuda:0", 10, 20, 10), ("cuda:0", 10, 20, 10), *[("cuda:1", 300, 400, 300)] * 3, ("cuda:0", 10, 20, 10)]
host = found["forward"][6]
assert host["device"] == "cpu" and host["reserved"] is None
assert [(e["device"], e["allocated"], e["max_allocated"]) for e in found["backward"]] == [
    ("cuda:1", 300, 300), ("cuda:1", 200, 300)]
assert list(found["backward"][0])[-2:] == ["timestamp", "device"] and found["step"][0]["device"] == "cuda:0"
two.print_report()
summary = two.generate_summary_report()
assert (summary["total_events"], summary["peak_allocated"], summary["peak_reserved"]) == (10, 300, 400)
assert summary["peak_event"] == "forward" and summary["events"]["backward"]["count"] == 2
assert list(summary["devices"]) == ["cpu", "cuda:0", "cuda:1"]
first, second = summary["devices"]["cuda:0"], summary["devices"]["cuda:1"]
assert (first["peak_allocated"], first["peak_reserved"], first["peak_event"]) == (10, 20, "forward")
assert (second["peak_allocated"], second["peak_reserved"], second["peak_event"]) == (300, 400, "forward")
assert first["events"]["forward"] == {"count": 3, "mean_allocated": 10, "max_allocated": 10}
assert second["events"]["backward"] == {"count": 2, "mean_allocated": 250, "max_allocated": 300}
two.cleanup()
lines = [line.split(" - INFO - ")[1] for line in open(two.log_file).read().splitlines() if " - INFO - event: " in line]
assert "device:" not in lines[0] + lines[1] and lines[2].endswith(" | device: cuda:1 | info: info"), lines

for wrong in (2, -1, "cuda:7", "meta", True, [0], 1.0):
    for call in (two.record, two.record_detailed):
        try:
            call("wrong", device=wrong)
            raise SystemExit(f"{wrong!r} is no device")
        except ValueError as reason:
            assert str(reason) == f"no device {wrong!r}; there is cuda:0, cuda:1, cpu", reason
assert "wrong" not in two._entries()
"""

THRESHOLDS = """
import tidemark, torch
from tidemark import GPUMemoryProfiler

def told(profiler):
    profiler.cleanup()
    return [line.split(" - WARNING - ")[1] for line in open(profiler.log_file).read().splitlines() if " - WARNING - " in line]

def go_through(**thresholds):
    profiler = GPUMemoryProfiler("logs", console=False, **thresholds)
    for device, size in ((0, 600), (0, 899), (0, 901), (0, 950), (1, 900), (1, 901), (0, 899), (0, 901)):
        torch.have(device, size, 1000)
        profiler.record(f"at {size}", device=device)
    torch.have(0, 2000, 2000)
    profiler.record_detailed("details", device=0)
    return profiler

byte, percent = go_through(threshold_mb=900), go_through()
expected = [("at 901", "cuda:0", 901, 900), ("at 901", "cuda:1", 901, 900), ("at 901", "cuda:0", 901, 900)]
assert [(w["event"], w["device"], w["allocated"], w["threshold"]) for w in byte.warnings] == expected
assert byte.generate_summary_report()["warnings"] == list(byte.warnings)
assert told(byte) == [f"{name} is above its threshold: 901.0MB > 900.0MB, event: at 901" for _, name, *_ in expected]
assert [(w["device"], w["threshold"]) for w in percent.warnings] == [("cuda:0", 900), ("cuda:1", 900.9), ("cuda:0", 900)]
assert not go_through(threshold_percent=None).warnings
assert [w["event"] for w in go_through(threshold_mb=950, threshold_percent=None).warnings] == ["details"]
both = go_through(threshold_mb=500, threshold_percent=99)  # the lower one
assert [w["event"] for w in both.warnings] == ["at 600", "at 900"]
"""


@pytest.mark.parametrize("source", [SEVERAL, THRESHOLDS], ids=["several", "thresholds"])
def test_on_two_gpus(tmp_path, rings, source):
    """Each device's figures are its own, and of one device everything is as the seed has it."""
    (tmp_path / "torch.py").write_text(TWO_GPUS, encoding="utf-8")
    done = run_python(source, tmp_path, rings, PYTHONPATH=f"{REPO / 'python'}:{tmp_path}", TIDEMARK_OFF="1")
    if source == SEVERAL:
        lines = done.stdout.splitlines()
        assert lines[:4] == ["==== GPU Memory Timeline =====",
                             "初始化               | Allocated:    0.0MB | Reserved:    0.0MB",
                             "a                    | Allocated:   10.0MB | Reserved:   20.0MB",
                             "b                    | Allocated:   10.0MB | Reserved:   20.0MB"]
        assert lines[5] == "初始化               | Allocated:   10.0MB | Reserved:   20.0MB | Device: cuda:0"
        assert lines[8] == "forward              | Allocated:  300.0MB | Reserved:  400.0MB | Device: cuda:1"


def test_example_program(tmp_path, rings):
    done = run_script([str(REPO / "examples" / "example_usage.py"), "logs"], tmp_path, rings)
    rows = [line.split(" | ") for line in done.stdout.splitlines()[1:-1]]
    assert len(rows) == 1 + 2 + 2 * (1 + 3 * 3)
    assert {len(row[0]) for row in rows[1:]} == {20}
    assert "- INFO - event: forward | allocated: " in done.stderr and "elapsed" in done.stderr
    path, log = done.stdout.splitlines()[-1].split()[1:]
    found = json.loads((tmp_path / path).read_text(encoding="utf-8"))
    assert len(found["forward"]) == 6
    # Four bytes a number: the frozen layer and both matrices; torch's blocks, to the byte.
    made = found["model made"][0]["allocated"] - found["training begins"][0]["allocated"]
    assert made * 1048576 == 4 * (1024 * 1024 + 1024 + 2 * 8 * 1024)
    assert (tmp_path / log).stat().st_size > 0


def test_switched_off(tmp_path, rings):
    """TIDEMARK=0: nothing is armed or said, and torch is not even imported; who opens the JSON finds one."""
    source = """
import json, sys
import tidemark
profiler = tidemark.GPUMemoryProfiler(log_dir="logs")
profiler.record("a")
profiler.record_detailed("b", {"x": None}, {})
profiler.print_report()
assert profiler.generate_summary_report()["total_events"] == 0
assert json.load(open(profiler.save_to_json(), encoding="utf-8")) == {}
assert profiler.save_to_json("mine.json") == "mine.json" and json.load(open("mine.json", encoding="utf-8")) == {}
profiler.cleanup()
tidemark.step()
assert not tidemark.is_watched() and "torch" not in sys.modules
"""
    done = run_python(source, tmp_path, rings, TIDEMARK="0")
    assert (done.stdout, done.stderr) == ("", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "mine.json", "script.py"]

    first, lora, *others = examples("s3.md", ["memoryCheck"])
    done = run_python("\n".join([PRELUDE, first, 'json.load(open(json_file, encoding="utf-8"))', lora,
                                 "train_lora_with_profiling()", *others,
                                 "if DEVICE == 'cuda': custom_memory_cleanup()"]), tmp_path, rings, TIDEMARK="0")
    assert "Allocated" not in done.stdout and done.stderr == ""
