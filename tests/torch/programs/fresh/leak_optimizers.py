# truth: leak line 15, 25,352 B/step
# a new Adam for each phase of four steps; the old ones stay in a list, with their moments
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(96, 128), nn.ReLU(), nn.Linear(128, 2))
phases = []
for step in range(80):
    if step % 4 == 0:
        opt = torch.optim.Adam(model.parameters(), lr=1e-3 * 0.9 ** (step // 4))
        phases.append(opt)
    loss = model(torch.randn(32, 96)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  # <-- leak
# 2 * (96*128 + 128 + 256 + 2) * 4 = 101,392 + 4 counters of 4 B every 4th step: 25,352
