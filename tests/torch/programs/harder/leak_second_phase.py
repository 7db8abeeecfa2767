# truth: leak line 23, 51,200 B/step
# pre-training is fine; fine-tuning keeps teacher outputs in a list of its own; then a long test
import torch
import torch.nn as nn

student, teacher = nn.Linear(50, 100), nn.Linear(50, 100)


def pretrain(n):
    opt = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(n):
        loss = student(torch.randn(128, 50)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def distill(n):
    opt, targets = torch.optim.SGD(student.parameters(), lr=0.1), []
    for _ in range(n):
        x = torch.randn(128, 50)
        with torch.no_grad():
            t = teacher(x)  # <-- leak
        targets.append(t)
        loss = (student(x) - t).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return len(targets)


pretrain(40)
distill(45)
with torch.no_grad():
    for _ in range(60):
        student(torch.randn(128, 50))
# 128*100*4 = 51,200
