# truth: clean
# generate(output_scores=True): the scores of all 90 tokens are returned as one tensor
import torch
import torch.nn as nn


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(400, 64), nn.GRU(64, 64, batch_first=True), nn.Linear(64, 400)

    def forward(self, ids, h=None):
        y, h = self.rnn(self.emb(ids), h)
        return self.head(y[:, -1]), h


@torch.no_grad()
def generate(model, ids, n):
    h, scores = None, []
    for _ in range(n):
        logits, h = model(ids, h)
        scores.append(logits)
        ids = logits.argmax(-1, keepdim=True)
    return torch.stack(scores, 1)


print(generate(LM().eval(), torch.randint(0, 400, (16, 5)), 90).shape)
