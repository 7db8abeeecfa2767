"""An encoder whose layers are recomputed in backward: checkpointed.py reentrant|plain."""
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(16, 32)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True) for _ in range(3))
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=sys.argv[1] == "reentrant")
        return self.head(x)


torch.manual_seed(0)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters())
criterion = nn.CrossEntropyLoss()
for step in range(3):
    x, target = torch.randn(4, 8, 16), torch.randint(0, 5, (32,))
    loss = criterion(model(x).flatten(0, 1), target)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.9f}", flush=True)
