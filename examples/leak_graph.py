"""A classic leak: losses are kept with their graph, on line 21. leak_graph.py [--device cuda|cpu] [--steps N]"""
import argparse

import torch
import torch.nn as nn

ap = argparse.ArgumentParser()
ap.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
ap.add_argument("--steps", type=int, default=60)
a = ap.parse_args()

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(6)]).to(a.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = []
for step in range(a.steps):
    loss = (model(torch.randn(64, 256, device=a.device)) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    history.append(model(torch.randn(64, 256, device=a.device)).sum())
