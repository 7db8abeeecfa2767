# truth: leak line 20, 41,208 B/step
# the learning-rate finder keeps the weights after each step "to go back to the best", in a function's local list
import torch
import torch.nn as nn
import torch.nn.functional as F


def find_rate(model, n_steps):
    opt = torch.optim.SGD(model.parameters(), lr=1e-6)
    weights, losses = [], []
    for step in range(n_steps):
        for group in opt.param_groups:
            group["lr"] *= 1.1
        x, y = torch.randn(64, 100), torch.randint(0, 2, (64,))
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        weights.append([p.detach().clone() for p in model.parameters()])  # <-- leak
    return losses.index(min(losses))


model = nn.Sequential(nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 2))
print("best", find_rate(model, 55))
with torch.no_grad():
    for _ in range(5):
        model(torch.randn(64, 100))
# (100*100 + 100 + 200 + 2) * 4 = 41,208
