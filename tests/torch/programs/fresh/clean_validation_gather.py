# truth: clean
# every tenth step a validation gathers the outputs of twelve batches, computes its metric and drops them
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(20, 100), nn.ReLU(), nn.Linear(100, 10))
opt = torch.optim.Adam(model.parameters())


@torch.no_grad()
def validate():
    outputs, labels = [], []
    for _ in range(12):
        outputs.append(model(torch.randn(1024, 20)))
        labels.append(torch.randint(0, 10, (1024,)))
    return (torch.cat(outputs).argmax(1) == torch.cat(labels)).float().mean().item()


for step in range(100):
    loss = nn.functional.cross_entropy(model(torch.randn(64, 20)), torch.randint(0, 10, (64,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 9:
        validate()
