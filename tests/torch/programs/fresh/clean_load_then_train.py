# truth: clean
# 48 shards are read into a list and put together, then a few epochs are trained on them
import torch
import torch.nn as nn


def read_shard(i):
    torch.manual_seed(i)
    return torch.randn(256, 64), torch.randint(0, 4, (256,))


shards = [read_shard(i) for i in range(48)]
x, y = torch.cat([s[0] for s in shards]), torch.cat([s[1] for s in shards])
del shards
model = nn.Linear(64, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(2):
    for rows in torch.randperm(len(x)).split(512):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
