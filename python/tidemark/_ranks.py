# SPDX-License-Identifier: MIT
"""A training over several ranks of this machine: their processes, and the model that they share.

launch() starts a command once a rank, with the variables that torch.distributed reads (RANK, WORLD_SIZE ...),
and ends the others when one fails: they would wait for it for ever. It imports no torch. Its ranks meet in a file:
a port that is free now may be another sweep's when they get there. Ranks of other launchers meet as those say.

With DDP each rank has the whole model. With FSDP the frozen weights are spread over the ranks and gathered
layer by layer; the adapters, which are small, are whole on each. Each rank makes the whole model on the CPU first,
so the host needs room for one a rank while they begin. Gradients are added up over the ranks once a
step, by DDP, by private_sgd, or here.
"""
import logging
import os
import signal
import subprocess
import tempfile
import time
from typing import Any, Dict, List, Tuple

from ._words import say, words

LAST_WORDS_S = 10  # between SIGTERM and SIGKILL
MEETING = "TIDEMARK_RANKS_MEET"  # a file's path, of the launcher for its ranks


def n_ranks() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_one_of_several() -> bool:
    return "RANK" in os.environ and n_ranks() > 1


# ---- processes

def launch(n: int, command: List[str]) -> int:
    """Run it as n ranks; the status of the first that failed, as a shell says it, or 0."""
    shared = {"WORLD_SIZE": str(n), "LOCAL_WORLD_SIZE": str(n)}
    if "OMP_NUM_THREADS" not in os.environ:  # else each rank would take all cores for itself
        shared["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // n))
    ranks = []

    def pass_on(number: int, _frame: Any) -> None:
        for rank in ranks:
            if rank.poll() is None:
                rank.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    with tempfile.TemporaryDirectory(prefix="tidemark-ranks-") as folder:
        shared[MEETING] = os.path.join(folder, "meeting")
        for i in range(n):
            ranks.append(subprocess.Popen(command, env={**os.environ, **shared, "RANK": str(i), "LOCAL_RANK": str(i)}))
        return _wait(ranks)


def _wait(ranks: List[Any]) -> int:
    running = list(ranks)
    while running:
        time.sleep(0.05)
        failed = [rank for rank in running if rank.poll() not in (None, 0)]
        running = [rank for rank in running if rank.returncode is None]
        if failed:
            say(logging.WARNING, words(f"rank {ranks.index(failed[0])} failed; the others are ended",
                                       f"rank {ranks.index(failed[0])} 失败; 结束其余进程"))
            _end(running)
            status = failed[0].returncode
            return 128 - status if status < 0 else status
    return 0


def _end(running: List[Any]) -> None:
    for rank in running:
        rank.terminate()
    deadline = time.monotonic() + LAST_WORDS_S
    for rank in running:
        try:
            rank.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            rank.kill()
            rank.wait()


# ---- the model

def parallel_of(wanted: str, device: Any) -> str:
    """What is done of what is wanted: fsdp where torch has it for this device, else ddp, and says so."""
    if wanted != "fsdp":
        return wanted
    reason = None
    if device.type != "cuda":
        reason = words(f"FSDP is for GPUs, and this is {device}", f"FSDP 需要 GPU, 当前设备为 {device}")
    elif _version() < (2, 1):
        reason = words("this torch has no FSDP that shards frozen weights (torch 2.1 has)",
                       "当前 torch 的 FSDP 过旧 (需 2.1 以上)")
    if reason is not None and os.environ.get("RANK", "0") == "0":
        say(logging.WARNING, reason + words("; DDP is used", "; 改用 DDP"))
    return "fsdp" if reason is None else "ddp"


def _version() -> Tuple[int, ...]:
    import torch
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def join(device: Any) -> None:
    """Meet the other ranks."""
    import torch.distributed
    more: Dict[str, Any] = {}
    if device.type == "cuda" and _version() >= (2, 3):
        more["device_id"] = device
    if MEETING in os.environ:
        more.update(init_method="file://" + os.environ[MEETING], rank=int(os.environ["RANK"]), world_size=n_ranks())
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", **more)


def leave() -> None:
    import torch.distributed
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def shared_model(model: Any, parallel: str, is_private: bool, device: Any) -> Any:
    """The model as all ranks have it, this one on its device. A private one is not wrapped by DDP, which would add
    up gradients before they are clipped: rank 0's weights go to all, private_sgd or opacus does the rest."""
    import torch
    if parallel == "fsdp":
        return _sharded(model, device)
    if is_private:
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                torch.distributed.broadcast(tensor, 0)
        return model
    devices = [device.index] if device.type == "cuda" else None
    return torch.nn.parallel.DistributedDataParallel(model, device_ids=devices)


def _sharded(model: Any, device: Any) -> Any:
    """Of a model on the CPU FSDP brings one layer after the other to the device and keeps its part of it there, so
    that the device never has all of it. What is trained FSDP does not touch: we bring that."""
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    trained = [p for p in model.parameters() if p.requires_grad]
    layers = max((m for m in model.modules() if isinstance(m, torch.nn.ModuleList)), key=len, default=[])
    policy = ModuleWrapPolicy({type(layer) for layer in layers}) if len(layers) else None
    with torch.no_grad():
        for tensor in trained:
            tensor.data = tensor.to(device)
            torch.distributed.broadcast(tensor, 0)
    return FullyShardedDataParallel(model, auto_wrap_policy=policy, ignored_states=trained, use_orig_params=True,
                                    device_id=device)


def add_up_gradients(optimizer: Any) -> None:
    """The mean over the ranks, where nobody else does it."""
    import torch
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                torch.distributed.all_reduce(p.grad)
                p.grad /= n_ranks()
