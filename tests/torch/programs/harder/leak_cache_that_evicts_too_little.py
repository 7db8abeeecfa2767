# truth: leak line 10, 49,152 B/step in the mean
# a cache drops one entry of four that come; three of four stay
import torch
import torch.nn as nn

model = nn.Linear(128, 16)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
cache = {}
for step in range(100):
    x = torch.randn(128, 128)  # <-- leak
    cache[step] = x
    if step % 4 == 3:
        del cache[step - 1]
    loss = model(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# 3/4 of 128*128*4 = 65,536
