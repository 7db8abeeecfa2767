"""A signal's handler raises while models are called for the first time, and the recorder looks around among
many objects."""
import signal

import torch
from torch import nn

things = [{"i": i, "list": [i]} for i in range(400_000)]
armed = False
caught = 0


def raise_it(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt


signal.signal(signal.SIGALRM, raise_it)
torch.randn(3)
for attempt in range(40):
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(20)])
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, 0.001 + attempt % 8 * 0.0005)
        while True:
            model(torch.randn(2, 4))
    except KeyboardInterrupt:
        caught += 1
print("interrupted", caught)
