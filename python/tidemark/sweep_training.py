# SPDX-License-Identifier: MIT
"""One configuration of a sweep: the LoRA training of lora_training, with privacy and over ranks.

    python -m tidemark.sweep_training --seq_length 128 --batch_size 8 --max_physical_batch_size 2 --privacy builtin
    python -m tidemark.sweep_training --ranks 2 --parallel ddp --num_steps 3

`python -m tidemark.sweep` runs it once a configuration. Stages are model_load, data, wrap (with ranks),
optimizer_setup, privacy_setup (with privacy), then forward, backward, privacy (clipping, sums, noise), optimizer.
Sizes are those of each rank.
"""
import argparse
import importlib.util
import json
import math
import os
import sys
from typing import Any, Dict, List, Optional, Tuple

import tidemark

from . import _figures, _ranks
from ._lora_config import LoraConfig, Parser, add_arguments
from .lora_training import Hooks, checked_config, is_expected, pick_device, result_of, run

PRIVACY = ("auto", "opacus", "builtin", "off")
PARALLEL = ("fsdp", "ddp")
UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class SweepError(RuntimeError):
    """Cannot be done here; the message says what to do."""


def bytes_of(text: str) -> int:
    """24GiB, 24G, 512M, 1000000: as the program's own options read them."""
    digits = text.strip().rstrip("BbIiKkMmGgTt ")
    unit = text.strip()[len(digits):].strip().upper().replace("IB", "").rstrip("B") or ""
    try:
        size = int(float(digits) * UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        size = 0
    if not 0 < size < 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, such as 24GiB or 512M")
    return size


def whole(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 0 < number < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def _number(text: str, is_zero_one: bool) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf or (number == 0 and not is_zero_one):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number {'from 0 on' if is_zero_one else 'above 0'}")
    return number


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that lora_training does not have; the sweep hands them on as they are."""
    parser.add_argument("--ranks", type=whole, default=1, metavar="N",
                        help="processes that train it together, each on a GPU of its own or all on the CPU (1)")
    parser.add_argument("--parallel", choices=PARALLEL, default="fsdp",
                        help="with --ranks: fsdp spreads the frozen weights, ddp copies them (fsdp; ddp on the CPU)")
    parser.add_argument("--privacy", choices=PRIVACY, default="auto",
                        help="DP-SGD by opacus, by the built-in engine, or off; auto: opacus if it is installed (auto)")
    parser.add_argument("--max_grad_norm", type=lambda text: _number(text, False), default=1.0, metavar="X",
                        help="DP-SGD: to which each sample's gradient is clipped (1)")
    parser.add_argument("--noise_multiplier", type=lambda text: _number(text, True), default=1.0, metavar="X",
                        help="DP-SGD: noise, times that (1)")
    parser.add_argument("--limit_memory", type=bytes_of, default=None, metavar="SIZE",
                        help="torch gets no more of the GPU than this, such as 24GiB")


# ---- privacy

class Engine:
    """opacus' engine or our own, between a training's backward and its optimizer."""

    def __init__(self, kind: str, max_grad_norm: float, noise_multiplier: float):
        self.kind, self.noise = kind, {"max_grad_norm": max_grad_norm, "noise_multiplier": noise_multiplier}
        self.private: Any = None

    def set_up(self, model: Any, optimizer: Any, data: Any, config: LoraConfig) -> Tuple[Any, Any, Any]:
        if self.kind == "builtin":
            from .private_sgd import PrivateSGD
            self.private = PrivateSGD(model, optimizer, batch_size=config.batch_size, **self.noise)
            return model, optimizer, data
        # What opacus' PrivacyEngine.make_private() makes of a model and its optimizer; the data is random.
        from opacus import GradSampleModule
        from opacus.optimizers import DistributedDPOptimizer, DPOptimizer
        kind = DistributedDPOptimizer if _ranks.is_one_of_several() else DPOptimizer
        return (GradSampleModule(model), kind(optimizer, expected_batch_size=config.batch_size, **self.noise), data)

    def after_backward(self, _model: Any, optimizer: Any, is_last: bool) -> None:
        with tidemark.stage("privacy"):
            self._accumulate(optimizer, is_last)

    def _accumulate(self, optimizer: Any, is_last: bool) -> None:
        if self.kind == "builtin":
            self.private.accumulate()
            if is_last:
                self.private.finish()
            return
        optimizer.signal_skip_step(not is_last)
        if not is_last:  # clips and adds up, as for the physical batches of opacus' BatchMemoryManager
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def privacy_of(wanted: str, parallel: Optional[str]) -> str:
    """opacus, builtin or off; SweepError where it cannot be."""
    is_there = importlib.util.find_spec("opacus") is not None
    if wanted == "opacus" and not is_there:
        raise SweepError("--privacy opacus: opacus is not installed: pip install opacus, or use --privacy builtin")
    if wanted == "opacus" and parallel == "fsdp":
        raise SweepError("--privacy opacus goes with --parallel ddp; with fsdp use --privacy builtin")
    if wanted == "auto":
        return "opacus" if is_there and parallel != "fsdp" else "builtin"
    return wanted


def hooks_of(given: argparse.Namespace, device: Any) -> Hooks:
    parallel = _ranks.parallel_of(given.parallel, device) if _ranks.is_one_of_several() else None
    privacy = privacy_of(given.privacy, parallel)
    hooks = Hooks()
    if parallel is not None:
        def wrap(model: Any, _config: LoraConfig) -> Any:
            _ranks.join(device)
            return _ranks.shared_model(model, parallel, privacy != "off", device)
        hooks.wrap, hooks.made_on = wrap, "cpu" if parallel == "fsdp" else None
    if privacy != "off":
        engine = Engine(privacy, given.max_grad_norm, given.noise_multiplier)
        hooks.privacy, hooks.after_backward, hooks.weighs_loss = engine.set_up, engine.after_backward, False
    elif parallel == "fsdp":
        hooks.after_backward = lambda _model, optimizer, is_last: is_last and _ranks.add_up_gradients(optimizer)
    return hooks


# ---- the command

def limit_memory(size: int, device: Any) -> None:
    """The GPU's allocator is told. On the CPU nothing of the kind is safe: libraries wait for ever when the kernel
    refuses them memory."""
    if device.type != "cuda":
        raise SweepError("--limit_memory is for GPUs; on the CPU: systemd-run --scope -p MemoryMax=24G ...")
    import torch
    total = torch.cuda.get_device_properties(device).total_memory
    if size < total:
        torch.cuda.set_per_process_memory_fraction(size / total, device)


def _torch_says(device: Any) -> Dict[str, int]:
    """Torch's own count of a GPU's memory, to set beside ours."""
    if device.type != "cuda":
        return {}
    import torch
    return {"torch_max_allocated": torch.cuda.max_memory_allocated(device),
            "torch_max_reserved": torch.cuda.max_memory_reserved(device)}


def _train(given: argparse.Namespace, config: LoraConfig) -> int:
    device = pick_device(config.device)
    try:
        if given.limit_memory is not None:
            limit_memory(given.limit_memory, device)
        trained = run(config, hooks=hooks_of(given, device))
    except RuntimeError as reason:
        if not isinstance(reason, SweepError) and not is_expected(reason):
            raise
        print(f"sweep_training: {reason}", file=sys.stderr)
        return 1
    finally:
        _ranks.leave()
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps({**result_of(trained), **_torch_says(device)}))
    return 0


def main(arguments: Optional[List[str]] = None) -> int:
    parser = Parser(
        prog="python -m tidemark.sweep_training",
        description="One configuration of a sweep: a LoRA training with DP-SGD, over one rank or several.",
        epilog="example:\n  python -m tidemark.sweep_training --seq_length 128 --batch_size 8 "
               "--max_physical_batch_size 2 --privacy builtin")
    add_arguments(parser)
    add_training_arguments(parser)
    given = parser.parse_args(arguments)
    if given.ranks > 1 and not _ranks.is_one_of_several():
        return _ranks.launch(given.ranks, [sys.executable, "-m", "tidemark.sweep_training",
                                           *(sys.argv[1:] if arguments is None else arguments)])
    if _figures.torch_or_none() is None:
        sys.exit("sweep_training: torch is not installed: pip install torch")
    try:
        config = checked_config(given)
    except (OSError, ValueError) as reason:
        parser.error(str(reason))
    return _train(given, config)


if __name__ == "__main__":
    sys.exit(main())
