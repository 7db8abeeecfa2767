# truth: leak line 18, 4,096 B/step
# batches of any length make memory swing by megabytes; a few KiB of each are kept
import random
import torch
import torch.nn as nn

random.seed(13)
model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 4))
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
first_rows = []
for step in range(350):
    x = torch.randn(random.randint(100, 4000), 32)
    out = model(x)
    loss = out.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    first_rows.append(x[:32].clone())  # <-- leak
# 32*32*4 = 4,096
