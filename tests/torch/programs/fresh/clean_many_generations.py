# truth: clean
# texts of different lengths are generated one after the other; each has its cache of keys and values, which goes with it
import random
import torch
import torch.nn as nn

random.seed(8)


class Decoder(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.emb, self.qkv, self.head = nn.Embedding(300, d), nn.Linear(d, 3 * d), nn.Linear(d, 300)

    def forward(self, ids, past):
        q, k, v = self.qkv(self.emb(ids)).chunk(3, -1)
        if past:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        return self.head((q @ k.transpose(1, 2)).softmax(-1) @ v), (k, v)


@torch.inference_mode()
def generate(model, n):
    ids, past = torch.randint(0, 300, (32, 6)), None
    for _ in range(n):
        logits, past = model(ids, past)
        ids = logits[:, -1:].argmax(-1)
    return ids


model = Decoder().eval()
for request in range(12):
    generate(model, random.randint(5, 30))
