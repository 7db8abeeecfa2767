"""Forward, backward and the optimizer fail once each, deep inside; training goes on."""
import torch
from torch import nn

torch.manual_seed(0)
fail_in = None


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if fail_in == "forward":
            raise ValueError("forward")
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        if fail_in == "backward":
            raise ValueError("backward")
        return gradient * 2


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 12)

    def forward(self, x):
        return Failing.apply(self.linear(x))


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 12)
        self.inner = Inner()
        self.last = nn.Linear(12, 12)

    def forward(self, x):
        return self.last(self.inner(self.first(x)))


class Careful(torch.optim.SGD):
    def step(self, closure=None):
        if fail_in == "optimizer":
            raise ValueError("optimizer")
        return super().step(closure)


model = Outer()
optimizer = Careful(model.parameters(), lr=0.1)
for step, fail_in in enumerate([None, "forward", None, "backward", None, "optimizer", None]):
    said = "-"
    try:
        loss = model(torch.randn(5, 12)).pow(2).mean()
        loss.backward()
        optimizer.step()
        said = f"{loss.item():.9f}"
    except ValueError as reason:
        said = str(reason)
    loss = None
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} {said}", flush=True)
