# truth: leak, in the loader's worker process: each item is 40,000 B, 8 items a step
# the data set keeps every item that it makes, in its worker; a new crop each time, so it never hits
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    def __init__(self):
        self.cache = {}

    def __len__(self):
        return 400

    def __getitem__(self, i):
        picture = torch.rand(120, 120)
        crop = (picture[10:110, 10:110] * 2 - 1).contiguous()  # <-- leak
        self.cache[len(self.cache)] = crop
        return crop


if __name__ == "__main__":
    model = nn.Sequential(nn.Flatten(), nn.Linear(10000, 2))
    opt = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x in DataLoader(Crops(), batch_size=8, num_workers=1):
        loss = model(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
