# truth: leak line 16, 30,720 B/step
# beam search of different lengths: the states of finished requests stay in a registry "for follow-up questions"
import random
import torch
import torch.nn as nn

random.seed(11)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(48, 96), nn.Linear(96, 48)

    def forward(self, x, h):
        h = self.cell(x, h)  # <-- leak
        return self.out(h), h


decoder, registry = Decoder().eval(), {}


@torch.no_grad()
def search(request, beams=80):
    x, h, states = torch.randn(beams, 48), torch.zeros(beams, 96), []
    for _ in range(random.randint(3, 9)):
        x, h = decoder(x, h)
        states.append(h)
    registry[request] = states


for request in range(40):
    search(request)
# 80*96*4 = 30,720 for each call of the model
