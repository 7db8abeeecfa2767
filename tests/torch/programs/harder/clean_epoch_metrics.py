# truth: clean
# outputs of an epoch of 25 steps are gathered for its accuracy; the fourth epoch is broken off
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(30, 60), nn.ReLU(), nn.Linear(60, 50))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
step = 0
for epoch in range(4):
    outputs, labels = [], []
    for batch in range(25):
        x, y = torch.randn(512, 30), torch.randint(0, 50, (512,))
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        outputs.append(out.detach())
        labels.append(y)
        step += 1
        if step == 92:
            break
    print((torch.cat(outputs).argmax(1) == torch.cat(labels)).float().mean().item())
