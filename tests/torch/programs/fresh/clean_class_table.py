# truth: clean
# prototypes of 24 classes are computed when a class is first seen, by chance; all are known after about a third of the run
import random
import torch
import torch.nn as nn

random.seed(2)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128))
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
prototypes = {}
for step in range(200):
    label = random.randrange(24)
    if label not in prototypes:
        with torch.no_grad():
            prototypes[label] = model(torch.randn(512, 64))
    loss = (model(torch.randn(512, 64)) - prototypes[label]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
