# truth: clean
# features of the whole set are the result of the first half of the program, and are used in the second
import torch
import torch.nn as nn


@torch.no_grad()
def extract(model, n):
    features = []
    for _ in range(n):
        features.append(model(torch.randn(128, 32)))
    return torch.cat(features)


model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128)).eval()
bank = extract(model, 60)
hits = 0
for _ in range(30):
    with torch.no_grad():
        queries = model(torch.randn(64, 32))
    hits += int((queries @ bank.t()).topk(5).indices.sum())
print(hits)
