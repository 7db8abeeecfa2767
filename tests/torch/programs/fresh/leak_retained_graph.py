# truth: leak line 11, 147,460 B/step
# backward(retain_graph=True), which was copied from a forum, and the losses are kept: so are all graphs
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(64, 64), nn.Sigmoid(), nn.Linear(64, 64), nn.Sigmoid(), nn.Linear(64, 16))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(40):
    x = torch.randn(192, 64)
    loss = model(x).mean()  # <-- leak
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    losses.append(loss)
print(sum(l.item() for l in losses))
# x 192*64*4 = 49,152 and two sigmoids of as much: 147,456; the loss 4
