"""Two models and two optimizers, each of which steps once an iteration."""
import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 12))

    def forward(self, noise):
        return self.layers(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 20), nn.LeakyReLU(), nn.Linear(20, 1))

    def forward(self, sample):
        return self.layers(sample)


torch.manual_seed(0)
generator, discriminator = Generator(), Discriminator()
of_generator = torch.optim.Adam(generator.parameters())
of_discriminator = torch.optim.SGD(discriminator.parameters(), lr=0.1)
criterion = nn.BCEWithLogitsLoss()
for iteration in range(4):
    real, noise = torch.randn(16, 12), torch.randn(16, 8)
    of_discriminator.zero_grad(set_to_none=True)
    fake = generator(noise)
    loss_d = criterion(discriminator(real), torch.ones(16, 1)) \
        + criterion(discriminator(fake.detach()), torch.zeros(16, 1))
    loss_d.backward()
    of_discriminator.step()
    of_generator.zero_grad(set_to_none=True)
    loss_g = criterion(discriminator(fake), torch.ones(16, 1))
    loss_g.backward()
    of_generator.step()
    print(f"iteration {iteration} losses {loss_d.item():.9f} {loss_g.item():.9f}", flush=True)
