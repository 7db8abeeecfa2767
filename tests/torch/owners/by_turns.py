"""Two models made first and trained one after the other; then one by hand, without an optimizer; an optimizer
class that comes late."""
import torch
from torch import nn

torch.manual_seed(0)


def train(model, update, n):
    for _ in range(n):
        model(torch.randn(2, 8)).pow(2).mean().backward()
        update()


def by_hand(model):
    def update():
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    return update


def by(optimizer):
    def update():
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return update


first, second = nn.Linear(8, 8), nn.Linear(8, 8)
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (first, second)]
train(first, by(optimizers[0]), 5)
train(second, by(optimizers[1]), 5)


class Late(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad, alpha=0.1)


late = Late(first.parameters())
train(first, by(late), 5)
del optimizers, late
