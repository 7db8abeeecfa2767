# truth: leak line 17, 131,072 B/step
# embedding service: results are cached by text, and nearly all texts are new (one in eight is asked again)
import random
import torch
import torch.nn as nn

random.seed(5)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.mix = nn.Linear(64, 256)

    def forward(self, ids):
        return torch.tanh(self.mix(self.embed(ids)))  # <-- leak


class Service:
    def __init__(self):
        self.encoder, self.cache = Encoder().eval(), {}

    @torch.inference_mode()
    def encode(self, text):
        if text not in self.cache:
            ids = torch.randint(0, 1000, (128,))
            self.cache[text] = self.encoder(ids)
        return self.cache[text].mean(0)


service, asked = Service(), []
for request in range(72):
    text = random.choice(asked) if asked and request % 8 == 7 else f"text {request}"
    asked.append(text)
    service.encode(text)
# each new text keeps 128*256*4 = 131,072; a step is a model call, so each step makes one
