# truth: leak line 17, quadratic: step k keeps k * 2,048 B
# the path so far is stacked anew after every step of a simulation, and each copy is kept for a film
import torch
import torch.nn as nn

net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
opt = torch.optim.Adam(net.parameters())
position, path, film = torch.zeros(256, 2), [], []
for step in range(50):
    velocity = net(position)
    loss = (position + velocity - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    position = (position + velocity).detach()
    path.append(position)
    film.append(torch.stack(path))  # <-- leak
# 256*2*4 = 2,048
