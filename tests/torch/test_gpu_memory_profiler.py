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
kept = [torch.empty(n << 20, dtype=torch.uint8, device=DEVICE) for n in (3, 5, 7)]
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
assert [size - sizes[0] for size in sizes] == [0, 15, 8, 8] and sizes[0] == before / 1048576
assert found["three"][0]["max_allocated"] == found["two"][0]["max_allocated"] >= sizes[0] + 15
if DEVICE == "cuda":
    last = found["cache given back"][0]
    assert last["reserved"] == torch.cuda.memory_reserved() / 1048576
assert [entry["info"] for entry in found["many"]] == [str(i) for i in range(2000)]

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

import gc, threading, weakref
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
    done = run_script([str(REPO / "examples" / "gpu_memory_profiler.py"), "logs"], tmp_path, rings)
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
    """TIDEMARK=0: nothing is armed, written or said, and torch is not even imported."""
    source = """
import sys
import tidemark
profiler = tidemark.GPUMemoryProfiler(log_dir="logs")
profiler.record("a")
profiler.record_detailed("b", {"x": None}, {})
profiler.print_report()
assert profiler.generate_summary_report()["total_events"] == 0
assert profiler.save_to_json() == ""
profiler.cleanup()
tidemark.step()
assert not tidemark.is_watched() and "torch" not in sys.modules
"""
    done = run_python(source, tmp_path, rings, TIDEMARK="0")
    assert (done.stdout, done.stderr) == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]
