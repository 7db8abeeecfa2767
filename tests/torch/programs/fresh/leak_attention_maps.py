# truth: leak line 14, 262,144 B/step
# each layer appends its attention weights for a picture; the list is emptied only when the picture is drawn, never here
import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv, self.maps = nn.Linear(d, 3 * d), []

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        w = (q @ k.transpose(1, 2) / 8).softmax(-1)  # <-- leak
        self.maps.append(w.detach())
        return x + w @ v


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Attention(32) for _ in range(2))
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


model = Model()
opt = torch.optim.Adam(model.parameters())
for step in range(36):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 64, 32)), torch.randint(0, 5, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
# 2 * 8*64*64*4 = 262,144
