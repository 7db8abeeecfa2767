"""A two-layer perceptron with Adam: every block is known by hand (test_owners_mlp.py)."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(3):
    x, target = torch.randn(32, 64), torch.randn(32, 10)
    y = model(x)
    loss = (y - target).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.9f}", flush=True)
