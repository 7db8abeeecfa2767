# truth: clean
# batch objects refer to themselves; Python's collector frees them now and then
import torch
import torch.nn as nn


class Batch:
    def __init__(self, n):
        self.x = torch.randn(n, 60)
        self.reset = self.clear
        self.extra = [[] for _ in range(60)]

    def clear(self):
        self.x = None


model = nn.Linear(60, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(120):
    batch = Batch(320)
    loss = model(batch.x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
