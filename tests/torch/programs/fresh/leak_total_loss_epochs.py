# truth: leak line 29, 32,768 B/step
# the sum of an auxiliary loss over all epochs is kept for the log, with its graph: it is not part of the backward
import torch
import torch.nn as nn


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(64, 32), nn.Linear(32, 64)

    def forward(self, x):
        code = torch.sigmoid(self.down(x))
        return self.up(code), code


def main():
    model = AutoEncoder()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sparsity = 0.0
    for epoch in range(4):
        for batch in range(12):
            x = torch.randn(256, 64)
            out, code = model(x)
            loss = nn.functional.mse_loss(out, x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sparsity = sparsity + (code - 0.05).abs().mean()  # <-- leak
        print(epoch, float(sparsity))


main()
# abs saves code - 0.05: 256*32*4 = 32,768
