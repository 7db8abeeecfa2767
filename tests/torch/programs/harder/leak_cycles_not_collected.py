# truth: leak line 12, 76,800 B/step
# Python's collector is off "for speed", and each batch object refers to itself
import gc
import torch
import torch.nn as nn

gc.disable()


class Batch:
    def __init__(self, n):
        self.x = torch.randn(n, 60)  # <-- leak
        self.reset = self.clear

    def clear(self):
        self.x = None


model = nn.Linear(60, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    batch = Batch(320)
    loss = model(batch.x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# 320*60*4 = 76,800
