# SPDX-License-Identifier: MIT
"""A LoRA training to be measured: a model, data, an optimizer and a loop, each a stage of the recorded run.

    from tidemark.lora_training import LoraConfig, run

    trained = run(LoraConfig(r=8, alpha=16, seq_length=128, batch_size=8, max_physical_batch_size=2, num_steps=5))
    print(trained.losses)

    python -m tidemark.lora_training --seq_length 128 --batch_size 8 --max_physical_batch_size 2 --lora_rank 8

Without a model's name it is a small Llama with random weights, in plain torch. With one (a folder, or a name
on the hub) it is that model, by transformers, with peft's adapters; where those are not installed or the hub
cannot be reached, a model of that shape with random weights, and a warning says so.

Stages are model_load, data, wrap, optimizer_setup, privacy_setup; then torch's own: forward, backward,
optimizer. A step is one batch: physical batches one after the other, then one step of the optimizer.
"""
import argparse
import contextlib
import dataclasses
import itertools
import json
import logging
import os
import subprocess
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import tidemark

from . import _figures
from ._helpers import helper
from ._lora_config import LoraConfig, Parser, add_arguments, changed_configs, config_of
from ._words import say, words

__all__ = ["Hooks", "LoraConfig", "Trained", "build_model", "changed_configs", "make_data", "make_optimizer",
           "pick_device", "run", "settled", "train", "usable_precision"]

RANDOM_STEPS = 5      # where nobody says how many
FIRST_SCALE = 1024.0  # of losses in fp16: torch's own, 65536, makes gradients of the first steps overflow

Batch = Dict[str, Any]  # input_ids, labels and, if there is one, attention_mask: tensors, one row a sample


@dataclasses.dataclass
class Hooks:
    """What others put into a training; each may be left out.

    >>> run(config, hooks=Hooks(wrap=lambda model, config: DistributedDataParallel(model)))
    """
    #: (model, config) -> model: FSDP, DDP. In stage `wrap`, before the optimizer is made.
    wrap: Optional[Callable[[Any, LoraConfig], Any]] = None
    #: Where the model is made, if not on its device: "cpu" for FSDP, which moves it there part by part, so that no
    #: rank's device has to have room for all of it.
    made_on: Optional[str] = None
    #: (model, optimizer, data, config) -> (model, optimizer, data): a privacy engine. In stage `privacy_setup`.
    privacy: Optional[Callable[[Any, Any, Any, LoraConfig], Tuple[Any, Any, Any]]] = None
    #: (model, optimizer, is_last) -> None: after each physical batch's backward; is_last: the optimizer steps next.
    after_backward: Optional[Callable[[Any, Any, bool], None]] = None
    #: (step, loss) -> None: after each step of the optimizer, while its gradients are there; steps count from 0.
    after_step: Optional[Callable[[int, float], None]] = None
    #: Losses count by their share of the batch, so that gradients add up to those of the whole. DP-SGD, which
    #: has each sample's gradient, wants the loss of the physical batch as it is: False.
    weighs_loss: bool = True


class Trained(NamedTuple):
    """What run() leaves. Gradients of the last step are still there."""
    model: Any
    optimizer: Any
    losses: List[float]
    config: LoraConfig  # with the precision, the device and the number of steps that were used


# ---- where and how precisely

def pick_device(name: Optional[str] = None) -> Any:
    """The torch.device of that name; without one the GPU of this rank, or the CPU where there is none.

    >>> pick_device()
    device(type='cuda', index=0)
    """
    torch = _figures.need_torch("a training")
    if name is not None:
        try:
            device = torch.device(name)
        except RuntimeError as reason:
            raise ValueError(f"device {name!r}: {str(reason).splitlines()[0]}") from None
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device {name!r}: torch finds no GPU here; try cpu")
        return device
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def dtype_of(precision: str) -> Any:
    """
    >>> dtype_of("bf16")
    torch.bfloat16
    """
    import torch
    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]


def usable_precision(precision: str, device: Any) -> str:
    """That one if this device can compute in it, else the next that it can; a warning says so.

    >>> usable_precision("fp16", torch.device("cpu"))   # torch 1.13
    'bf16'
    """
    if precision == "fp32" or device.type != "cpu":
        return precision
    used = _first_computed((precision,) if precision == "bf16" else (precision, "bf16"))
    if used != precision:
        say(logging.WARNING, words(f"torch cannot compute in {precision} on {device.type}; {used} is used",
                                   f"{device.type} 上的 torch 不支持 {precision} 计算, 改用 {used}"))
    return used


#: A training's kinds of operations, large enough for the routines that large matrices get.
TRIAL = """
import sys, torch
for name in sys.argv[1:]:
    try:
        x = torch.nn.Linear(128, 128, dtype=getattr(torch, name))(torch.ones(2, 64, 128, dtype=getattr(torch, name)))
        x = torch.nn.functional.softmax(x @ x.transpose(-2, -1), -1) @ x
        torch.nn.functional.silu(x * torch.cat((-x, x), -1)[..., :128]).sum().backward()
        sys.exit(print(name))
    except RuntimeError:
        pass
"""


_computes: Dict[str, bool] = {}  # on the CPU, by precision, as far as tried


def _first_computed(precisions: Sequence[str]) -> str:
    """Of these on the CPU; else fp32."""
    for i, precision in enumerate(precisions):
        if precision not in _computes:
            found = _first_tried(precisions[i:])
            _computes.update(dict.fromkeys(itertools.takewhile(lambda tried: tried != found, precisions[i:]), False))
            _computes[found] = True
            return found
        if _computes[precision]:
            return precision
    return "fp32"


def _first_tried(precisions: Sequence[str]) -> str:
    """The same, tried in a process of its own: of a kind of number that the processor, or torch's build, cannot do torch
    does not only raise, it can also die."""
    names = {str(dtype_of(precision)).partition(".")[2]: precision for precision in precisions}
    environment = {**os.environ, "TIDEMARK": "0"}
    environment.pop("LD_PRELOAD", None)
    with helper():
        done = subprocess.run([sys.executable, "-c", TRIAL, *names], env=environment, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return names.get(done.stdout.decode().strip(), "fp32")


def settled(config: LoraConfig) -> LoraConfig:
    """The config with the device and the precision that will be used; what the model needs is imported. All of it
    before a stage begins: trying a precision starts a process of seconds, and so long does transformers take to import.

    >>> settled(LoraConfig(precision="fp16")).precision   # on the CPU, torch 1.13
    'bf16'
    """
    from . import _lora_model
    device = pick_device(config.device)
    _lora_model.import_libraries(config)
    return config.with_({"precision": usable_precision(config.precision, device), "device": str(device)})


# ---- the parts of a training

def build_model(config: LoraConfig, device: Optional[Any] = None, made_on: Optional[str] = None) -> Any:
    """The model with its adapters, on the device, in train mode; only adapters are trainable.

    >>> model = build_model(LoraConfig(r=8, alpha=16))
    """
    torch = _figures.need_torch("build_model")
    from . import _lora_model
    device = pick_device(config.device) if device is None else device
    torch.manual_seed(config.seed)
    return _lora_model.build(config, torch.device(made_on or device),
                             dtype_of(usable_precision(config.precision, device)))


class RandomTokens:
    """Batches of random tokens, the same ones for the same seed and rank; as many as there are steps."""

    def __init__(self, config: LoraConfig, n_tokens: int):
        self.config, self.n_tokens = config, n_tokens

    def __len__(self) -> int:
        return self.config.num_steps or RANDOM_STEPS

    def __iter__(self) -> Iterator[Batch]:
        import torch
        generator = torch.Generator().manual_seed(self.config.seed + int(os.environ.get("RANK", "0")))
        for _ in range(len(self)):
            tokens = torch.randint(self.n_tokens, (self.config.batch_size, self.config.seq_length),
                                   generator=generator)
            yield {"input_ids": tokens, "labels": tokens}


def make_data(config: LoraConfig, model: Optional[Any] = None) -> Iterable[Batch]:
    """Batches of random tokens, on the host; of those that the model knows.

    >>> next(iter(make_data(config, model)))["input_ids"].shape
    torch.Size([8, 128])
    """
    return RandomTokens(config, _n_tokens(model) or config.vocab_size)


def _n_tokens(model: Any) -> Optional[int]:
    """Rows of the model's first embedding: it knows no token from there on."""
    import torch
    modules = () if model is None else model.modules()
    return next((module.num_embeddings for module in modules if isinstance(module, torch.nn.Embedding)), None)


def make_optimizer(model: Any, config: LoraConfig) -> Any:
    """AdamW over what is trainable.

    >>> optimizer = make_optimizer(model, config)
    """
    torch = _figures.need_torch("make_optimizer")
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.AdamW(trainable, lr=config.learning_rate, weight_decay=config.weight_decay)


# ---- batches

def as_batch(given: Any) -> Batch:
    """What a loader gives: a dict with input_ids, a tensor of them, or a pair with labels. Without labels each
    token is to say the next one.

    >>> sorted(as_batch(torch.ones(2, 8, dtype=torch.long)))
    ['input_ids', 'labels']
    """
    if hasattr(given, "items"):
        batch = {name: value for name, value in given.items() if name in ("input_ids", "labels", "attention_mask")}
    elif isinstance(given, (list, tuple)):
        batch = dict(zip(("input_ids", "labels"), given))
    else:
        batch = {"input_ids": given}
    if not hasattr(batch.get("input_ids"), "shape") or batch["input_ids"].dim() != 2:
        raise TypeError("a batch is to be a dict with input_ids, a tensor of them (sample, token), or a pair of such "
                        f"tensors with labels; this one is a {type(given).__name__}")
    batch.setdefault("labels", batch["input_ids"])
    return batch


def _physical(batch: Batch, size: int) -> List[Batch]:
    n = batch["input_ids"].shape[0]
    return [{name: tensor[i:i + size] for name, tensor in batch.items()} for i in range(0, n, size)]


def _checked(batch: Batch, n_tokens: Optional[int]) -> Batch:
    """On a GPU a token that there is not is a device-side assert, after which nothing works."""
    ids = batch["input_ids"]
    if n_tokens is not None and ids.device.type == "cpu" and ids.numel() and int(ids.max()) >= n_tokens:
        raise ValueError(f"token {int(ids.max())} in the data; the model knows tokens up to {n_tokens - 1}")
    return batch


def _batches(data: Iterable[Any], n_steps: Optional[int]) -> Iterator[Any]:
    """As often as it takes; without a number of steps once."""
    n = 0
    while True:
        before = n
        for batch in data:
            n += 1
            yield batch
        if n == 0:
            raise ValueError("the dataloader has no batches")
        if n_steps is None:
            return
        if n == before:
            raise ValueError(f"the dataloader has only {n} batches and cannot be gone through again: num_steps "
                             f"({n_steps}) is to be {n} or less, or the batches a list or a DataLoader")


def _length(data: Iterable[Any]) -> Optional[int]:
    """None: it does not say."""
    try:
        return len(data)  # type: ignore[arg-type]
    except TypeError:
        return None


def _say_plan(data: Iterable[Any], n_steps: Optional[int]) -> None:
    """How much of a dataloader is trained on."""
    if isinstance(data, RandomTokens):
        return
    n = _length(data)
    if n_steps is None:
        say(logging.INFO, words("training: one pass over the dataloader, ", "训练: 遍历 dataloader 一次, ") +
            (words("which does not say its length", "长度未知") if n is None else words(f"{n} batches", f"{n} 个批次")) +
            words("; num_steps in the config limits it", "; 可用配置中的 num_steps 限制"))
    else:
        say(logging.INFO, words(f"training: {n_steps} steps (num_steps) over a dataloader of ",
                                f"训练: {n_steps} 步 (num_steps), dataloader 共 ") +
            (words("unknown length", "未知长度") if n is None else words(f"{n} batches", f"{n} 个批次")))


# ---- the loop

def _sync_at(model: Any, is_last: bool) -> Any:
    """DDP adds up gradients of all ranks once a step, not once a physical batch."""
    import torch
    if is_last or not isinstance(model, torch.nn.parallel.DistributedDataParallel):
        return contextlib.nullcontext()
    return model.no_sync()


def _physical_step(model: Any, batch: Batch, weight: float, scaler: Any) -> Any:
    """Forward and backward; the loss. What they made is given back when this returns."""
    loss = model(**batch).loss
    part = loss * weight
    (part if scaler is None else scaler.scale(part)).backward()
    return loss.detach()


def _step(model: Any, batch: Batch, optimizer: Any, config: LoraConfig, hooks: Hooks, scaler: Any) -> float:
    import torch
    device = next(model.parameters()).device
    pieces = _physical(batch, config.physical_batch_size)
    n, total = batch["input_ids"].shape[0], 0.0
    optimizer.zero_grad(set_to_none=True)
    for i, piece in enumerate(pieces):
        is_last, share = i == len(pieces) - 1, piece["input_ids"].shape[0] / n
        with tidemark.stage("data"):
            piece = {name: tensor.to(device, non_blocking=True) for name, tensor in piece.items()}
        with _sync_at(model, is_last):
            loss = _physical_step(model, piece, share if hooks.weighs_loss else 1.0, scaler)
        total = total + loss * share
        if hooks.after_backward is not None:
            hooks.after_backward(model, optimizer, is_last)
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)  # which divides gradients by the scale, in place
        scaler.update()
    return float(total) if isinstance(total, torch.Tensor) else total


def _scaler(config: LoraConfig, model: Any, hooks: Hooks) -> Any:
    """For fp16, whose small gradients would be 0; not with a privacy engine, which clips them as they are."""
    import torch
    is_needed = config.precision == "fp16" and next(model.parameters()).device.type == "cuda"
    if not is_needed or hooks.privacy is not None:
        return None
    make = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
    return make(init_scale=FIRST_SCALE)


def train(model: Any, data: Iterable[Any], optimizer: Any, config: LoraConfig,
          hooks: Optional[Hooks] = None) -> List[float]:
    """config.num_steps steps, over the data as often as it takes, else one pass over it; the loss of each step.

    >>> losses = train(model, dataloader, make_optimizer(model, config), config)
    """
    hooks = hooks or Hooks()
    scaler, n_tokens, losses = _scaler(config, model, hooks), _n_tokens(model), []
    batches, n_steps = _batches(data, config.num_steps), config.num_steps or _length(data)
    is_first_rank = os.environ.get("RANK", "0") == "0"
    if is_first_rank:
        _say_plan(data, config.num_steps)
    for i in itertools.count() if n_steps is None else range(n_steps):
        given = _next(batches, n_steps is None)
        if given is None:
            break
        with tidemark.stage("data"):
            batch = _checked(as_batch(given), n_tokens)
        losses.append(_step(model, batch, optimizer, config, hooks, scaler))
        if is_first_rank:
            of_all = "" if n_steps is None else f"/{n_steps}"
            say(logging.INFO, words("step", "训练步") + f" {i + 1}{of_all}: loss {losses[-1]:.4f}")
        if hooks.after_step is not None:
            hooks.after_step(i, losses[-1])
    return losses


def _next(batches: Iterator[Any], may_end: bool) -> Any:
    """A batch, as the first thing of its step; None: there is none. Where that may be, the step begins after it: none
    shall begin in vain."""
    if not may_end:
        tidemark.step()
    with tidemark.stage("data"):
        given = next(batches, None)
    if may_end and given is not None:
        tidemark.step()
    return given


def run(config: LoraConfig, data: Optional[Iterable[Any]] = None, hooks: Optional[Hooks] = None) -> Trained:
    """A whole training, stage by stage.

    >>> trained = run(LoraConfig(num_steps=5))
    >>> len(trained.losses)
    5
    """
    hooks, config = hooks or Hooks(), settled(config)
    device = pick_device(config.device)
    if device.type == "cuda" and device.index is not None:
        import torch
        torch.cuda.set_device(device)
    with tidemark.stage("model_load"):
        model = build_model(config, device, hooks.made_on)
    with tidemark.stage("data"):
        data = make_data(config, model) if data is None else data
    if hooks.wrap is not None:
        with tidemark.stage("wrap"):
            model = hooks.wrap(model, config)
    with tidemark.stage("optimizer_setup"):
        optimizer = make_optimizer(model, config)
    if hooks.privacy is not None:
        with tidemark.stage("privacy_setup"):
            model, optimizer, data = hooks.privacy(model, optimizer, data, config)
    losses = train(model, data, optimizer, config, hooks)
    return Trained(model, optimizer, losses, config.with_({"num_steps": len(losses)}))


# ---- the command

EXAMPLES = """examples:
  python -m tidemark.lora_training --seq_length 128 --batch_size 8 --max_physical_batch_size 2 --lora_rank 8
  python -m tidemark.lora_training --model meta-llama/Llama-3.1-8B-Instruct --precision bf16 --num_steps 3
  tidemark run -o train.tmk -- python -m tidemark.lora_training --config lora.json
"""


def is_out_of_memory(reason: BaseException) -> bool:
    """torch's OutOfMemoryError of a GPU, and what it raises on the CPU."""
    return type(reason).__name__ == "OutOfMemoryError" or (
        isinstance(reason, RuntimeError) and ("out of memory" in str(reason) or "allocate memory" in str(reason)))


def is_expected(reason: BaseException) -> bool:
    """Its message says all: no traceback is needed."""
    from ._lora_model import ModelError
    return is_out_of_memory(reason) or isinstance(reason, ModelError)


def checked_config(arguments: argparse.Namespace) -> LoraConfig:
    """Of a command's arguments; ValueError or OSError says what is wrong with them."""
    config = config_of(arguments)
    pick_device(config.device)
    return config


def result_of(trained: Trained) -> Dict[str, Any]:
    """What the command prints: bytes as torch counts them."""
    import torch
    from ._lora_model import shape_used
    device = torch.device(trained.config.device)
    config = {**trained.config.to_dict(), **shape_used(trained.model, trained.config)}
    found = _figures.figures(_figures.HOST if device.type == "cpu" else _figures.CARD + (device.index or 0))
    return {"config": config, "losses": trained.losses, "device": str(device),
            "max_allocated": found.max_allocated, "max_reserved": found.max_reserved, "run": tidemark.run}


def main(arguments: Optional[List[str]] = None) -> int:
    parser = Parser(
        prog="python -m tidemark.lora_training", usage="%(prog)s [--config FILE] [--model NAME] [options]",
        epilog=EXAMPLES,
        description="A LoRA training to be measured. One JSON object on stdout, progress on stderr.")
    add_arguments(parser)
    given = parser.parse_args(arguments)
    if _figures.torch_or_none() is None:
        sys.exit("lora_training: torch is not installed: pip install torch")
    try:
        config = checked_config(given)
    except (OSError, ValueError) as reason:
        parser.error(str(reason))
    try:
        trained = run(config)
    except RuntimeError as reason:
        if not is_expected(reason):
            raise
        print(f"lora_training: {reason}", file=sys.stderr)
        return 1
    print(json.dumps(result_of(trained)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
