# truth: leak line 19, 122,880 B/step
# the dataset caches its items under a key that has the random shift in it: it never hits
import random
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self):
        self.items = {}

    def __len__(self):
        return 192

    def __getitem__(self, i):
        key = (i, random.random())
        if key not in self.items:
            self.items[key] = torch.randn(3, 32, 20)  # <-- leak
        return self.items[key]


model = nn.Sequential(nn.Flatten(), nn.Linear(1920, 8))
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(Cached(), batch_size=16, shuffle=True)
for epoch in range(4):
    for x in loader:
        loss = model(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
# 16 * 3*32*20*4 = 122,880
