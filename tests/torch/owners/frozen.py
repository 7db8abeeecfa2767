"""A frozen first layer, batch normalisation, and an output layer that shares the embedding's weight."""
import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.frozen = nn.Linear(16, 16)
        self.norm = nn.BatchNorm1d(16)
        self.hidden = nn.Linear(16, 16)
        self.out = nn.Linear(16, 50, bias=False)
        self.out.weight = self.embedding.weight
        self.frozen.requires_grad_(False)

    def forward(self, tokens):
        return self.out(self.hidden(self.norm(self.frozen(self.embedding(tokens)))))


torch.manual_seed(0)
model = Tied()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for step in range(3):
    tokens = torch.randint(0, 50, (24,))
    loss = nn.functional.cross_entropy(model(tokens), tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.9f}", flush=True)
