# SPDX-License-Identifier: MIT
"""What the programs of this folder share. Each runs out of memory for one known reason, within seconds;
with --fix [KIND[:NUMBER]] it does what a good adviser would say, and ends well. They print a line at the end."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import checks  # noqa: E402

MIB = 1 << 20
CONF = "PYTORCH_CUDA_ALLOC_CONF"


def need_gpu():
    """Ends the program, loudly, where torch finds no GPU."""
    import torch
    checks.need_gpu(torch.cuda.is_available())


def wanted_fix(usual):
    """(kind, number): `usual` for a bare --fix, (None, None) without one. Before torch is imported: a fix may
    be a setting of its allocator, which the environment has or, for a bare --fix, is set here. Needs a GPU."""
    if "--fix" not in sys.argv:
        need_gpu()
        return None, None
    at = sys.argv.index("--fix")
    kind, _, number = (sys.argv[at + 1] if at + 1 < len(sys.argv) else usual).partition(":")
    if kind == "expandable_segments":
        os.environ.setdefault(CONF, "expandable_segments:True")
    need_gpu()
    return kind, float(number) if number else None


def allow(size_bytes):
    """Let torch have so much of the card and no more."""
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(size_bytes / total)


def train_step(model, optimizer, batch):
    loss = (model(batch) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()


def done():
    import torch
    torch.cuda.synchronize()
    print("done: peak", torch.cuda.max_memory_allocated(), "reserved", torch.cuda.max_memory_reserved(), flush=True)
