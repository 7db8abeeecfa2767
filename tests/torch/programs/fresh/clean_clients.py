# truth: clean
# federated learning: twelve clients take turns for three rounds; each has a model and momentum of its own, made at first use
import copy
import torch
import torch.nn as nn

server = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
clients = {}
for rnd in range(4):
    for c in range(12):
        if c not in clients:
            model = copy.deepcopy(server)
            clients[c] = (model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
        model, opt = clients[c]
        loss = nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(0, 10, (32,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
