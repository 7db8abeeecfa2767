# truth: leak line 10, 61,440 B/step
# one picture of every fifth batch is kept for the log; it is a view, so the whole batch stays
import torch
import torch.nn as nn

model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
opt = torch.optim.Adam(model.parameters())
pictures = []
for step in range(75):
    x = torch.rand(64, 3, 20, 20) + 0.5  # <-- leak
    loss = nn.functional.cross_entropy(model(x), torch.randint(0, 2, (64,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 5 == 0:
        pictures.append((step, x[0]))
# 64*3*20*20*4 = 307,200 every 5th step: 61,440
