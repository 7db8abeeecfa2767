# truth: clean
# sequences get longer with every step of a training, as a curriculum has it
import torch
import torch.nn as nn

rnn, head = nn.GRU(24, 48, batch_first=True), nn.Linear(48, 24)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
for step in range(40):
    x = torch.randn(16, 8 + 4 * step, 24)
    loss = (head(rnn(x)[0]) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
