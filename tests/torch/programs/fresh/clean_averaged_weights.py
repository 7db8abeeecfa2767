# truth: clean
# an exponential average of the weights, and an average of the last epochs that begins half way
import copy
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
opt = torch.optim.Adam(model.parameters())
average, swa = copy.deepcopy(model), None
for step in range(60):
    loss = model(torch.randn(64, 64)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, 0.01)
    if step >= 30 and step % 5 == 0:
        now = copy.deepcopy(model.state_dict())
        swa = now if swa is None else {k: swa[k] * 0.8 + now[k] * 0.2 for k in now}
