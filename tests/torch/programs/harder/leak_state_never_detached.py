# truth: leak line 10, a graph through all steps: each step keeps about 36,000 B
# the hidden state goes into the next step with its graph (retain_graph makes the error go away)
import torch
import torch.nn as nn

cell, head = nn.GRUCell(16, 32), nn.Linear(32, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.01)
h = torch.zeros(64, 32)
for step in range(50):
    h = cell(torch.randn(64, 16), h)  # <-- leak
    loss = head(h).square().mean()  # <-- also
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
