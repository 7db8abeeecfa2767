# truth: clean
# a controller is trained through 60 steps of a simulation: within each update the graph grows, and goes with it
import torch
import torch.nn as nn


class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 8))

    def forward(self, state):
        return state + 0.1 * self.net(state)


controller = Controller()
opt = torch.optim.Adam(controller.parameters())
for update in range(14):
    state, cost = torch.randn(128, 8), 0
    for t in range(60):
        state = controller(state)
        cost = cost + state.square().mean()
    opt.zero_grad()
    cost.backward()
    opt.step()
