"""Three threads make models, let go of them and run backward, which then has the last of their parameters."""
import threading

import torch
from torch import nn


def work():
    for _ in range(300):
        made = nn.Linear(4, 4)
        loss = made(torch.ones(1, 4)).sum()
        del made
        loss.backward()


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
