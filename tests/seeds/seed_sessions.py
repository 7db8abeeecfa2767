# SPDX-License-Identifier: MIT
"""The seeds' examples run as they stand, on CUDA where it is and on the CPU elsewhere.

Each seed's Python blocks run in their order in one process; only the lines that import are changed, and the names that a
reader fills in (`your_model`, `config`) have small ones behind them. After each block what tidemark says of the device is
compared with what torch says. S5's blocks are asked of a training that runs meanwhile. What is found is told to `add`, a
function like Checks.add of tests/gpu; tests/seeds and tests/gpu/check_seeds.py are its callers."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch"))

import torch_kit  # noqa: E402
from seed_blocks import seed_block, seed_blocks  # noqa: E402
from seed_samples import missing_keys, missing_lines  # noqa: E402
from seeds_kit import seed_environment  # noqa: E402

LIMIT_S = 240
IMPORT = re.compile(r"^from (tools[.]memory|utils[.]loraTrain[.]\w+|memoryCheck) import", re.M)

#: Before S2's first block: all that its blocks leave to the reader. The model has a parameter of over 100 MB. Blocks are
#: small, or so large that torch's cache on a GPU has none that is a little larger.
S2_FIRST = """
small_model = lambda: torch.nn.Linear(512, 512, device=DEVICE)
your_model = torch.nn.Linear(5200, 5200, device=DEVICE)
kept = []
def keep(size):
    kept.append(torch.ones(size, dtype=torch.uint8, device=DEVICE))
your_training_function = lambda size: keep(size) or size
problematic_function = lambda: keep(32 << 20)
create_model = small_model
def create_your_model():
    model = small_model()
    model.weight.data[3, 5] = float("nan")
    return model
create_dataloader = lambda: [torch.ones(8, 512, device=DEVICE)]
train_model = lambda model, dataloader: keep(48 << 20) or model
train_epoch = lambda model, dataloader: keep(106 << 20)
num_epochs = 2
config = {"r": 4, "alpha": 8, "num_steps": 2, "batch_size": 4, "seq_length": 32, "num_hidden_layers": 2, "vocab_size": 300}
load_config = lambda: config
dataloader = [{"input_ids": torch.randint(300, (4, 32))} for _ in range(2)]
from tidemark import compare_snapshots
"""

S3_FIRST = """
input_tensor = torch.ones(1 << 20, device=DEVICE)
output_tensor = torch.ones(3, 5, device=DEVICE)
r, hidden_size, num_epochs, dataloader = 8, 256, 2, [torch.ones(4, 4, device=DEVICE)] * 2
weight = torch.ones(4, 4, device=DEVICE, requires_grad=True)
model = lambda batch: (batch @ weight).sum()
optimizer = torch.optim.SGD([weight], lr=0.1)
threshold, max_size, log_file = 10, 1 << 30, __file__
"""

#: What runs before a block, and what after it.
BEFORE = {"S2.1": S2_FIRST, "S2.9": "debugger = create_memory_debugger(log_dir='again')", "S3.1": S3_FIRST}
AFTER = {
    "S2.1": """
(change,) = [change for change in comparison["gpu_changes"] if change["device_id"] == 0]
tell("the function's change is its block", result == 64 << 20 == change["memory_change"], change=change)
tell("the model's bytes are its parameters'", model_analysis["memory_mb"] * 1048576 == sum(
    p.numel() * p.element_size() for p in your_model.parameters()), memory_mb=model_analysis["memory_mb"])
tell("the report names snapshot and model", "before_training" in report and "my_model" in report)
kept.clear(); del your_model, model_analysis, comparison
""",
    "S2.2": """
tell("the analysis counts what is allocated for the model", abs(debug_results["creation_analysis"]["summary"][
    "total_memory_mb"] * 1048576 - sum(p.numel() * p.element_size() for p in trained_model.parameters())) < 65536)
tell("it was trained", len(debug_results["losses"]) == 2 and debug_results["memory_issues"] == [])
del trained_model
""",
    "S2.4": "tell('share of what is trained', analysis['param_efficiency'] == 100.0)",
    "S2.5": """
sizes = {stage["name"]: stage["gpu_changes"][0]["memory_change"] for stage in report["stages"]}
tell("each stage has its bytes", sizes == {"model_creation": 513 * 512 * 4, "data_loading": 8 * 512 * 4,
                                           "training": 48 << 20}, sizes=sizes)
""",
    "S2.6": "tell('what came between', comparison['gpu_changes'][0]['memory_change'] == 32 << 20 and "
            "'after_problem' in report)",
    "S2.7": "tell('the smallest rank needs least', best_config[0] == 'small_r' and len(results) == 3)",
    "S2.8": """
tell("the log's level is DEBUG", logging.getLogger().level == logging.DEBUG)
tell("it looks in real time, when asked to", debugger.is_monitoring and not create_memory_debugger().is_monitoring)
tell("its log is in the folder", os.path.dirname(debugger.log_file) == "custom_logs/memory_debug" and
     os.path.getsize(debugger.log_file) > 0, log_file=debugger.log_file)
logging.getLogger().handlers.clear()
logging.getLogger().setLevel(logging.WARNING)
debugger.stop_monitoring()
""",
    "S2.10": """
tell("the report is the file", open("custom_report.txt", encoding="utf-8").read() == report != "")
debugger.stop_monitoring()
""",
    "S2.16": "tell('each epoch keeps 106 MB', comparison['gpu_changes'][0]['memory_change_mb'] == 106.0)\nkept.clear()",
    "S2.17": "tell('the report has it', 'debug_model' in debug_memory_issue())",
    "S3.1": """
tell("three events", summary["total_events"] == 3)
saved = json.load(open(json_file, encoding="utf-8"))["训练步骤"][0]
tell("the JSON has torch's figures", not IS_CUDA or (saved["allocated"], saved["reserved"]) == tuple(
    size / 1048576 for size in (torch.cuda.memory_allocated(), torch.cuda.memory_reserved())), saved=saved)
""",
    "S3.2": "train_lora_with_profiling()",
    "S3.8": "if IS_CUDA: custom_memory_cleanup()",
}

#: A block after the other, in names of their seed. `tell` writes what was found.
RUNNER = """
import gc, json, os, sys
import tidemark, torch
IS_CUDA = torch.cuda.is_available()
DEVICE = "cuda" if IS_CUDA else "cpu"
found = []
def tell(what, ok, **figures):
    found.append({"check": what, "ok": bool(ok), **figures})

def torch_says():
    '''What is allocated: of a GPU torch counts it, of the CPU it is what its tensors hold.'''
    if IS_CUDA:
        return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    gc.collect()
    tensors = [thing for thing in gc.get_objects() if isinstance(thing, torch.Tensor)]
    tensors += [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    size = sum({tensor.storage().data_ptr(): tensor.storage().nbytes() for tensor in tensors}.values())
    return size, None  # what the C library has reserved for them is not known

def compare():
    from tidemark.quick_memory_debug import _take
    entry, right = _take("now")["gpu_memory"][0], torch_says()
    tell("allocated and reserved are torch's", (entry["allocated"], entry["reserved"]) == right,
         found=[entry["allocated"], entry["reserved"]], torch=right)

seeds = {}
for name, before, block, after in json.loads(BLOCKS):
    names = seeds.setdefault(name.partition(".")[0], {
        "__name__": "__main__", "__file__": __file__, "torch": torch, "tell": tell, "DEVICE": DEVICE, "IS_CUDA": IS_CUDA,
        "json": json, "os": os})
    for source in (before, block, after):
        exec(compile(source, name, "exec"), names)
    compare()
    for line in found:
        print("told", json.dumps({**line, "check": f"{name}: {line['check']}"}), flush=True)
    found.clear()
"""


def as_it_stands(block, is_cuda):
    """But for the lines that import, for `args...`, and for a GPU that is not there."""
    text = IMPORT.sub("from tidemark import", block.text)
    text = text.replace("your_training_function, args...", "your_training_function, 64 << 20")
    return text if is_cuda else text.replace("device='cuda'", "device='cpu'")


def check_python(add, folder, rings):
    """All Python blocks of S2 and S3 in one process; then what they printed and wrote, against the seeds' samples."""
    is_cuda = has_cuda()
    blocks = [(block.name, BEFORE.get(block.name, ""), as_it_stands(block, is_cuda), AFTER.get(block.name, ""))
              for seed in ("S2", "S3") for block in seed_blocks(seed, "python")]
    source = f"BLOCKS = {json.dumps(blocks)!r}\n{RUNNER}"
    (folder / "blocks.py").write_text(source, encoding="utf-8")
    done = subprocess.run([torch_kit.PYTHON, "blocks.py"], cwd=folder, capture_output=True, text=True, encoding="utf-8",
                          timeout=LIMIT_S, check=False,
                          env=seed_environment(folder, rings, LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1"))
    tell_all(add, done.stdout)
    add("S2 and S3: every block ends well", done.returncode == 0 and "Traceback" not in done.stderr,
        said=done.stderr[-2000:] if done.returncode else "")
    if done.returncode == 0:
        check_samples(add, folder, done.stdout.splitlines(), done.stderr.splitlines())


def tell_all(add, text):
    for line in text.splitlines():
        if line.startswith("told "):
            told = json.loads(line[5:])
            add(told.pop("check"), told.pop("ok"), **told)


def is_true(expression, module):
    """In the Python that has torch."""
    done = subprocess.run([torch_kit.PYTHON, "-c", f"import {module}; print(bool({expression}))"], text=True,
                          capture_output=True, check=True)
    return done.stdout == "True\n"


def has_cuda():
    return is_true("torch.cuda.is_available()", "torch")


NAMES = ("training_start", "before_training", "after_training", "lora_model", "model.lm_head.weight",
         "model.layers.0.attention.q_proj.weight")


def check_samples(add, folder, printed, said):
    """The seeds' sample outputs, line by line, other figures aside."""
    logs = [line for path in sorted(folder.glob("logs/*/memory_profiler_*.log"))
            for line in path.read_text(encoding="utf-8").splitlines()]
    for sample, lines in (("S2.11", said), ("S2.12", said), ("S2.13", said), ("S2.14", said), ("S3.3", printed),
                          ("S3.4", logs)):
        missing = missing_lines(sample, lines, NAMES)
        add(f"{sample}: printed as the sample has it", missing == [], missing=missing)
    (saved,) = folder.glob("logs/lora_training/memory_profiler_*.json")
    (made,) = folder.glob("logs/my_training/memory_profiler_*.json")
    found = {**json.loads(made.read_text(encoding="utf-8")), **json.loads(saved.read_text(encoding="utf-8"))}
    missing = missing_keys(json.loads(seed_block("S3.5").text), found)
    add("S3.5: the JSON has the sample's keys", missing == [], missing=missing)
    stamp = found["训练开始"][0]["timestamp"]
    add("S3.5: times are as the sample's", re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.]\d{6}", stamp), stamp=stamp)


# ---- S1: devices watched

#: A risk that the sample shows, and one that its callback acts upon, are said by a strategy: no machine has them at will.
S1_AFTER = {
    "S1.2": "tell('the report has a device and a sum', report['summary']['total_devices'] == len(report['devices']) > 0)",
    "S1.3": "detector.stop_monitoring()",
    "S1.10": """
detector.stop_monitoring()
from tidemark import OOMDetector, OOMPrediction, RiskLevel
def risky(level, callback=None):
    def strategy(samples):
        return OOMPrediction(samples[-1].device_id, level, 45.2, 0.82, 87.3, 1e8, ["准备释放缓存", "考虑减少batch size"])
    detector = OOMDetector(threshold=100, warning_callback=callback, strategy=strategy, devices=[0])
    detector.start_monitoring()
    until(lambda: detector.warnings)
    detector.stop_monitoring()
risky(RiskLevel.HIGH)
risky(RiskLevel.CRITICAL, custom_oom_callback)
""",
    "S1.11": "tell('the level is DEBUG', logging.getLogger().level == logging.DEBUG)\ndebugger.stop_monitoring()",
}

S1_RUNNER = """
import json, time
def until(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)

names = {"until": until}
for name, block, after in json.loads(BLOCKS):
    names["tell"] = lambda what, ok: print("told", json.dumps({"check": f"{name}: {what}", "ok": bool(ok)}), flush=True)
    for source in (block, after):
        exec(compile(source, name, "exec"), names)
"""


def check_monitors(add, folder, env):
    """S1's Python blocks in one process, on the devices that this environment shows."""
    blocks = [(block.name, as_it_stands(block, True), S1_AFTER[block.name]) for block in seed_blocks("S1", "python")]
    (folder / "blocks.py").write_text(f"BLOCKS = {json.dumps(blocks)!r}\n{S1_RUNNER}", encoding="utf-8")
    done = subprocess.run([torch_kit.PYTHON, "blocks.py"], cwd=folder, capture_output=True, text=True, encoding="utf-8",
                          timeout=LIMIT_S, check=False, env={**env, "LC_ALL": "zh_CN.UTF-8", "PYTHONUTF8": "1"})
    tell_all(add, done.stdout)
    add("S1: every block ends well", done.returncode == 0 and "Traceback" not in done.stderr, said=done.stderr[-2000:])
    if done.returncode != 0:
        return
    lines = done.stdout.splitlines()
    add("S1.2: the summary is printed", any(re.match("监控摘要: .", line) for line in lines))
    report = json.loads((folder / "memory_report.json").read_text(encoding="utf-8"))
    missing = missing_keys(json.loads(seed_block("S1.8").text), report)
    add("S1.8: the report has the sample's keys", missing == [], missing=missing)
    missing = missing_lines("S1.9", done.stderr.splitlines())
    add("S1.9: the warning is as the sample", missing == [], missing=missing)
    add("S1.10: the callback acts", "Critical OOM risk on GPU 0! Taking action..." in lines)
    add("S1.11: samples are logged", "DEBUG:tidemark:sample: {" in done.stderr)


# ---- S5: a training that is asked while it runs

#: Six steps of which each keeps 16 MB. Hooks of its own write down what torch has allocated when each module begins and
#: ends; on the CPU, where torch counts nothing, what libtidemark has counted in the process. Then it waits.
TRAINING = """
import json, os, sys, types
import torch
from tidemark.quick_memory_debug import _take
IS_CUDA = torch.cuda.is_available()
DEVICE = "cuda" if IS_CUDA else "cpu"
def allocated():
    return torch.cuda.memory_allocated() if IS_CUDA else _take("")["gpu_memory"][0]["allocated"]

trainer, kept, rows = types.SimpleNamespace(current_step=0), [], []
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4))).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def note(name, stage):
    rows.append([trainer.current_step, name, stage, allocated() / 1048576])
for name, module in model.named_children():
    module.register_forward_pre_hook(lambda module, inputs, name=name: note(name, "pre forward"))
    module.register_forward_hook(lambda module, inputs, output, name=name: note(name, "post forward"))
batch = torch.ones(16384, 256, device=DEVICE)
for step in range(6):
    trainer.current_step = step
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    kept.append(torch.ones(16 << 20, dtype=torch.uint8, device=DEVICE))
trainer.current_step = 300
del loss
if IS_CUDA:
    torch.cuda.synchronize()
sizes = (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) if IS_CUDA else (0, 0)
print(json.dumps([os.getpid(), IS_CUDA, *sizes, rows]), flush=True)
sys.stdin.read()
"""

GB = 1 << 30


def ended(command, folder, env):
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, encoding="utf-8", timeout=240,
                          check=False)


def sql_rows(target, sql, folder, env):
    """Rows as dicts; a text that says why there are none."""
    done = ended([torch_kit.TIDEMARK, "query", str(target), sql, "--json"], folder, env)
    return json.loads(done.stdout)["rows"] if done.returncode == 0 else done.stderr


def expected_prints(name, is_cuda, allocated, reserved):
    """What an eval block of S5 prints, as a pattern."""
    if name == "S5.1":
        gpu = f"GPU 已分配: {allocated / GB:.2f} GB\nGPU 缓存: {reserved / GB:.2f} GB\n"
        return r"CPU 内存: \d+[.]\d\d GB\n" + (gpu if is_cuda else "")
    if name == "S5.6":
        return ("CUDA 缓存已清理\n" if is_cuda else "") + r"垃圾回收完成: \(\d+, \d+, \d+\)\n"
    if name == "S5.8":
        return f"步骤 300: {allocated / GB:.2f} GB\n"
    return (rf"GPU 0: .+\n  总计: \d+[.]\d\d GB\n  已分配: {allocated / GB:.2f} GB\n  已保留: \d+[.]\d\d GB\n"
            r"  空闲: \d+[.]\d\d GB\n(.*\n)*") if is_cuda else ""


def check_session(add, folder, rings, host="", asking=None):
    """S5's blocks, in their order, of a training that runs; then the same queries of its finished run. `host` comes
    before the PID ("node7:"), and `asking` has settings for whoever asks."""
    (folder / "train.py").write_text(TRAINING, encoding="utf-8")
    env = seed_environment(folder, rings, PATH=f"{os.path.dirname(torch_kit.TIDEMARK)}:{os.environ['PATH']}",
                           PYTHONUTF8="1")
    del env["TIDEMARK_RUN"]
    command = [torch_kit.TIDEMARK, "run", "--quiet", "-o", "run.tmk", "--", torch_kit.PYTHON, "train.py"]
    with subprocess.Popen(command, cwd=folder, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        live = ask_all(add, json.loads(job.stdout.readline()), folder, {**env, **(asking or {})}, host)
        job.communicate("", timeout=240)
    add("S5: the training ends well", job.returncode == 0, status=job.returncode)
    for name, rows in live.items():
        after = sql_rows("run.tmk", seed_block(name).text, folder, env)
        add(f"{name}: the finished run has the same rows", after == rows, rows=len(rows))


def ask_all(add, told, folder, env, host):
    """Rows of each query, as the living process has them."""
    pid, is_cuda, allocated, reserved, noted = told
    endpoint = f"{host}{pid}"
    env = {**env, "ENDPOINT": endpoint}
    check_noted(add, noted, sql_rows(endpoint, NOTED, folder, env))
    live = {}
    for block in seed_blocks("S5"):
        if block.language == "sql":
            live[block.name] = sql_rows(endpoint, block.text, folder, env)
            add(f"{block.name}: there are rows", isinstance(live[block.name], list) and len(live[block.name]) > 0,
                rows=live[block.name][:2])
            continue
        command = block.text.replace("probing $ENDPOINT eval", "tidemark eval $ENDPOINT")
        done = ended(["bash", "-c", command], folder, env)
        if "psutil" in block.text and not is_true("importlib.util.find_spec('psutil')", "importlib.util"):
            add(f"{block.name}: there is no psutil, which is said", "No module named 'psutil'" in done.stderr, said=done.stderr)
            continue
        expected = expected_prints(block.name, is_cuda, allocated, reserved)
        add(f"{block.name}: prints what its code says", done.returncode == 0 and re.fullmatch(expected, done.stdout),
            printed=done.stdout, said=done.stderr)
    return live


#: What the hooks of the training have written down.
NOTED = """SELECT step, module, stage, allocated FROM python.torch_trace
    WHERE stage LIKE '%forward' AND module IN ('0', '1', '2', '3')"""


def check_noted(add, noted, rows):
    """Each module's beginning and end, against what was counted in the process at that moment."""
    found = [[*row.values()] for row in rows] if isinstance(rows, list) else []
    add("S5: python.torch_trace has torch's figures, row by row", sorted(noted) == sorted(found) != [], rows=len(found),
        first=rows[:2])
