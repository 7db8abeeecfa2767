"""Training without an optimizer of torch's; a trace of the model before."""
import io

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
traced = torch.jit.trace(model, torch.ones(2, 4))
print(traced.code, traced(torch.ones(1, 4)).sum().item())
file = io.BytesIO()
torch.jit.save(traced, file)
print(len(file.getvalue()), str(traced.inlined_graph).count("aten"))
for step in range(6):
    model(torch.randn(2, 4)).pow(2).mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
