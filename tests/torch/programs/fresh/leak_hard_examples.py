# truth: leak line 11, 13,653 B/step
# a window of the last 12 batches is right; every sixth batch is kept as a hard example for ever, made by the same line
import collections
import torch
import torch.nn as nn

model = nn.Linear(160, 4)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
window, hard = collections.deque(maxlen=12), []
for step in range(150):
    x = torch.randn(128, 160)  # <-- leak
    window.append(x)
    loss = model(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 6 == 5:
        hard.append(x)
# 128*160*4 = 81,920 every 6th step
