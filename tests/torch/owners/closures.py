"""Optimizers that are called in other ways: with a closure, by LBFGS, beside a schedule, by a class
of ours, and a loop like that of a trainer, which prepares, clips and logs."""
import torch
from torch import nn


class Trainer:
    def __init__(self, model, optimizer, schedule):
        self.model, self.optimizer, self.schedule = model, optimizer, schedule

    def training_step(self, batch):
        self.model.train()
        loss = nn.functional.mse_loss(self.model(batch), batch)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        return loss.detach()

    def fit(self, n_steps):
        for step in range(n_steps):
            loss = self.training_step(torch.randn(5, 14))
            self.optimizer.step()
            self.schedule.step()
            self.model.zero_grad(set_to_none=True)
            print(f"trainer {step} {loss.item():.9f} {self.schedule.get_last_lr()[0]:.6f}", flush=True)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(14, 6), nn.GELU(), nn.Linear(6, 14))
adam = torch.optim.Adam(model.parameters(), lr=0.01)
Trainer(model, adam, torch.optim.lr_scheduler.StepLR(adam, 2, 0.5)).fit(4)
batch = torch.randn(5, 14)


def closure_of(optimizer):
    def closure():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(batch), batch)
        loss.backward()
        return loss
    return closure


for step in range(2):
    print(f"closure {step} {adam.step(closure_of(adam)).item():.9f}", flush=True)
lbfgs = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
for step in range(2):
    print(f"lbfgs {step} {lbfgs.step(closure_of(lbfgs)).item():.9f}", flush=True)
