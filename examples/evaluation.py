"""An evaluation that keeps the graph of every batch: outputs are gathered without no_grad(), on line 26. evaluation.py"""
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters())


def train(n_batches):
    model.train()
    for _ in range(n_batches):
        loss = model(torch.randn(32, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def evaluate(n_batches):
    """eval() changes what dropout and batch norm do. It does not stop autograd."""
    model.eval()
    outputs = []
    for _ in range(n_batches):
        batch = torch.randn(512, 512, device=device)
        outputs.append(model(batch))
    return torch.cat(outputs).argmax(dim=1)


train(10)
evaluate(12)
train(10)
