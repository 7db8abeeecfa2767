"""Gradients of four batches are added up before the optimizer steps."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for micro in range(12):
    loss = model(torch.randn(7, 20)).pow(2).mean() / 4
    loss.backward()
    if micro % 4 == 3:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print(f"micro {micro} loss {loss.item():.9f}", flush=True)
