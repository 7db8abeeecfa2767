"""A signal's handler raises while the recorder looks around among many objects."""
import signal
import time

import torch
from torch import nn

things = [{"i": i, "list": [i]} for i in range(400_000)]


def raise_it(*_):
    raise KeyboardInterrupt


signal.signal(signal.SIGALRM, raise_it)
torch.randn(3)
time.sleep(0.05)
model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(50)])
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
caught = 0
for _ in range(40):
    try:
        model(torch.randn(2, 4))
        time.sleep(0.01)
    except KeyboardInterrupt:
        caught += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print("interrupted", caught > 5)
