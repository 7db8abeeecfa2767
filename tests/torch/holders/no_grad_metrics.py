# SPDX-License-Identifier: MIT
"""Three tensors a step are kept, made under no_grad by the model and after it."""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
opt = torch.optim.Adam(net.parameters())
metrics = []
for step in range(70):
    x = torch.randn(128, 64)
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        logits = net(x)  # owner
        probs = logits.softmax(-1)  # owner
        err = (probs - logits).abs()  # owner
        metrics.append({"logits": logits, "probs": probs, "err": err})
