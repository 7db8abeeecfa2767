# truth: leak line 13, 24,576 B/step
# a server keeps the keys and values of every fourth request, "to go on with the conversation"
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv, self.out = nn.Linear(48, 96), nn.Linear(48, 48)

    def forward(self, x):
        kv = self.kv(x)  # <-- leak
        k, v = kv.chunk(2, -1)
        return self.out((x @ k.transpose(1, 2)).softmax(-1) @ v), kv


model, kept = Model().eval(), {}
with torch.inference_mode():
    for request in range(120):
        answer, kv = model(torch.randn(8, 32, 48))
        if request % 4 == 0:
            kept[request] = kv
# 8*32*96*4 = 98,304 every 4th request
