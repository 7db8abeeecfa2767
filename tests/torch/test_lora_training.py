# SPDX-License-Identifier: MIT
"""The LoRA training harness, its model, and what the debugging tools say of a training: the seed's examples, and
values against torch's own."""
import json
import re
import subprocess

from seeds_kit import SEEDS, examples, run_python, run_script, seed_environment
from test_quick_memory_debug import PRELUDE as SIMPLE_PRELUDE
from torch_kit import PYTHON, REPO, TIDEMARK, query

IMPORTS = ["utils.loraTrain.trainWithMemoryDebug"]

PRELUDE = """
import tidemark, torch
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
config = {"r": 4, "alpha": 8, "num_steps": 2, "batch_size": 4, "seq_length": 32, "num_hidden_layers": 2,
          "vocab_size": 300}
load_config = lambda: config
dataloader = [{"input_ids": torch.randint(300, (4, 32)), "idx": [1, 2, 3, 4]} for _ in range(3)]
"""

DEBUGGED = """
def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)

made = bytes_of(list(trained_model.parameters()) + list(trained_model.buffers()))
trainable = [p for p in trained_model.parameters() if p.requires_grad]
assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in trainable)
assert sum(p.numel() for p in trainable) == 2 * (4 * (256 + 256) + 4 * (256 + 128))
assert debug_results["creation_analysis"]["summary"]["total_memory_mb"] == made / 1048576
# AdamW's: two moments of each, and a step's number
held = made + bytes_of(p.grad for p in trainable) + 2 * bytes_of(trainable) + 4 * len(trainable)
assert debug_results["training_analysis"]["summary"]["total_memory_mb"] == held / 1048576
assert debug_results["memory_issues"] == [] and debug_results["error"] is None
assert debug_results["peak_mb"] > held / 1048576 and len(debug_results["losses"]) == 2
labels = {"pkg": "matplotlib", "version": "3.8.0", "knowledge_type": "code", "precision": "fp16"}
assert {name: debug_results[name] for name in labels} == labels
assert [s["name"] for s in debug_results["stages"]["stages"]] == ["model_creation", "data_loading", "optimizer_setup",
                                                                  "training"]
# The most was allocated in the training's stage, beyond what was there before: nobody's window takes another's.
assert debug_results["stages"]["peak_stage"] == "training" and debug_results["stages"]["peak_mb"] >= debug_results["peak_mb"]
assert debug_results["stages"]["stages"][0]["peak_mb"] < debug_results["stages"]["peak_mb"]
import json, os
assert os.path.dirname(debug_results["report_file"]) == "logs/training_debug/matplotlib-3.8.0"
written = json.load(open(debug_results["report_file"], encoding="utf-8"))
assert written["pkg"] == "matplotlib" and written["losses"] == debug_results["losses"]
assert os.path.dirname(debug_results["log_file"]) == "logs/training_debug/matplotlib-3.8.0"
log = open(debug_results["log_file"], encoding="utf-8").read()
assert " - INFO - 训练步 2/2: loss " in log and " - INFO - 快速分析模型: trained_model" in log

# What helps to find out (a process that imports torch, to try a precision) is in no stage, and in no duration.
import contextlib, tidemark._helpers
from tidemark import lora_training, memory_profiled_training
from tidemark.train_with_memory_debug import debug_memory_with_different_configs
open_stages, asked_in, stage_of_package = [], [], tidemark.stage
@contextlib.contextmanager
def stage(name):
    open_stages.append(name)
    try:
        with stage_of_package(name):
            yield
    finally:
        open_stages.pop()
def tried(precisions):
    asked_in.append(list(open_stages))
    return "bf16"
tidemark.stage, first_tried = stage, lora_training._first_tried
lora_training._first_tried = tried
tiny = {"num_hidden_layers": 1, "vocab_size": 50, "seq_length": 8, "batch_size": 1, "hidden_size": 32, "num_steps": 1,
        "precision": "fp16", "device": "cpu"}
lora_training._computes.clear()
debug_lora_training(tiny, log_dir="quiet")
debug_memory_with_different_configs(tiny, {"a": {"r": 2}})
from tidemark import debug
with contextlib.redirect_stdout(None):
    assert debug.main(["--debug_level", "custom", "--log_dir", "quiet", "--precision", "fp16", "--device", "cpu",
                       "--num_hidden_layers", "1", "--vocab_size", "50", "--seq_length", "8", "--batch_size", "1"]) == 0
    lora_training._computes.clear()
    lora_training.run(lora_training.LoraConfig(**tiny))
assert asked_in == [[], []], asked_in
tidemark.stage, lora_training._first_tried = stage_of_package, first_tried
def waits(*_arguments, **_more):
    assert tidemark._helpers._helped.depth == 1  # its time is not the caller's
    return subprocess_run([sys.executable, "-c", "print('bfloat16')"], stdout=-1, check=False)
import subprocess, sys
subprocess_run, subprocess.run = subprocess.run, waits
for precisions, found in ((("fp16",), "fp32"), (("fp16", "bf16"), "bf16"), (("bf16",), "bf16")):
    assert lora_training._first_computed(precisions) == found, precisions
subprocess.run = subprocess_run
lora_training._computes.clear()
assert debug_results["gradient_analysis"]["checked"] == len(trainable)
"""

LEAKING = """
kept = []
class Leaking:
    def __iter__(self):
        for batch in dataloader:
            kept.append(torch.empty(16 << 20, dtype=torch.uint8, device=DEVICE))  # as large a block on a GPU
            yield batch["input_ids"]
_, found = debug_lora_training({**config, "num_steps": 11}, Leaking(), pkg="../a b", version="1/2")
assert [issue["type"] for issue in found["memory_issues"]] == ["leak"], found["memory_issues"]
assert found["memory_issues"][0]["growth_mb"] == 7 * 16  # of nine, the last two by the lower one
assert found["memory_issues"][0]["timestamp"] > "20" and found["memory_issues"][0]["until"] is None
def surge():  # in one step of many, and over when the training ends
    for i, batch in enumerate(dataloader * 2):
        if i == 3:
            kept.append(torch.empty(160 << 20, dtype=torch.uint8, device=DEVICE))
        yield batch["input_ids"]
        kept.clear() if i == 4 else None
kept.clear()
_, surged = debug_lora_training({**config, "num_steps": None}, surge(), log_dir="surge")
(issue,) = surged["memory_issues"]
assert issue["type"] == "sudden_growth" and 159 < issue["growth_mb"] < 161 and issue["until"] >= issue["timestamp"]
assert os.path.dirname(found["report_file"]) == "logs/training_debug/_a_b-1_2"
del kept, _
try:
    debug_lora_training({**config, "target_modules": ["nothing"]}, log_dir="failed")
    raise SystemExit("not raised")
except RuntimeError as reason:
    (written,) = [name for name in os.listdir("failed") if name.endswith(".json")]
    assert str(reason) in json.load(open("failed/" + written, encoding="utf-8"))["error"]
"""

PASSES = """
tiny = {"num_hidden_layers": 1, "vocab_size": 50, "seq_length": 8, "batch_size": 1, "hidden_size": 32}
batches = [torch.randint(50, (1, 8)) for _ in range(7)]
found = [debug_lora_training(tiny, batches, log_dir="passes")[1] for _ in range(3)]  # in one second, perhaps
assert [(len(f["losses"]), f["config"]["num_steps"]) for f in found] == [(7, 7)] * 3
assert sorted(name for name in os.listdir("passes") if name.endswith(".json")) == sorted(os.path.basename(f["report_file"]) for f in found)
assert len(debug_lora_training(tiny, iter(batches[:2]))[1]["losses"]) == 2
assert len(debug_lora_training({**tiny, "num_steps": 9}, batches)[1]["losses"]) == 9
try:
    debug_lora_training({**tiny, "num_steps": 3}, (batch for batch in batches[:2]))
    raise SystemExit("not raised")
except ValueError as reason:
    assert "has only 2 batches and cannot be gone through again" in str(reason)
"""

COMPARED = """
assert list(results) == ["small_r", "medium_r", "large_r"] and best_config[0] == "small_r"
for name, r in (("small_r", 8), ("medium_r", 16), ("large_r", 32)):
    found, n = results[name], 2 * r * (2 * 256 + 256 + 128)
    assert found["config"]["r"] == r and found["trainable_params"] == n and found["error"] is None
    assert found["gradient_mb"] == 4 * n / 1048576 and found["optimizer_mb"] == (8 * n + 4 * 8) / 1048576
    assert found["model_mb"] == results["small_r"]["model_mb"] + 4 * (n - 2 * 8 * 896) / 1048576
    assert found["memory_mb"] > found["model_mb"] + found["gradient_mb"]

from tidemark import debug_memory_with_different_configs, memory_snapshot
if not torch.cuda.is_available():
    # One after the other as the other after the one: nothing is left of the first.
    turned = debug_memory_with_different_configs(config, dict(reversed(list(variations.items()))))
    assert {n: f["memory_mb"] for n, f in turned.items()} == {n: f["memory_mb"] for n, f in results.items()}
before = memory_snapshot()["gpu_memory"][0]["allocated"]
two = {"huge": {"vocab_size": 10 ** 11}, "fits": {"r": 2}}
tried = debug_memory_with_different_configs(config, two, log_dir="logs")
assert tried["huge"]["memory_mb"] == float("inf") and "memory" in tried["huge"]["error"]
assert min(tried.items(), key=lambda x: x[1]["memory_mb"])[0] == "fits" and tried["fits"]["loss"] > 0
assert memory_snapshot()["gpu_memory"][0]["allocated"] == before
import glob
(written,) = glob.glob("logs/config_comparison_*.json")
assert json.load(open(written, encoding="utf-8"))["results"]["huge"]["memory_mb"] is None
for wrong in ({"rnk": 8}, {"r": 0}, {"batch_size": 2, "max_physical_batch_size": 3}, {"precision": "int8"},
              {"dropout": 1.0}, {"learning_rate": "x"}, {"alpha": float("nan")}):
    try:
        debug_memory_with_different_configs(config, {"a": wrong})
        raise SystemExit("not raised")
    except ValueError as reason:
        assert wrong != {"rnk": 8} or "did you mean rank?" in str(reason) or "是否为 rank?" in str(reason)
"""

MODEL = """
from tidemark.lora_training import Hooks, LoraConfig, build_model, make_data, make_optimizer, run, train
from tidemark import _llama
small = LoraConfig(r=4, num_steps=2, batch_size=6, seq_length=16, num_hidden_layers=2, vocab_size=100, hidden_size=64,
                   intermediate_size=96, num_attention_heads=4, num_key_value_heads=2)
model = build_model(small)
device = next(model.parameters()).device
names = [name for name, p in model.named_parameters() if p.requires_grad]
assert names[:2] == [f"model.layers.0.self_attn.q_proj.lora_{x}.weight" for x in "AB"] and len(names) == 8
assert "model.layers.1.mlp.gate_proj.weight" in dict(model.named_parameters())
batch = {name: tensor.to(device) for name, tensor in next(iter(make_data(small, model))).items()}
with torch.no_grad():
    logits = model(batch["input_ids"]).logits
    assert logits.shape == (6, 16, 100)
    changed = batch["input_ids"].clone()
    changed[:, 9] = (changed[:, 9] + 1) % 100
    again = model(changed).logits  # no token sees a later one
    assert torch.allclose(again[:, :9], logits[:, :9], atol=1e-6) and not torch.allclose(again[:, 9], logits[:, 9])
    mask = torch.ones_like(changed)
    assert torch.allclose(model(batch["input_ids"], mask).logits, logits, atol=1e-5)
    mask[:, :3] = 0
    one, other = batch["input_ids"].clone(), batch["input_ids"].clone()
    other[:, :3] = 7                # what is masked does not count
    assert torch.allclose(model(one, mask).logits[:, 3:], model(other, mask).logits[:, 3:], atol=1e-5)
    expected = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, 100), batch["input_ids"][:, 1:].reshape(-1))
    assert torch.allclose(model(**batch).loss, expected)
    # B is 0 at first; then it is base(x) + B(A(x)) * alpha / r
    layer = model.model.layers[0].self_attn.q_proj
    x = torch.randn(3, 64, device=device)
    assert torch.equal(layer(x), layer.base_layer(x))
    layer.lora_B.weight.normal_()
    assert torch.allclose(layer(x), x @ (layer.base_layer.weight + layer.lora_B.weight @ layer.lora_A.weight * 4).T,
                          atol=1e-4)

def gradients(**changes):
    trained = run(small.with_({"num_steps": 1, **changes}))
    return trained.losses, {n: p.grad for n, p in trained.model.named_parameters() if p.grad is not None}

losses, whole = gradients()
for changes in ({"max_physical_batch_size": 4}, {"max_physical_batch_size": 1}, {"gradient_checkpointing": True}):
    again, parts = gradients(**changes)
    assert abs(again[0] - losses[0]) < 1e-5, changes
    assert all(torch.allclose(parts[name], whole[name], rtol=1e-3, atol=1e-6) for name in whole), changes
first, second = run(small).losses, run(small).losses  # the same seed, the same numbers
assert first == second or device.type != "cpu" and max(abs(a - b) for a, b in zip(first, second)) < 1e-5
tied = build_model(small.with_({"tie_word_embeddings": True}))
assert tied.lm_head.weight is tied.model.embed_tokens.weight
fast = run(small.with_({"learning_rate": 0.05, "num_steps": 8, "target_modules": "q_proj,v_proj,gate_proj,up_proj"}),
           data=[batch["input_ids"].cpu()])
assert fast.losses[-1] < fast.losses[0] - 0.05  # it learns

seen = []
def privacy(model, optimizer, data, config):
    seen.append("privacy")
    return model, optimizer, data
hooks = Hooks(wrap=lambda model, config: seen.append("wrap") or model, privacy=privacy,
              after_backward=lambda model, optimizer, is_last: seen.append(is_last),
              after_step=lambda i, loss: seen.append(i))
run(small.with_({"max_physical_batch_size": 2, "num_steps": 2}), hooks=hooks)
assert seen == ["wrap", "privacy", False, False, True, 0, False, False, True, 1], seen

for wrong, kind in (([torch.full((2, 8), 100)], ValueError), ([], ValueError), (["text"], TypeError)):
    try:
        run(small, data=wrong)
        raise SystemExit("not raised")
    except kind as reason:
        assert str(reason)
assert LoraConfig.of(type("Config", (), {"__init__": lambda self: setattr(self, "lora_rank", 3)})()).r == 3
"""

GRADIENTS = """
from tidemark import check_gradients
many = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(30, 70)) for _ in range(200))
def check(**planted):
    for p in many:
        p.grad = torch.full_like(p, 0.5)
    for name, change in planted.items():
        change(many[int(name[1:])].grad)
    found = check_gradients(many)
    return [(i["type"], i["name"], i["index"]) for i in found["issues"]], found
issues, found = check()
assert issues == [] and found["checked"] == 200 and found["without_gradient"] == []
assert abs(found["total_norm"] - 0.5 * (200 * 2100) ** 0.5) < 1e-3
def put(value):
    return lambda gradient: gradient.__setitem__((21, 13), value)
issues, found = check(_137=put(float("nan")), _3=put(float("-inf")), _5=put(1e5), _7=lambda g: g.mul_(1e-12),
                      _8=put(1e30), _9=lambda g: g.zero_())
assert issues == [("inf_gradient", "3", [21, 13]), ("exploding_gradient", "5", None), ("vanishing_gradient", "7", None),
                  ("exploding_gradient", "8", None), ("vanishing_gradient", "9", None),
                  ("nan_gradient", "137", [21, 13])], issues
assert found["total_norm"] is None and found["norms"]["137"] is None and found["norms"]["9"] == 0.0
many[4].grad = None
assert check_gradients(many)["without_gradient"] == ["4"]
for dtype in (torch.float16, torch.bfloat16, torch.float64):
    odd = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(3 << 20, dtype=dtype))])
    odd[0].grad = torch.full_like(odd[0], 100)  # the norm is more than fp16 holds
    (issue,) = check_gradients(odd)["issues"]
    assert issue["type"] == "exploding_gradient" and abs(issue["norm"] / (100 * (3 << 20) ** 0.5) - 1) < 1e-3, issue
    odd[0].grad[2500000] = float("nan")
    assert check_gradients(odd)["issues"][0]["index"] == [2500000]

# Neither check needs memory of its own.
from tidemark import _figures
number = _figures.CARD if torch.cuda.is_available() else _figures.HOST
large = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(8 << 20, device=device))])
large[0].grad = torch.ones_like(large[0])
for look in (check_gradients, tidemark.analyze_model):
    window = _figures.Window(number)
    look(large)
    assert window.peak() - window.before <= (4096 if device.type == "cpu" else 1 << 18), look

# The first step's A: nothing is wrong with it. Later it would be.
model = build_model(small)
model(**batch).loss.backward()
assert check_gradients(model)["issues"] == []
make_optimizer(model, small).step()
assert len(check_gradients(model)["issues"]) == 4 and check_gradients(model, is_first_step=True)["issues"] == []
"""

NAMED = """
import sys
from pathlib import Path
from tidemark._lora_model import ModelError, SHAPES, shape_of
from tidemark.lora_training import result_of
def refused(name):
    try:
        build_model(small.with_({"model_name": name}))
    except ModelError as reason:
        return str(reason)
    raise SystemExit("not raised")

assert shape_of("meta-llama/Llama-3.1-8B-Instruct") == SHAPES["meta-llama/Llama-3.1-8B"]
shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2,
         "vocab_size": 50, "architectures": ["LlamaForCausalLM"], "rope_theta": None}
folder = Path("named")
folder.mkdir()
(folder / "config.json").write_text(json.dumps(shape))
SHAPES["here/known"] = {**{key: shape[key] for key in list(shape)[:5]}, "num_key_value_heads": 1}
import importlib.util
for installed in (False, True) if importlib.util.find_spec("transformers") is None else ():
    if installed:  # a stand-in: the hub answers as a test says
        library = Path("fake/transformers")
        library.mkdir(parents=True)
        (library / "__init__.py").write_text(TRANSFORMERS)
        sys.path.insert(0, "fake")
        import transformers
    model = build_model(small.with_({"model_name": "named"}))
    assert model.lm_head.weight.shape == (50, 32) and model.model.layers[0].self_attn.k_proj.weight.shape == (32, 32)
    trained = run(small.with_({"model_name": "here/known-2"}))
    model, told = trained.model, result_of(trained)["config"]  # not the sizes of small
    assert {key: told[key] for key in SHAPES["here/known"]} == SHAPES["here/known"] and told["r"] == small.r
    assert model.model.layers[0].self_attn.k_proj.weight.shape == (16, 32)
    assert "its shape is not known here" in refused("gpt2") and "no such folder" in refused("./nowhere")
    if installed:
        transformers.status = 401
        assert "HF_TOKEN" in refused("here/known")
        os.environ["HF_TOKEN"] = "hf_wrong"
        assert "it is given by HF_TOKEN" in refused("here/known")
        transformers.status = 503
        assert "the hub answers with status 503" in refused("here/known")
        transformers.status = 404
        assert "no such model" in refused("here/known")
if importlib.util.find_spec("transformers") is not None and "fake" not in sys.path:
    print("transformers is there")
for bad, message in (('{"hidden_size": 32', "not JSON"), (json.dumps({**shape, "head_dim": 64}), "head_dim"),
                     (json.dumps({"hidden_size": 32}), "vocab_size"), ("[]", "vocab_size")):
    (folder / "config.json").write_text(bad)
    try:
        shape_of("named")
        raise SystemExit("not raised")
    except ModelError as reason:
        assert message in str(reason)
"""

TRANSFORMERS = """
import types
from tidemark import _llama
status, __version__ = None, "5.0.0"

class LlamaConfig(types.SimpleNamespace):
    rms_norm_eps, rope_theta, tie_word_embeddings, gradient_checkpointing = 1e-5, 10000.0, False, False

class AutoConfig:
    @staticmethod
    def from_pretrained(name):
        from tidemark._lora_model import shape_of
        return LlamaConfig(**shape_of(name))

class AutoModelForCausalLM:
    @staticmethod
    def from_config(shape, dtype):
        model = _llama.LlamaForCausalLM(shape, dtype=dtype)
        model.config = shape
        return model

    @staticmethod
    def from_pretrained(name, dtype):
        reason = ConnectionError("hub")
        reason.response = types.SimpleNamespace(status_code=status)
        raise OSError("could not load") from reason
"""


def test_examples(tmp_path, rings):
    """Those of the LoRA functions, under zh_CN; the model; the checks."""
    blocks = examples("s2.md", IMPORTS)
    train, compare = (next(b for b in blocks if text in b) for text in ("debug_results", "best_config"))
    source = "\n".join([PRELUDE, train, DEBUGGED, LEAKING, PASSES, compare, COMPARED, MODEL, GRADIENTS,
                        f"TRANSFORMERS = {TRANSFORMERS!r}", NAMED])
    done = run_python(source, tmp_path, rings, LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1")
    printed = done.stdout.splitlines()
    assert re.fullmatch(r"模型创建内存占用: \d+[.]\d+", printed[0])
    assert re.fullmatch(r"训练后内存占用: \d+[.]\d+", printed[1])
    assert printed[2] == "检测到的内存问题: []"
    assert re.fullmatch(r"最优配置: small_r, 内存占用: \d+[.]\d\d MB", printed[3])
    said = done.stderr.splitlines()
    assert "[INFO] 快速分析模型: lora_model" in said
    assert "[INFO] 训练: 2 步 (num_steps), dataloader 共 3 个批次" in said
    assert "[INFO] 训练: 遍历 dataloader 一次, 7 个批次; 可用配置中的 num_steps 限制" in said
    assert "[INFO] 训练: 遍历 dataloader 一次, 长度未知; 可用配置中的 num_steps 限制" in said
    assert "[ERROR] 梯度包含NaN: 137 (21, 13)" in said
    assert "[WARNING] 梯度消失: 9 (norm 0)" in said
    if "transformers is there" not in printed:
        assert "[WARNING] here/known-2: 无法访问模型中心; 以相同结构的 Llama 代替; 使用随机权重" in said


def shell_commands():
    """The seed's words, behind those that name its script."""
    text = (SEEDS / "s2.md").read_text(encoding="utf-8")
    found = re.findall(r"^python benchmark/debug_memory_usage[.]py (.*)$", text, re.M)
    assert len(found) == 4
    return [command.split() for command in found]


def test_commands(tmp_path, rings):
    """Each level by the script of the seed's name, side by side; labels in the report and in its path; a log."""
    started = []
    for i, command in enumerate(shell_commands()):
        folder = tmp_path / str(i)
        folder.mkdir()
        started.append((folder, command, subprocess.Popen(
            [PYTHON, str(REPO / "examples" / "debug_memory_usage.py"), *command], cwd=folder, env=seed_environment(folder, rings), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)))
    for folder, command, process in started:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        level, precision = command[1], "fp16" if "fp16" in command else "fp32"
        (written,) = (folder / "logs/memory_debug/matplotlib-3.8.0").glob("*.json")
        report = json.loads(written.read_text(encoding="utf-8"))
        assert (report["pkg"], report["version"], report["precision"]) == ("matplotlib", "3.8.0", precision)
        said = "model: a small Llama with random weights (none was named)"
        (log,) = (folder / "logs/memory_debug/matplotlib-3.8.0").glob("memory_debug_*.log")
        assert "[INFO] " + said in err and " - INFO - " + said in log.read_text(encoding="utf-8")
        assert {path.name for path in folder.iterdir()} == {"logs", "run.tmk"}
        CHECKS[level](report, out, folder)


def check_model_only(report, out, _folder):
    analysis = report["creation_analysis"]
    assert analysis["bytes"] == sum(row["bytes"] for row in analysis["parameters"])
    assert out.splitlines()[0] == f"model, MB: {analysis['memory_mb']:.2f}"


def check_full(report, out, folder):
    assert len(report["losses"]) == 5 and report["memory_issues"] == []
    lines = out.splitlines()
    assert lines[0] == f"model as made, MB: {report['creation_analysis']['summary']['total_memory_mb']:.2f}"
    assert lines[1] == f"after training, MB: {report['training_analysis']['summary']['total_memory_mb']:.2f}"
    assert lines[2:] == [f"at the peak, MB: {report['peak_mb']:.2f}", "issues: none"]
    # What was allocated at the run's peak is what the report says.
    done = subprocess.run([TIDEMARK, "peak", str(folder / "run.tmk"), "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)["allocated"] == report["peak_mb"] * 1048576


def check_custom(report, _out, _folder):
    is_gpu = report["config"]["device"].startswith("cuda")  # where blocks are multiples of 512, cuBLAS keeps its own
    stages = {stage["name"]: stage["gpu_changes"][0]["memory_change"] for stage in report["stages"]["stages"]}
    assert list(stages) == ["model_creation", "data_loading", "optimizer_setup", "forward", "backward",
                            "optimizer_step"]
    n_trainable = 4 * 8 * (256 + 256 + 256 + 128)
    assert stages["optimizer_step"] == 2 * 4 * n_trainable + (0 if is_gpu else 4 * 16)
    left = stages["forward"] + stages["backward"] - 4 * n_trainable  # but for gradients
    assert left >= 512 if is_gpu else left == 4                      # the loss
    assert report["gradient_analysis"]["issues"] == []


def check_comparison(report, out, _folder):
    results = report["results"]
    sizes = [results[name]["memory_mb"] for name in ("small_r", "medium_r", "large_r")]
    assert sizes == sorted(set(sizes))
    assert out == f"least memory: small_r, {sizes[0]:.2f} MB\n"


CHECKS = {"model_only": check_model_only, "full": check_full, "custom": check_custom, "comparison": check_comparison}


def test_training_command(tmp_path, rings):
    """What the sweep runs: its peak is the run's, its stages and components are there; it fails with torch's words."""
    command = ("-m tidemark.lora_training --seq_length 64 --batch_size 4 --max_physical_batch_size 2 --lora_rank 8 "
               "--num_steps 2 --num_hidden_layers 2 --vocab_size 500")
    done = run_script(command.split(), tmp_path, rings)
    result = json.loads(done.stdout)
    run = tmp_path / "run.tmk"
    assert result["run"] == str(run) and len(result["losses"]) == 2
    peak = json.loads(subprocess.run([TIDEMARK, "peak", str(run), "--by", "component", "--json"], capture_output=True,
                                     check=True).stdout)
    assert peak["allocated"] == result["max_allocated"]
    parts = {entry["key"]: entry["bytes"] for entry in peak["by"]}
    assert {"attention", "mlp", "embedding", "normalization", "lora"} <= set(parts)
    assert query(run, "SELECT sum(size) FROM allocations WHERE component = 'lora' AND category = 'parameter'") == [
        [str(4 * 2 * 8 * 896)]]
    stages = {stage for stage, in query(run, "SELECT DISTINCT stage FROM allocations")}
    assert {"model_load", "data", "forward", "backward", "optimizer"} <= stages
    assert query(run, "SELECT count(DISTINCT step) FROM allocations WHERE stage = 'forward'") == [["2"]]
    env = seed_environment(tmp_path, rings, TIDEMARK_RUN=str(tmp_path / "oom.tmk"))
    failed = subprocess.run([PYTHON, "-m", "tidemark.lora_training", "--vocab_size", str(10 ** 11)], env=env,
                            capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert failed.returncode == 1 and failed.stdout == ""
    assert "can't allocate memory" in failed.stderr or "out of memory" in failed.stderr  # the CPU's, a GPU's
    assert "Traceback" not in failed.stderr


def test_example(tmp_path, rings):
    done = run_script([str(REPO / "examples" / "lora_memory.py")], tmp_path, rings)
    assert "issues: none" in done.stdout


OFF = """
import os, runpy, sys
from tidemark import debug
from tidemark import check_gradients, debug_lora_training, debug_memory_with_different_configs
config = {"num_steps": 1, "num_hidden_layers": 1, "vocab_size": 50, "seq_length": 8, "batch_size": 1}
model, results = debug_lora_training(config, pkg="a", version="1")
assert model.lm_head.weight.shape == (50, 256) and len(results["losses"]) == 1
assert results["memory_issues"] == [] and results["report_file"] is None and results["peak_mb"] is None
assert {f"{results[key]['summary'][name]:.1f}" for key, name in (
    ("creation_analysis", "total_memory_mb"), ("training_analysis", "total_memory_mb"),
    ("training_analysis", "optimizer_mb"))} == {"nan"}
assert [r["memory_mb"] != r["memory_mb"] for r in
        debug_memory_with_different_configs(config, {"a": {"r": 8}}).values()] == [True]
assert check_gradients(model)["issues"] == [] and check_gradients(model)["total_norm"] is None
for command in COMMANDS:
    small = ["--num_hidden_layers", "1", "--seq_length", "16", "--batch_size", "1", "--num_steps", "1"]
    print("level", command[1])
    assert debug.main(command + small + ["--precision", "fp32"]) == 0
sys.argv = ["example"]
print("example")
runpy.run_path(EXAMPLE)
"""


def test_switched_off(tmp_path, rings):
    """TIDEMARK=0: the same keys; trained as ever, nothing measured, said or written. Every example, every level."""
    blocks = [block.replace("your_training_function, args...", "your_training_function, 1 << 20")
              for block in examples("s2.md", [*IMPORTS, "utils.loraTrain.quickMemoryDebug",
                                              "utils.loraTrain.memoryDebugger"])]
    assert len(blocks) == 12
    ends = [f"print('end of example {i}')\n" for i in range(len(blocks))]
    source = "\n".join([SIMPLE_PRELUDE, PRELUDE, "import logging\nfrom tidemark import *",
                        *(text for pair in zip(blocks, ends) for text in pair), f"COMMANDS = {shell_commands()!r}",
                        f"EXAMPLE = {str(REPO / 'examples' / 'lora_memory.py')!r}", OFF])
    done = run_python(source, tmp_path, rings, TIDEMARK="0")
    lines = done.stdout.splitlines()
    assert [line for line in lines if "end of example" in line] == [f"end of example {i}" for i in range(len(blocks))]
    printed = "\n".join(lines[lines.index("level model_only"):])
    assert "0.00" not in printed and "nan" not in printed and "None" not in printed, printed
    assert printed.count("not measured") == 2 + 3 + 1 + 1 + 2 + 3 + 3 + 1, printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["custom_report.txt", "script.py"]  # which was named
