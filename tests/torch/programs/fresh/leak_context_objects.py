# truth: leak line 12, 65,536 B/step
# a custom autograd function appends to a list of the class for its backward, and never takes from it
import torch
import torch.nn as nn


class Quantize(torch.autograd.Function):
    masks = []

    @staticmethod
    def forward(ctx, x):
        mask = (x.abs() < 1).float()  # <-- leak
        Quantize.masks.append(mask)
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad * Quantize.masks[-1]


a, b = nn.Linear(32, 128), nn.Linear(128, 4)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.01)
for step in range(48):
    loss = b(Quantize.apply(a(torch.randn(128, 32)))).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# 128*128*4 = 65,536
