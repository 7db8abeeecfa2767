"""Two threads, each trains a model of its own, for two seconds: the recorder is ready after a third of one."""
import threading
import time

import torch
from torch import nn

torch.set_num_threads(1)


def train():
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(2, 8)).pow(2).mean().backward()
        optimizer.step()


threads = [threading.Thread(target=train) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
