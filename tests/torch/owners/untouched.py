"""Nothing of torch's objects is changed or kept: prints what it finds, the same whether watched or not."""
import copy
import gc
import io
import pickle
import pickletools
import sys
import weakref

import torch
from torch import nn


def describe(model, optimizer):
    """What hooks would leave behind."""
    modules = torch.nn.modules.module
    return {
        "call": nn.Module.__call__ is nn.Module._call_impl, "call name": nn.Module.__call__.__qualname__,
        "global": [len(getattr(modules, name)) for name in
                   ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")],
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
                  for m in model.modules()],
        "parameters": [p._backward_hooks for p in model.parameters()],
        "keys": sorted(vars(model)), "optimizer keys": sorted(vars(optimizer)),
        "state": [sorted(map(str, state)) for state in optimizer.state.values()],
    }


def names_in(pickled):
    """Classes and functions that a pickle names."""
    return sorted({str(arg) for code, arg, _ in pickletools.genops(pickled) if code.name == "GLOBAL"})


def train(model, optimizer, n):
    for _ in range(n):
        loss = model(torch.randn(3, 26)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.item()


def references(things):
    """How many hold each of them, but for our own list."""
    return [sys.getrefcount(thing) for thing in things]


torch.manual_seed(0)
for _ in range(5):  # a model that is gone when backward runs, while its parameters are not
    nn.Sequential(nn.Linear(4, 4), nn.Tanh())(torch.ones(1, 4)).sum().backward()
model = nn.Sequential(nn.Linear(26, 9), nn.ReLU(), nn.Linear(9, 2))
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
print(f"{train(model, optimizer, 2):.9f}")
print(describe(model, optimizer))
print(references([model, optimizer, *model.modules(), *model.parameters()]))
print(sorted(type(holder).__name__ for holder in gc.get_referrers(model[0].weight)))
clone, file = copy.deepcopy((model, optimizer)), io.BytesIO()
torch.save((model, optimizer), file)
print(names_in(pickle.dumps((model, optimizer), 0)), file.tell() // 100)
file.seek(0)
loaded = torch.load(file)
print(describe(*loaded))
del loaded
print(f"{train(*clone, 2):.9f} {train(model, optimizer, 2):.9f}")
watched = [weakref.ref(model), weakref.ref(model[0]), weakref.ref(model[0].weight), weakref.ref(optimizer)]
y = model(torch.randn(3, 26))
graph = weakref.ref(y)
del y
print(graph() is None, [ref() is None for ref in watched])
gc.disable()
del model, clone
print([ref() is None for ref in watched])
del optimizer
gc.enable()
gc.collect()
print([ref() is None for ref in watched])
for _ in range(50):  # modules that come and go
    short = nn.Linear(4, 4)
    short(torch.ones(1, 4)).sum().backward()
    ref = weakref.ref(short)
    del short
    assert ref() is None
print(len([thing for thing in gc.get_objects() if isinstance(thing, nn.Module)]))
