# SPDX-License-Identifier: MIT
"""Leak: losses are summed with their graphs, by a model and a loop that are the user's own."""
import leak_truth as truth
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 512)
        self.second = torch.nn.Linear(512, 64)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.second(hidden)


def loss_of(network, batch):
    output = network(batch)
    return (output ** 2).mean()


def main():
    network = Model()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    total = 0
    with truth.saved_by_autograd() as saved:
        for _ in range(30):
            loss_of(network, torch.ones(64, 64)).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            saved.start()
            total = total + loss_of(network, torch.ones(64, 64))  # owner
            saved.stop()
    truth.tell("leak", saved.bytes(network) / 30, "graph")


main()
