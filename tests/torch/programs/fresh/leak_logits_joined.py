# truth: leak line 17, 40,960 B/step
# all logits of a training are joined to one tensor, step by step, for an accuracy at the end
import torch
import torch.nn as nn
import torch.nn.functional as F


def train(model, opt, n):
    logits_all = torch.zeros(0, 40)
    for step in range(n):
        x, y = torch.randn(256, 32), torch.randint(0, 40, (256,))
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        logits_all = torch.cat((logits_all, logits.detach()))  # <-- leak
    return logits_all.argmax(1)


model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 40))
train(model, torch.optim.Adam(model.parameters()), 64)
# 256*40*4 = 40,960
