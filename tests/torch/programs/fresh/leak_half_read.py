# truth: leak line 13, 163,840 B/step
# a generator for each request is left half read, and kept, with its local tensors
import torch
import torch.nn as nn

model = nn.Linear(80, 80).eval()
streams = []


def stream(prompt):
    state = prompt
    for _ in range(4):
        state = torch.tanh(model(state))  # <-- leak
        yield state[:, 0]


with torch.no_grad():
    for request in range(60):
        s = stream(torch.randn(256, 80))  # <-- second
        next(s)
        streams.append(s)
# state 256*80*4 = 81,920; and the prompt, of another line, as much
