"""tidemark.watch() names what is not found by itself; step() and stage() of the script's own count."""
import tidemark
import torch
from torch import nn


class Functional:
    """No nn.Module, so nobody calls one."""

    def __init__(self):
        self.linear = nn.Linear(33, 17)

    def __call__(self, x):
        return torch.nn.functional.linear(x, self.linear.weight, self.linear.bias)


torch.manual_seed(0)
model = Functional()
optimizer = torch.optim.Adam(model.linear.parameters())
tidemark.watch(model.linear, optimizer)
for number in (10, 20, 30):
    tidemark.step(number)
    with tidemark.stage("data"):
        x = torch.randn(19, 33)
    with tidemark.stage("sample"):
        y = model(x)
        noise = torch.randn(19, 17)
        loss = (y + noise).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {number} loss {loss.item():.9f}", flush=True)
