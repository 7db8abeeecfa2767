# truth: clean
# two answers of different length; keys and values lie in a cache object that is made anew for each
import torch
import torch.nn as nn


class Cache:
    def __init__(self):
        self.k = self.v = None

    def update(self, k, v):
        self.k = k if self.k is None else torch.cat([self.k, k], 1)
        self.v = v if self.v is None else torch.cat([self.v, v], 1)
        return self.k, self.v


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.qkv, self.head = nn.Embedding(300, 96), nn.Linear(96, 288), nn.Linear(96, 300)

    def forward(self, ids, cache):
        q, k, v = self.qkv(self.emb(ids)).chunk(3, -1)
        k, v = cache.update(k, v)
        return self.head((q @ k.transpose(1, 2)).softmax(-1) @ v)


@torch.inference_mode()
def answer(model, n):
    ids, cache = torch.randint(0, 300, (8, 10)), Cache()
    for _ in range(n):
        ids = model(ids, cache)[:, -1:].argmax(-1)
    return ids


model = Decoder().eval()
answer(model, 40)
answer(model, 70)
