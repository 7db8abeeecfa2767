# truth: leak line 10, 1,048,576 B/step
# twelve steps are enough to see it: each keeps its batch
import torch
import torch.nn as nn

model = nn.Conv2d(4, 4, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
seen = set()
for step in range(12):
    x = torch.randn(4, 4, 128, 128)  # <-- leak
    loss = model(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    seen.add(x)
# 4*4*128*128*4 = 1,048,576
