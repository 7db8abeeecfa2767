"""Trainings that make gradients hard to follow: gradient_cases.py CASE [LIBRARY].

LIBRARY is a stand-in for a function of newer torch (aoti.c). Prints the gradients that there are after each
backward, names and bytes, no two of the same size, and how often Python was asked for an address in it."""
import ctypes
import gc
import json
import queue
import sys
import threading

library = ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL) if len(sys.argv) > 2 else None

import torch  # noqa: E402  behind the library
from torch import nn  # noqa: E402

N_ASKED = [0]
data_ptr = torch.Tensor.data_ptr


def counted(tensor):
    N_ASKED[0] += 1
    return data_ptr(tensor)


torch.Tensor.data_ptr = counted


def tell(parameters):
    found = {name: p.grad.numel() * p.grad.element_size() for name, p in parameters if p.grad is not None}
    print(json.dumps([found, N_ASKED[0]]), flush=True)
    N_ASKED[0] = 0


class Late(nn.Module):
    """A layer of it is used later."""

    def __init__(self):
        super().__init__()
        self.first, self.late = nn.Linear(8, 10), nn.Linear(8, 12)

    def forward(self, x, is_late):
        return self.first(x).sum() + (self.late(x).sum() if is_late else 0)


def late():
    model = Late()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(64):
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(4, 8), i >= 34).backward()
        tell(model.named_parameters())
        optimizer.step()


def inputs():
    """Inputs have gradients, and are new each time."""
    model = Late()
    for i in range(200):
        model.zero_grad(set_to_none=True)
        model(torch.randn(4, 8).requires_grad_(), i >= 140).backward()
        tell(model.named_parameters())


def turns():
    """Two optimizers; what one has made is there while the other's is made."""
    models = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 9)])
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    for i in range(128):
        optimizers[i % 2].zero_grad(set_to_none=True)
        models[i % 2](torch.randn(4, 8)).sum().backward()
        tell((f"{i % 2}.{name}", p) for name, p in models[i % 2].named_parameters())
        optimizers[i % 2].step()


def gone():
    """The model goes, other tensors come to be where its parameters were."""
    model = nn.Sequential(*[nn.Linear(50, 50 + i) if i == 0 else nn.Linear(49 + i, 50 + i) for i in range(4)])
    for _ in range(20):
        model.zero_grad(set_to_none=True)
        model(torch.randn(4, 50)).sum().backward()
        tell(model.named_parameters())
    del model
    gc.collect()
    tensors = [torch.randn(100, 7 * (i + 1)).requires_grad_() for i in range(12)]
    for _ in range(10):
        for tensor in tensors:
            tensor.grad = None
        sum((tensor * tensor).sum() for tensor in tensors).backward()
        tell([])


def moved():
    """Two parameters change places."""
    model = Late()
    for i in range(200):
        if i == 66:
            model.first.weight, model.late.weight = model.late.weight, model.first.weight
            model.first.bias, model.late.bias = model.late.bias, model.first.bias
        model.zero_grad(set_to_none=True)
        model(torch.randn(4, 8), True).backward()
        tell(model.named_parameters())


def captured():
    """Every second time the gradients go to whoever asks for them, and into no parameter."""
    model, kept = Late(), []
    for i in range(64):
        model.zero_grad(set_to_none=True)
        loss = model(torch.randn(4, 8), True)
        if i % 2:
            kept[:] = torch.autograd.grad(loss, list(model.parameters()))
        else:
            loss.backward()
        tell(model.named_parameters())


class Shared(nn.Module):
    """Both parameters have the same gradient: torch copies it for one of them."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(40)), nn.Parameter(torch.zeros(40))
        self.c = nn.Linear(40, 3)

    def forward(self, x):
        return self.c(x * (self.a + self.b))


def shared(is_kept=False):
    """Four backwards a step."""
    model = Shared()
    for i in range(128):
        if i % 4 == 0:
            model.zero_grad(set_to_none=not is_kept)
        model(torch.randn(4, 40)).sum().backward()
        found = model.named_parameters() if i % 4 == 0 and (i == 0 or not is_kept) else []
        tell(found)  # each is a block of its own: named once


def kept():
    shared(is_kept=True)


def taken():
    """Another thread takes a gradient as soon as there is one; none is left when backward ends."""
    model = nn.Sequential(*[nn.Linear(16, 16) for _ in range(20)])
    waiting, done, nodes = queue.SimpleQueue(), threading.Semaphore(0), []

    def take():
        for p in iter(waiting.get, None):
            p.grad = None
            done.release()

    for p in model.parameters():
        nodes.append(p.expand_as(p).grad_fn.next_functions[0][0])
        nodes[-1].register_hook(lambda *_, p=p: waiting.put(p))
    thread = threading.Thread(target=take)
    thread.start()
    for _ in range(300):
        model(torch.randn(4, 16)).sum().backward()
        for _ in nodes:
            done.acquire()
        tell(model.named_parameters())
    waiting.put(None)
    thread.join()


torch.manual_seed(0)
globals()[sys.argv[1]]()
print(ctypes.c_int.in_dll(library, "n_asked").value if library else 0)
