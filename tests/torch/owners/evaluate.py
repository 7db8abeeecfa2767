"""Two training steps, then evaluation of three batches, and again."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 40), nn.Dropout(0.5), nn.ReLU(), nn.Linear(40, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for _ in range(2):
        loss = model(torch.randn(9, 10)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    model.eval()
    outputs = []
    with torch.no_grad():
        for _ in range(3):
            outputs.append(model(torch.randn(11, 10)))
    result = torch.cat(outputs).sum().item()
    del outputs
    print(f"epoch {epoch} loss {loss.item():.9f} result {result:.9f}", flush=True)
with torch.no_grad():  # and the model as for training
    model.train()
    print(f"{model(torch.ones(13, 10)).shape}", flush=True)
