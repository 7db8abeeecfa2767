# truth: clean
# five folds, each with a model and an optimizer of its own; only scores are kept, and the model of the last fold
import torch
import torch.nn as nn


def run_fold(fold):
    model = nn.Sequential(nn.Linear(40, 400), nn.ReLU(), nn.Linear(400, 2))
    opt = torch.optim.Adam(model.parameters())
    for _ in range(12):
        loss = nn.functional.cross_entropy(model(torch.randn(64, 40)), torch.randint(0, 2, (64,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model, loss.item()


scores = []
for fold in range(5):
    model, score = run_fold(fold)
    scores.append(score)
print(scores)
