"""Where blocks come from that are in no forward, backward or optimizer: model, data, the script."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
items = TensorDataset(torch.randn(12, 21), torch.randn(12, 3))
model = nn.Sequential(nn.Linear(21, 23), nn.ReLU(), nn.Linear(23, 3))
model.double()
own = torch.empty(54321, dtype=torch.uint8)
optimizer = torch.optim.Adam(model.parameters())
for x, target in DataLoader(items, batch_size=4):
    loss = nn.functional.mse_loss(model(x.double()), target.double())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"loss {loss.item():.9f}", flush=True)
