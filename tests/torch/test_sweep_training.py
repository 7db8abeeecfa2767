# SPDX-License-Identifier: MIT
"""What a configuration of a sweep asks of opacus and of FSDP, neither of which is here.

The stand-in for opacus has signatures as opacus 1.5.4 publishes them (opacus/grad_sample/grad_sample_module.py,
opacus/optimizers/optimizer.py) and computes nothing: it shows that our calls fit them and come in the order of opacus'
BatchMemoryManager, no more. Whether gradients are alike is for tests/gpu/check_sweep.py, where opacus is installed."""
from seeds_kit import run_python

SOURCE = """
import argparse, io, contextlib, json, os, sys, types, torch

calls = []

class GradSampleModule(torch.nn.Module):
    def __init__(self, m, *, batch_first=True, loss_reduction="mean", strict=True, force_functorch=False):
        super().__init__()
        self._module = m
        calls.append("module")
    def forward(self, *args, **kwargs):
        return self._module(*args, **kwargs)

class DPOptimizer(torch.optim.Optimizer):
    def __init__(self, optimizer, *, noise_multiplier, max_grad_norm, expected_batch_size, loss_reduction="mean",
                 generator=None, secure_mode=False, **kwargs):
        assert not kwargs
        self.original_optimizer = optimizer
        calls.append(("optimizer", noise_multiplier, max_grad_norm, expected_batch_size, loss_reduction))
    def signal_skip_step(self, do_skip=True):
        calls.append("skip" if do_skip else "last")
    def step(self, closure=None):
        calls.append("step")
    def zero_grad(self, set_to_none=False):
        calls.append("zero")

class DistributedDPOptimizer(DPOptimizer):
    pass

opacus = sys.modules["opacus"] = types.ModuleType("opacus")
opacus.__spec__ = types.SimpleNamespace(name="opacus")
opacus.GradSampleModule = GradSampleModule
sys.modules["opacus.optimizers"] = opacus.optimizers = types.ModuleType("opacus.optimizers")
opacus.optimizers.DPOptimizer, opacus.optimizers.DistributedDPOptimizer = DPOptimizer, DistributedDPOptimizer

from tidemark import _ranks, lora_training, sweep_training

told = io.StringIO()
with contextlib.redirect_stdout(told):
    status = sweep_training.main(
        "--privacy opacus --max_grad_norm 0.5 --noise_multiplier 0.25 --batch_size 5 --max_physical_batch_size 2 "
        "--num_steps 2 --seq_length 8 --hidden_size 16 --intermediate_size 32 --num_hidden_layers 1 "
        "--num_attention_heads 2 --num_key_value_heads 1 --vocab_size 32".split())
assert status == 0 and len(json.loads(told.getvalue())["losses"]) == 2
step = ["zero", "skip", "step", "zero", "skip", "step", "zero", "last", "step"]
assert calls == ["module", ("optimizer", 0.25, 0.5, 5, "mean"), *step, *step], calls

# FSDP, of a torch that has it: the model is made on the CPU, in the precision that the GPU computes in, and only what
# FSDP leaves alone is brought to the device by us.
os.environ.update(RANK="0", WORLD_SIZE="2")
_ranks._version = lambda: (2, 11)
given = argparse.Namespace(parallel="fsdp", privacy="builtin", max_grad_norm=1.0, noise_multiplier=1.0)
assert sweep_training.hooks_of(given, torch.device("cuda", 0)).made_on == "cpu"
given.parallel = "ddp"
assert sweep_training.hooks_of(given, torch.device("cuda", 0)).made_on is None
model = lora_training.build_model(lora_training.LoraConfig(precision="fp16"), torch.device("cuda", 0), "cpu")
assert {(p.device.type, p.dtype) for p in model.parameters()} == {("cpu", torch.float16), ("cpu", torch.float32)}

wrapped = []
def fully_sharded(model, **more):
    wrapped.append(more)
    return model
wrap = types.ModuleType("torch.distributed.fsdp.wrap")
wrap.ModuleWrapPolicy = lambda classes: classes
fsdp = types.ModuleType("torch.distributed.fsdp")
fsdp.FullyShardedDataParallel = fully_sharded
sys.modules.update({"torch.distributed.fsdp": fsdp, "torch.distributed.fsdp.wrap": wrap})
sent = []
torch.distributed.broadcast = lambda tensor, source: sent.append(tensor)
device = torch.device("cpu")
_ranks.shared_model(model, "fsdp", True, device)
trained = [p for p in model.parameters() if p.requires_grad]
assert len(sent) == len(trained) > 0 and all(a is b for a, b in zip(sent, trained))
(more,) = wrapped
assert more["device_id"] == device and more["use_orig_params"] and more["ignored_states"] == trained
assert {kind.__name__ for kind in more["auto_wrap_policy"]} == {"DecoderLayer"}
"""


def test_calls_of_opacus_and_fsdp(tmp_path, rings):
    run_python(SOURCE, tmp_path, rings)
