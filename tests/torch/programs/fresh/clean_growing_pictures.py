# truth: clean
# progressive resizing: pictures grow from 16 to 64 pixels in seven stages of six steps
import torch
import torch.nn as nn

model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for size in range(16, 65, 8):
    for _ in range(6):
        x = torch.randn(8, 3, size, size)
        loss = nn.functional.cross_entropy(model(x), torch.randint(0, 4, (8,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
