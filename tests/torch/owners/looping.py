"""A training that makes a step for each line of its standard input: looping.py [--schedule] [--within]. At the
end it says whether torch is as it was. --within: the third backward waits in its middle for a line, then for a
quarter of a second in which blocks are made."""
import sys
import time

import torch
from torch import nn


class Wait(torch.autograd.Function):
    n_backwards = 0

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        Wait.n_backwards += 1
        if Wait.n_backwards == 3:
            print("within", flush=True)
            sys.stdin.readline()
            for _ in range(50):
                torch.ones(8)
                time.sleep(0.005)
        return grad


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(40, 50), nn.ReLU(inplace=True))
        self.norm = nn.BatchNorm1d(50)
        self.head = nn.Linear(50, 6)

    def forward(self, x):
        x = self.norm(self.body(x))
        return self.head(Wait.apply(x) if "--within" in sys.argv else x)


def state_of_torch():
    modules = torch.nn.modules.module
    functions = [nn.Module.__call__, torch.optim.Adam.step, torch.optim.Optimizer.step, torch.Tensor.backward]
    return [*map(id, functions), nn.Module.__call__.__code__.co_name, torch.optim.Adam.step.__qualname__,
            [len(getattr(modules, name)) for name in
             ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")],
            [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules()],
            [p._backward_hooks for p in model.parameters()], "step" in vars(optimizer)]


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters())
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1000) if "--schedule" in sys.argv else None
before = state_of_torch()
for step, _ in enumerate(iter(sys.stdin.readline, "")):
    loss = model(torch.randn(8, 40)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if schedule:
        schedule.step()
    print(f"step {step} loss {loss.item():.9f}", flush=True)
for _ in range(100):  # a thread puts things back, when it gets the interpreter's lock
    if state_of_torch() == before:
        break
    time.sleep(0.02)
print("as it was" if state_of_torch() == before else f"{before} {state_of_torch()}", flush=True)
