# truth: leak line 12, 40,960 B/step
# the outputs of each epoch are put into a history of all epochs; ten short epochs
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 40))
opt = torch.optim.Adam(model.parameters())
history = []
for epoch in range(10):
    outputs = []
    for batch in range(6):
        out = model(torch.randn(256, 24))  # <-- leak
        loss = out.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        outputs.append(out.detach())
    history.append(outputs)
# 256*40*4 = 40,960
