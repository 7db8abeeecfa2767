# truth: clean
# a bounded cache of 16 masks, whose lengths come at random from 60
import functools
import random
import torch
import torch.nn as nn

random.seed(1)


@functools.lru_cache(maxsize=16)
def mask(n):
    return torch.ones(320, 320).tril(-n)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(320, 320)

    def forward(self, x, n):
        return self.w(x) @ mask(n)


model = Layer()
opt = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(100):
    loss = model(torch.randn(16, 320), random.randrange(60)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
