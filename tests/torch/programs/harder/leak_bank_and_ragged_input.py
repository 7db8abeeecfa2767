# truth: leak line 18, 65,536 B/step
# a memory bank is extended with torch.cat, while inputs have random lengths
import random
import torch
import torch.nn as nn

random.seed(17)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(20, 256)
        self.register_buffer("bank", torch.zeros(0, 256))

    def forward(self, x):
        z = self.f(x).tanh()
        self.bank = torch.cat([self.bank, z[:64].detach()], 0)  # <-- leak
        return z


net = Net()
opt = torch.optim.Adam(net.parameters())
for step in range(60):
    z = net(torch.randn(random.randint(64, 700), 20))
    loss = (z - net.bank.mean(0)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# 64*256*4 = 65,536
