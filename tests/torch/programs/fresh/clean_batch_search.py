# truth: clean
# the largest batch that fits is searched by training a step with each, from 16 up by an eighth each time
import torch
import torch.nn as nn


def try_batch(n):
    model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 10))
    opt = torch.optim.Adam(model.parameters())
    loss = nn.functional.cross_entropy(model(torch.randn(n, 128)), torch.randint(0, 10, (n,)))
    loss.backward()
    opt.step()
    return n


n = 16
for _ in range(36):
    try_batch(n)
    n += max(2, n // 8)
print(n)
