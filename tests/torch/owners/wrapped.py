"""The same small model plain, in DataParallel and in DistributedDataParallel: wrapped.py plain|dp|ddp."""
import os
import sys
import tempfile

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(22, 10), nn.ReLU())
        self.head = nn.Linear(10, 2)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
model = Net()
if sys.argv[1] == "dp":
    model = nn.DataParallel(model)
if sys.argv[1] == "ddp":
    store = tempfile.mkdtemp()
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}/store", rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(4, 22)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.9f}", flush=True)
if sys.argv[1] == "ddp":
    torch.distributed.destroy_process_group()
    os.unlink(f"{store}/store")
    os.rmdir(store)
