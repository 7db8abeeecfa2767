# truth: leak line 13, 88,064 B/step
# per-task metrics keep logits and labels of the whole training; two lines, of which the logits are the larger part
import torch
import torch.nn as nn
import torch.nn.functional as F


class Meter:
    def __init__(self):
        self.logits, self.labels = [], []

    def update(self, logits, labels):
        self.logits.append(F.softmax(logits.detach(), 1))  # <-- leak
        self.labels.append(labels + 0)  # <-- second


heads = nn.ModuleDict({"color": nn.Linear(24, 30), "shape": nn.Linear(24, 9)})
meters = {task: Meter() for task in heads}
opt = torch.optim.SGD(heads.parameters(), lr=0.1)
for step in range(60):
    x = torch.randn(512, 24)
    loss = 0
    for task, head in heads.items():
        y = torch.randint(0, head.out_features, (512,))
        logits = head(x)
        loss = loss + F.cross_entropy(logits, y)
        meters[task].update(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
# 512*(30 + 9)*4 = 79,872, and labels 2*512*8 = 8,192: 88,064
