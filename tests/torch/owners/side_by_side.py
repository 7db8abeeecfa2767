"""Two threads, each trains a model of its own."""
import threading

import torch
from torch import nn

torch.set_num_threads(1)


def train():
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1500):
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(2, 8)).pow(2).mean().backward()
        optimizer.step()


threads = [threading.Thread(target=train) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
