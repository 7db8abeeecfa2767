# truth: clean
# gradients of four batches of random lengths are accumulated for each update
import random
import torch
import torch.nn as nn

random.seed(6)
emb, rnn, out = nn.Embedding(200, 32), nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 200)
opt = torch.optim.AdamW([*emb.parameters(), *rnn.parameters(), *out.parameters()])
for step in range(30):
    for _ in range(4):
        ids = torch.randint(0, 200, (8, random.randint(8, 120)))
        logits = out(rnn(emb(ids))[0])
        nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
