"""What hooks of modules stumble over: in-place code, own autograd functions, modules that are used
twice, called by themselves, or made anew each time."""
import torch
from torch import nn


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(18, 18)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.linear(self.relu(x * 1))
        y += x
        return y


class Squares(nn.Module):
    def forward(self, x):
        return Double.apply(x)


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(Block(), Block())
        self.squares = Squares()
        self.shared = nn.Linear(18, 18)

    def forward(self, x):
        x = self.encoder(x)
        x = self.shared(x)
        x = self.shared(torch.tanh(x))
        return self.squares(x)


torch.manual_seed(0)
model = Odd()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(3):
    x = torch.randn(6, 18)
    y = model(x)
    z = model.encoder(x)
    made = nn.Sequential(nn.Linear(18, 7), nn.Sigmoid())
    w = made(z)
    loss = y.mean() + z.mean() + w.mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.9f}", flush=True)
