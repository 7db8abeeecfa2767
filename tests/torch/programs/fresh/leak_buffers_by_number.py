# truth: leak line 13, 36,864 B/step
# a positional mask is registered as a buffer under a new name in each forward
import torch
import torch.nn as nn


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.proj = 0, nn.Linear(96, 96)

    def forward(self, x):
        self.register_buffer(f"mask_{self.calls}", torch.ones(96, 96).tril())  # <-- leak
        self.calls += 1
        return self.proj(x) @ getattr(self, f"mask_{self.calls - 1}")


model = Masked()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(52):
    loss = model(torch.randn(16, 96)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# 96*96*4 = 36,864
