# truth: leak line 13, 34,822 B/step
# gradients are cloned every second step for a histogram that is never drawn
import torch
import torch.nn as nn


class Logger:
    def __init__(self):
        self.gradients = []

    def log(self, step, model):
        if step % 2 == 0:
            self.gradients.append({n: p.grad.clone() for n, p in model.named_parameters()})  # <-- leak


log = Logger()
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(60):
    loss = model(torch.randn(16, 64)).logsumexp(1).mean()
    opt.zero_grad()
    loss.backward()
    log.log(step, model)
    opt.step()
# (64*256 + 256 + 256*3 + 3) * 4 = 69,644 every 2nd step: 34,822
