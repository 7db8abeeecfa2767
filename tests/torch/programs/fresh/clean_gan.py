# truth: clean
# a small GAN with two optimizers; a strip of samples is made every fifth step and replaces the one before
import torch
import torch.nn as nn

G = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32))
D = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
strip = None
for step in range(50):
    real, noise = torch.randn(128, 32) + 2, torch.randn(128, 16)
    fake = G(noise)
    loss_d = bce(D(real), torch.ones(128, 1)) + bce(D(fake.detach()), torch.zeros(128, 1))
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = bce(D(fake), torch.ones(128, 1))
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if step % 5 == 0:
        with torch.no_grad():
            strip = G(torch.randn(4096, 16))
