# SPDX-License-Identifier: MIT
"""GPUMemoryProfiler: its seed's examples, and its figures against bytes that torch has."""
import json
import re

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
assert list(made) == ["time", "allocated", "reserved", "max_allocated", "max_reserved", "timestamp"]
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
if DEVICE == "cuda":
    last = found["cache given back"][0]
    assert last["reserved"] == torch.cuda.memory_reserved() / 1048576
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
    assert re.fullmatch(r"初始化 {15}\| Allocated: +4[.]0MB \| Reserved: +\d+[.]\dMB", lines[1])
    assert lines[2].startswith("模型创建             | Allocated: ")
    assert "Epoch 2 开始         | Allocated: " in done.stdout
    log = next((tmp_path / "logs" / "my_training").glob("memory_profiler_*.log")).read_text(encoding="utf-8")
    name = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d - MemoryProfiler_\d{8}_\d{6} - INFO - "
    expected = ["=" * 80, "GPU内存分析器初始化", "=" * 80, r"日志文件: logs/my_training/memory_profiler_\d+_\d+[.]log",
                "CUDA可用: (True|False)", r"GPU数量: \d+", r"(GPU 0|CPU): .* \(\d+[.]\dGB\)",
                r"事件: 模型创建 \| 分配: +4[.]0MB \| 保留: +\d+[.]\dMB \| 最大分配: +4[.]0MB \| "
                r"最大保留: +\d+[.]\dMB \| 耗时: \d+[.]\d\ds"]
    for pattern, line in zip(expected, log.splitlines()):
        assert re.fullmatch(name + pattern, line), line
    assert log in done.stderr  # the console has the same
    (left,) = (tmp_path / "left").glob("*.log")
    assert "the last words" in left.read_text(encoding="utf-8")


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
