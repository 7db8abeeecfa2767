# SPDX-License-Identifier: MIT
"""Snapshots, models and reports: their seed's examples, and their values against torch's."""
import re

from seeds_kit import examples, run_python
from torch_kit import query

IMPORTS = ["utils.loraTrain.quickMemoryDebug", "utils.loraTrain.trainWithMemoryDebug",
           "utils.loraTrain.memoryDebugger"]

# Sizes are such that torch's cache on a GPU has blocks of just those: it cuts none of which a MiB or less would be left.
PRELUDE = """
import tidemark, torch
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
create_model = create_your_model = lambda: torch.nn.Linear(512, 512, device=DEVICE)
create_dataloader = lambda: [torch.ones(8, 512, device=DEVICE)]
your_model = create_model()
kept = []
def your_training_function(n, scale=1):
    kept.append(torch.ones(n, device=DEVICE))
    return n * scale
def train_model(model, dataloader):
    kept.append(torch.ones(3 << 20, dtype=torch.uint8, device=DEVICE))
    return model
problematic_function = lambda: kept.append(torch.ones(2 << 20, dtype=torch.uint8, device=DEVICE))
num_epochs = 2
def train_epoch(model, dataloader):
    kept.append(torch.ones(106 << 20, dtype=torch.uint8, device=DEVICE))
"""

FIRST = """
assert result == 1 << 20
(change,) = [c for c in comparison["gpu_changes"] if c["device_id"] == 0]
assert change["memory_change"] == 4 << 20 and change["memory_change_mb"] == 4.0
assert abs(change["utilization_change"] - 100 * (4 << 20) / snapshot["gpu_memory"][0]["total"]) < 1e-9
assert snapshot["name"] == "before_training"
entry = snapshot["gpu_memory"][0]
assert set(entry) >= {"allocated", "reserved", "total", "utilization"}
assert entry["allocated"] == (torch.cuda.memory_allocated() - (4 << 20) if DEVICE == "cuda"
                              else your_model.weight.numel() * 4 + 512 * 4)
system = snapshot["system_memory"]
assert 0 < system["available"] < system["total"] and 0 < system["percent"] < 100
assert "before_training" in report and "my_model" in report
"""

LAST = """
assert "debug_model" in debug_memory_issue()
assert [c["memory_change_mb"] for c in comparison["gpu_changes"]][0] == 106.0
"""

MODELS = """
import tidemark.quick_memory_debug as quick

def check(model, name):
    found = analyze_model(model, name)
    parameters, buffers = list(model.parameters()), list(model.buffers())
    assert found["total_params"] == sum(p.numel() for p in parameters), name
    assert found["trainable_params"] == sum(p.numel() for p in parameters if p.requires_grad), name
    assert found["bytes"] == sum(t.numel() * t.element_size() for t in parameters + buffers), name
    assert found["bytes"] == sum(row["bytes"] for row in found["layer_groups"].values())
    assert found["summary"]["total_memory_mb"] == found["memory_mb"] == found["bytes"] / 1048576
    assert found["not_finite"] == []
    return found

class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(100, 16)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))
        self.lm_head = torch.nn.Linear(16, 100, bias=False)
        self.lm_head.weight = self.embedding.weight

tied = check(Tied(), "tied")
assert tied["total_params"] == 1600 + 3 * (256 + 16)
assert list(tied["layer_groups"]) == ["embedding", "layers.0", "layers.1", "layers.2", "lm_head"]
assert tied["layer_groups"]["lm_head"] == {"params": 0, "bytes": 0, "memory_mb": 0.0}
assert [(row["name"], row["tied_to"]) for row in tied["parameters"]][-1] == ("lm_head.weight", "embedding.weight")
row = tied["parameters"][0]
assert {key: row[key] for key in ("name", "shape", "dtype", "device", "bytes", "requires_grad")} == {
    "name": "embedding.weight", "shape": [100, 16], "dtype": "torch.float32", "device": "cpu", "bytes": 6400,
    "requires_grad": True}

shared = torch.nn.Sequential(torch.nn.Linear(16, 16, bias=False), torch.nn.Linear(16, 16, bias=False))
shared[1].weight = torch.nn.Parameter(shared[0].weight.data)  # another parameter, the same memory
found = analyze_model(shared, "shared")
assert found["bytes"] == 1024 and found["parameters"][1]["tied_to"] == "0.weight"

class Views(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64, 64))
        self.register_buffer("tail", self.weight.data[32:])
        self.register_buffer("turned", self.weight.data.t())
        self.register_buffer("expanded", torch.zeros(1).expand(1000000))
        flat = torch.ones(300)
        self.register_buffer("a", flat[:100])
        self.register_buffer("b", flat[100:])
        self.register_buffer("c", flat[50:150])
        self.register_buffer("gone", torch.ones(100))
        self.gone.storage().resize_(0)  # as FSDP does with what it has scattered

views = analyze_model(Views(), "views")
assert [(row["name"], row["bytes"], row["tied_to"]) for row in views["parameters"]] == [
    ("weight", 16384, None), ("tail", 0, "weight"), ("turned", 0, "weight"), ("expanded", 4, None), ("a", 400, None),
    ("b", 800, None), ("c", 0, "a"), ("gone", 0, None)], views["parameters"]
assert views["bytes"] == 16384 + 4 + 1200 and views["not_checked"] == []

class Sharded(torch.Tensor):  # as DTensor: what is here is a part, and whole sums would wait for other ranks
    def to_local(self):
        return self.as_subclass(torch.Tensor)[:2]
    def sum(self, *_, **__):
        raise SystemExit("a collective")
class Float4(torch.Tensor):
    def sum(self, *_, **__):
        raise NotImplementedError("sum is not made for Float4")
class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sharded", torch.ones(8, 4).as_subclass(Sharded))
        self.register_buffer("narrow", torch.ones(8).as_subclass(Float4))
        self.sharded[1, 2] = float("nan")
odd = analyze_model(Odd(), "odd")
assert [row["bytes"] for row in odd["parameters"]] == [32, 32] and odd["parameters"][0]["shape"] == [8, 4]
assert [(f["name"], f["index"]) for f in odd["not_finite"]] == [("sharded", [1, 2])], odd["not_finite"]
assert odd["not_checked"] == [{"name": "narrow", "reason": "sum is not made for Float4"}]

frozen = Tied().requires_grad_(False)
assert check(frozen, "frozen")["param_efficiency"] == 0.0

meta = check(torch.nn.Linear(1000, 1000, device="meta", dtype=torch.bfloat16), "meta")
assert meta["by_device"] == {"meta": {"params": 1001000, "bytes": 2002000, "memory_mb": 2002000 / 1048576}}

class Quantized(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.zeros(64, 64, dtype=torch.int8))
        self.register_buffer("scale", torch.ones(64, dtype=torch.float16))

assert check(Quantized(), "quantized")["by_dtype"]["torch.int8"]["bytes"] == 4096

class Packed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("q", torch.quantize_per_tensor(torch.ones(64, 64), 0.1, 0, torch.qint8))
        self.register_buffer("coo", torch.eye(4).to_sparse())
        self.register_buffer("csr", torch.eye(4).to_sparse_csr())

packed = analyze_model(Packed(), "packed")  # what sparse ones take are their indices and values
assert [row["bytes"] for row in packed["parameters"]] == [4096, 2 * 4 * 8 + 4 * 4, 5 * 8 + 4 * 8 + 4 * 4], packed
wrong = Packed()
wrong.csr.values()[2] = float("inf")
wrong.coo._values()[3] = float("nan")
found = analyze_model(wrong, "wrong")["not_finite"]
assert [(f["name"], f["kind"], f["index"]) for f in found] == [("coo", "NaN", [3]), ("csr", "Inf", [2])], found

class Lora(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(128, 128).requires_grad_(False)
        self.lora_A = torch.nn.Parameter(torch.ones(8, 128))
        self.lora_B = torch.nn.Parameter(torch.zeros(128, 8))

assert check(Lora(), "lora")["param_efficiency"] == 100 * 2048 / (128 * 129 + 2048)
assert check(torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Identity()), "buffers")["buffer_mb"] == 40 / 1048576
assert analyze_model(torch.nn.LazyLinear(3), "lazy")["total_params"] == 0
assert analyze_model(torch.nn.Identity(), "empty")["param_efficiency"] == 0.0

# One wrong element in one of 200 parameters, of each kind of number.
many = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(300, 70)) for _ in range(200))
assert analyze_model(many, "many")["not_finite"] == []
for place, value, kind in ((137, float("nan"), "NaN"), (3, float("-inf"), "Inf")):
    many[place].data[211, 13] = value
    (wrong,) = analyze_model(many, "many")["not_finite"]
    assert wrong == {"name": str(place), "kind": kind, "index": [211, 13], "flat_index": 211 * 70 + 13}
    many[place].data[211, 13] = 1
many[5].data.fill_(3e38)  # the sum is too large, the numbers are not
assert analyze_model(many, "many")["not_finite"] == []
for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.complex64):
    odd = torch.nn.Module()
    odd.register_buffer("long", torch.ones(3 << 20, dtype=dtype))
    odd.register_buffer("scalar", torch.tensor(float("nan"), dtype=dtype))
    odd.long[2500000] = float("inf")
    found = analyze_model(odd, "odd")["not_finite"]
    assert [(f["name"], f["kind"], f["index"]) for f in found] == [
        ("long", "Inf", [2500000]), ("scalar", "NaN", [])], (dtype, found)

# Whatever its kind and its shape, no more than some pieces of it are copied.
from tidemark import _figures
for dtype, shape in ((torch.bfloat16, (32 << 20,)), (torch.bfloat16, (1, 32 << 20)), (torch.float32, (1, 16 << 20)),
                     (torch.float16, (4096, 4096))):
    wide = torch.nn.Module()
    wide.register_buffer("x", torch.ones(shape, dtype=dtype))
    if shape == (4096, 4096):
        wide.x = wide.x.t()
    for value in (1.0, float("nan")):
        wide.x[..., -1] = value
        window = _figures.Window(_figures.HOST)
        found = analyze_model(wide, "wide")["not_finite"]
        assert window.peak() - window.before <= 10 << 20, (dtype, shape, window.peak() - window.before)
        place = [0] * (len(shape) - 1) + [shape[-1] - 1]
        assert [f["index"] for f in found] == ([] if value == 1.0 else [place]), found

(large,) = analyze_model(torch.nn.Linear(512, 512), "large", large_mb=1.0)["large_parameters"]
assert large["name"] == "weight"

used = quick._take("now")["gpu_memory"][0]["allocated_mb"]
issues = check_memory_status(threshold_mb=used - 1)
assert [i["type"] for i in issues] == ["over_threshold"] and issues[0]["used_mb"] == used
assert "not_free" in [i["type"] for i in check_memory_status(threshold_mb=1e9)]
assert check_memory_status(threshold_mb=used + 1) == []
kept.clear()
if DEVICE == "cuda":
    torch.cuda.empty_cache()
quick.history.extend([quick.history[-1]] * 2000)
assert len(quick.history) == 1000
assert generate_report("report.txt") == open("report.txt", encoding="utf-8").read()
try:
    monitor_function(lambda: 1 / 0)
    raise SystemExit("not raised")
except ZeroDivisionError:
    pass
"""


STAGES = """
stages = report["stages"]
assert [s["name"] for s in stages] == ["model_creation", "data_loading", "training"]
assert [s["gpu_changes"][0]["memory_change"] for s in stages] == [513 * 512 * 4, 8 * 512 * 4, 3 << 20]
assert report["total_change_mb"] == sum(s["memory_change_mb"] for s in stages)
assert report["largest_stage"] == "training" and trained_model is model
sizes = [s["gpu_memory"][0]["allocated"] for s in stages]
assert [s["gpu_changes"][0]["peak"] for s in stages] == sizes  # none of them frees anything
assert report["peak_stage"] == "training" and report["peak_mb"] == stages[2]["peak_mb"] == sizes[2] / 1048576
import glob, json

# Stages within a stage, and a window around them: each has its own peak.
from tidemark import _figures
number = _figures.CARD if DEVICE == "cuda" else _figures.HOST
outer, base = _figures.Window(number), _figures.figures(number).allocated
make = lambda n: torch.ones(n << 20, dtype=torch.uint8, device=DEVICE)
def inside():
    make(40)
    profiler.profile_stage("small", make, 20)
    profiler.profile_stage("large", make, 60)
    make(22)
with memory_profiled_training() as profiler:
    profiler.profile_stage("outside", inside)
    profiler.profile_stage("after", make, 24)
    names = [(s["name"], (s["gpu_changes"][0]["peak"] - base) >> 20) for s in profiler.stages]
assert names == [("small", 20), ("large", 60), ("outside", 60), ("after", 24)], names
assert outer.peak() == base + (60 << 20) == outer.peak()

# Where libtidemark does not hear torch's blocks a GPU's peaks are torch's, begun anew by each window.
import types
card = types.SimpleNamespace(now=7, peak=9, resets=[])
def allocate(n):
    card.now, card.peak = card.now + n, max(card.peak, card.now + n)
def reset(index):
    card.peak = card.now
    card.resets.append(index)
names = ("torch_or_none", "is_in_use", "ask_torch", "tally_function", "_counted_peak")
known = {name: getattr(_figures, name) for name in names}
vars(_figures).update(
    torch_or_none=lambda: types.SimpleNamespace(cuda=types.SimpleNamespace(reset_peak_memory_stats=reset)),
    is_in_use=lambda torch: True, tally_function=lambda: _figures._unknown, _counted_peak=lambda number: None,
    ask_torch=lambda number: _figures.Figures(0, card.now, card.now, card.peak, card.peak))
outside = _figures.Window(_figures.CARD + 3)
assert (outside.before, outside.peak(), card.resets) == (7, 7, [3])
allocate(100); allocate(-100)
inside = _figures.Window(_figures.CARD + 3)
allocate(30); allocate(-30)
assert (inside.peak(), outside.peak(), card.peak, card.resets) == (37, 107, 37, [3, 3])
_figures._counted_peak = lambda number: 50  # it does from here on
assert (inside.peak(), outside.peak()) == (50, 107)
_figures._counted_peak = lambda number: 60
counted = _figures.Window(_figures.CARD + 3)
_figures._counted_peak = lambda number: None  # and no more: nobody knows
assert counted.peak() is None and card.resets == [3, 3]
vars(_figures).update(known)

# What helpers take is no stage's.
from tidemark import _helpers, training_stages
clock = types.SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
training_stages.time, _helpers.time = clock, clock
def helped():
    clock.now += 1.0
    with _helpers.helper(), _helpers.helper():
        clock.now += 60.0
    clock.now += 2.0
with memory_profiled_training() as profiler:
    profiler.profile_stage("helped", helped)
    assert profiler.stages[0]["duration_s"] == 3.0
training_stages.time = _helpers.time = __import__("time")
try:
    with memory_profiled_training("logs") as profiler:
        profiler.profile_stage("fails", lambda: 1 / 0)
    raise SystemExit("not raised")
except ZeroDivisionError:
    (written,) = glob.glob("logs/training_report_*.json")
    assert json.load(open(written, encoding="utf-8"))["stages"][0]["error"] == "ZeroDivisionError"
"""


DEBUGGER = """
import os, time
change = comparison["gpu_changes"][0]
assert change["memory_change"] == 2 << 20 and "after_problem" in report
log, written = sorted(os.listdir("logs/memory_debug"))
assert log.startswith("memory_debug_") and log.endswith(".log") and written.startswith("memory_report_")
assert debugger.log_file == "logs/memory_debug/" + log
try:
    debugger.compare_checkpoints("start", "nowhere")
    raise SystemExit("not raised")
except KeyError as reason:
    assert "start, after_problem" in str(reason)
"""

REMEMBERS = """
# A report after the alarms are over has them, and when; the peak, of snapshots and between them; history; stages.
from datetime import datetime
remembers = create_memory_debugger("remembers")
began, bulk = datetime.now().isoformat(), lambda n: torch.empty(n << 20, dtype=torch.uint8, device=DEVICE)
base = remembers.create_memory_checkpoint("start")["gpu_memory"][0]["allocated_mb"]
held = bulk(300)
remembers.create_memory_checkpoint("first")
remembers.create_memory_checkpoint("same")
more = bulk(400)
remembers.create_memory_checkpoint("second")
del held, more
bulk(1000)
with memory_profiled_training() as profiler:
    profiler.profile_stage("a stage", bulk, 90)
last = remembers.create_memory_checkpoint("end")
assert remembers.issues == remembers._check_memory_anomalies() == []
past = remembers.past_issues
assert [(p["type"], p["growth_mb"]) for p in past] == [("sudden_growth", 300.0), ("sudden_growth", 400.0)]
assert all(began < p["timestamp"] < p["until"] < datetime.now().isoformat() for p in past)
assert last["gpu_memory"][0]["peak_since_mb"] == base + 1000.0
(label,) = {"GPU 0" if DEVICE == "cuda" else "CPU"}
lines = remembers.generate_memory_report().splitlines()
at = lines.index("峰值 (同时分配)")
assert lines[at + 1].startswith(f"  {label}  {base + 1000:.1f}MB; 最大快照: {base + 700:.1f}MB, second, 20")
(end,) = [line.split() for line in lines if line.startswith("  end  ")]
assert [word for word in end if word.endswith("MB")][:3] == [f"{base:.1f}MB", "-700.0MB", f"{base + 1000:.1f}MB"], end
(stage,) = [line.split() for line in lines if line.startswith("  a stage ")]
assert stage[2:4] == ["+90.0MB", f"{base + 90:.1f}MB"]
assert [line[line.index(f"  {label} "):] for line in lines if "内存异常增长" in line] == [
    f"  {label} 内存异常增长: +{n}.0MB > 100.0MB" for n in (300, 400)], lines
at = lines.index("内存历史: 5 个快照, 重复的只列一次 (时间, 分配, 保留, 利用率)")
assert [line.split()[2] for line in lines[at + 1:]] == ["start", "first", "same", "second", "end"]
for text in (tidemark.generate_report(),):  # the simple functions' report too
    assert "峰值 (同时分配)" in text and "  a stage " in text and f"{label} 内存使用超过阈值" in text
    assert any(line.split()[2:3] == ["second"] and line.startswith("  20") for line in text.splitlines())

# One that lasts has no end; it is said once, and its figures are the last ones.
lasts = tidemark.MemoryDebugger()
for n in range(9, 13):
    lasts.memory_history = ({"gpu_memory": [{"device_id": 0, "kind": "GPU", "allocated_mb": 50.0 * i, "utilization": 1.0,
                                             "reserved": None}]} for i in range(n))
    lasts._check_memory_anomalies()
(leak,) = lasts.past_issues
assert leak["until"] is None and leak["type"] == "leak" and leak["growth_mb"] == lasts.issues[0]["growth_mb"]
assert "至今" in "".join(lasts._report_lines()) and isinstance(lasts.memory_history, list)

# A threshold that is set stays: for checkpoints, in real time, in reports.
assert [i["type"] for i in lasts._check_memory_anomalies(threshold_mb=40.0)] == ["sudden_growth", "leak"]
assert [i["type"] for i in lasts._check_memory_anomalies()] == ["sudden_growth", "leak"]
assert lasts._check_memory_anomalies(threshold_mb=5000.0) == [] == lasts._check_memory_anomalies()
assert all(p["until"] for p in lasts.past_issues)

# The log: all that is said, whatever logging is set to, in files of bounded size.
text = open(remembers.log_file, encoding="utf-8").read()
assert text.count("内存异常增长") == 3 and " - WARNING - " in text and "获取内存快照: second" in text
import logging
from tidemark import _log_file
logger = logging.getLogger("tidemark")
logger.setLevel(logging.ERROR)
tidemark.memory_snapshot("not shown")
logger.addHandler(logging.NullHandler())
tidemark.memory_snapshot("nor handled")
logger.setLevel(logging.DEBUG)
logger.debug("below")
logger.setLevel(logging.NOTSET)
logger.handlers.clear()
text = open(remembers.log_file, encoding="utf-8").read()
assert [text.count(name) for name in ("not shown", "nor handled", "DEBUG - below")] == [1, 1, 1]
small = _log_file.LogFile("small", "log", max_bytes=2000, backups=2)
for i in range(200):
    small.write(f"line {i}")
small.close()
sizes = [os.path.getsize("small/" + name) for name in os.listdir("small")]
assert len(sizes) == 3 and max(sizes) <= 2000, sizes
assert "line 199" in open(small.path, encoding="utf-8").read()
n_listeners = len(_log_file.listeners)
path = remembers.log_file
del remembers
import gc
gc.collect()
assert len(_log_file.listeners) == n_listeners - 1  # its log ends with it
open("a file", "w").close()
assert tidemark.MemoryDebugger("a file/logs").log_file is None  # said, and no more
full = _log_file.LogFile("full", "log")
full.stream.close()
full.stream = open("/dev/full", "w")
tidemark.memory_snapshot("full")
tidemark.memory_snapshot("goes on")
assert full not in _log_file.listeners
child = os.fork()
if child == 0:
    logger.setLevel(logging.CRITICAL)
    tidemark.memory_snapshot("of a child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert "of a child" not in open(debugger.log_file, encoding="utf-8").read()
"""

REAL_TIME = """
assert report == open("custom_report.txt", encoding="utf-8").read()
from tidemark._helpers import helped_s
helped = [helped_s()]
debugger.start_real_time_monitoring(interval=0.01)
helped.append(helped_s())
debugger.get_status_report()
helped.append(helped_s())
assert helped == sorted(set(helped))  # the monitor is a helper: stages are not charged for it
deadline = time.monotonic() + 30
while len(debugger.memory_history) < 5 and time.monotonic() < deadline:
    time.sleep(0.01)
debugger.stop_monitoring()
assert len(debugger.memory_history) >= 5
assert debugger._check_memory_anomalies() == []

from tidemark.memory_debugger import anomalies
def history(*sizes, total=1000.0):
    return [{"gpu_memory": [{"device_id": 0, "kind": "GPU", "allocated_mb": size,
                             "utilization": 100 * size / total}]} for size in sizes]
def types(*sizes, **more):
    return [issue["type"] for issue in anomalies(history(*sizes, **more), 50.0)]
assert types(10) == types(10, 60) == types(500, 10) == []
assert types(10, 61) == ["sudden_growth"]
assert types(901, 901) == ["over_use"]
full = history(400, 400)
full[-1]["gpu_memory"][0].update(reserved=950, total=1000)  # of torch's cache
(found,) = anomalies(full, 50.0)
assert (found["type"], found["of"], found["utilization"]) == ("over_use", "reserved", 95.0)
assert found["message"] == "GPU 0 内存过度使用: 95.0% 被torch保留, 已分配 40.0%", found

from tidemark import MemoryDebugger, memory_debugger
fast, looks = MemoryDebugger(), []
memory_debugger.LOOK_S = 3600.0
whole = fast._check_memory_anomalies
fast._check_memory_anomalies = lambda threshold_mb: looks.append(1) or whole(threshold_mb)
for sizes in (range(0, 90, 10), (90, 95), (95, 500), (500, 500)):
    for snapshot in history(*sizes):
        snapshot["gpu_memory"][0]["reserved"] = None
        fast._keep(snapshot)
        fast._check_in_time(50.0)
        if len(fast.memory_history) == 9:
            fast._looked_s = float("-inf")  # much later
            fast._check_in_time(50.0)
            assert [issue["type"] for issue in fast.issues] == ["leak"]
        if sizes == (95, 500):
            grown = [issue["type"] for issue in fast.issues]
    if sizes == (95, 500):
        assert grown == ["sudden_growth", "leak"]  # at once; what lasts is kept
assert [issue["type"] for issue in fast.issues] == ["leak"] and len(looks) == 2
assert types(*range(0, 90, 10)) == ["leak"]
assert types(*range(0, 54, 6)) == []             # less than the threshold
assert types(0, 30, 10, 40, 20, 50, 30, 60, 40, 70, 50, 80) == [] # swings, and its floor rises by 50: the threshold
assert types(0, 30, 10, 40, 20, 50, 30, 60, 40, 70, 50, 80, 60, 90) == ["leak"]
assert types(*[0, 40] * 10) == types(90, 40, 90, 40, 90, 40, 90, 40, 90, 40) == []
assert types(0, 40, 40, 40, 40, 40, 40, 80, 120) == [] # a plateau
assert types(*range(0, 70, 10)) == []            # too few
assert types(*range(0, 58, 1)) == ["leak"] and types(*range(0, 51, 1)) == [] # slowly, over all of them
assert types(*range(100, 400, 20), *[400] * 300) == [] # has ended
debugger.memory_history = history(*range(3000))
debugger.create_memory_checkpoint("last")
assert len(debugger.memory_history) == 1000
"""


def test_examples(tmp_path, rings):
    """Those of the simple functions, under zh_CN; values against torch's."""
    blocks = examples("s2.md", IMPORTS)
    start, develop, check, loop, issue, stages, diagnose, logs, monitoring, reports = (next(b for b in blocks if text in b) for text in (
        "your_training_function", "development_model", "pre_training", "train_epoch(model",
        "def debug_memory_issue", "profiler.profile_stage", "problematic_function", "custom_logs/",
        "_check_memory_anomalies", "custom_report.txt"))
    known = (start, develop, check, loop, issue, stages, diagnose, logs, monitoring, reports)
    assert [block for block in blocks if block not in known and
            not re.search("import debug_(lora_training|memory_with_different_configs)", block)] == []
    start = start.replace("your_training_function, args...", "your_training_function, 1 << 20")
    source = "\n".join([PRELUDE, start, FIRST, develop, check, "dataloader = create_dataloader()",
                        "from tidemark import compare_snapshots", loop, issue, LAST, MODELS, stages, STAGES, diagnose,
                        DEBUGGER, REMEMBERS, logs, monitoring, reports, REAL_TIME])
    done = run_python(source, tmp_path, rings, LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1")
    said = done.stderr.splitlines()
    assert said[0] == "[INFO] 获取内存快照: before_training"
    assert said[1].startswith(("[INFO]   CPU: 1.0MB / ", "[INFO]   GPU 0: 1.0MB / "))
    at = said.index("[INFO] 快速分析模型: my_model")
    assert said[at + 1:at + 5] == ["[INFO]   总参数: 262,656", "[INFO]   可训练参数: 262,656",
                                   "[INFO]   内存占用: 1.00 MB", "[INFO]   参数效率: 100.00%"]
    at = said.index("[INFO] 比较内存快照: epoch_0_start vs epoch_0_end")
    assert said[at + 1].partition(": ")[2].startswith("内存变化 +106.0MB, 利用率变化 +")
    assert "[ERROR] 参数包含NaN: 137 (211, 13)" in said
    assert "[WARNING] 大参数检测: weight (1.00 MB)" in said
    assert any("内存使用超过阈值: " in line for line in said)
    at = said.index("[INFO] 训练阶段内存报告 (变化, 峰值, 时间)")
    assert said[at + 3].split()[:3] == ["[INFO]", "training", "+3.0MB"]
    assert len([line for line in said if line.startswith("[WARNING] 无法写入日志: ")]) == 1
    assert len([line for line in said if line.startswith("[WARNING] 日志停止写入: ")]) == 1
    assert query(tmp_path / "run.tmk", "SELECT DISTINCT stage FROM allocations WHERE size = 3 << 20") == [["training"]]
    assert done.stdout.splitlines() == ["模型内存占用: 1.00 MB", "参数效率: 100.00%"]


def test_without_torch(tmp_path, rings):
    """What needs none works; the rest says what to install. So it is with a torch that cannot be imported."""
    source = """
import sys
if BROKEN:
    sys.path.insert(0, "broken")
else:
    sys.modules["torch"] = None
from tidemark import *
from tidemark.lora_training import LoraConfig, build_model, run
assert memory_snapshot("a")["gpu_memory"][0]["kind"] == "CPU" and check_memory_status(1) == []
with memory_profiled_training() as profiler:
    assert profiler.profile_stage("a", max, 1, 2) == 2
for needs in (lambda: analyze_model(None), lambda: check_gradients(None), lambda: debug_lora_training({}),
              lambda: debug_memory_with_different_configs({}, {"a": {}}), lambda: build_model(LoraConfig()),
              lambda: run(LoraConfig())):
    try:
        needs()
        raise SystemExit("not raised")
    except ImportError as reason:
        assert (BROKEN or "which is not installed: pip install torch") in str(reason), reason
"""
    broken = tmp_path / "broken" / "torch"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise OSError('libcudart.so.13: no such file')", encoding="utf-8")
    for text in ("", "cannot be imported (OSError: libcudart.so.13: no such file)"):
        run_python(f"BROKEN = {text!r}\n{source}", tmp_path, rings)


def test_switched_off(tmp_path, rings):
    """TIDEMARK=0: the same keys, the function is called, nothing is said, torch is not imported."""
    source = """
import sys
from tidemark import *
snapshot = memory_snapshot("a")
assert snapshot["gpu_memory"] == []
assert compare_snapshots(snapshot, snapshot)["gpu_changes"] == []
assert monitor_function(max, 3, 4)[0] == 4
assert f"{analyze_model(None)['memory_mb']:.2f}" == "nan" and check_memory_status() == []
assert cleanup_memory()["gpu_changes"] == [] and generate_report("file") == ""
assert "torch" not in sys.modules
"""
    done = run_python(source, tmp_path, rings, TIDEMARK="0")
    assert (done.stdout, done.stderr) == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]
