# SPDX-License-Identifier: MIT
"""Makes tensors of known sizes in each way to switch autograd off and on, and prints what mode each
was made in: "SIZE MODE"."""
import torch

ELEMENT = 4
serial = 0


class Layer(torch.nn.Linear):
    """Says in which mode its call is, and switches it inside of the call."""
    def forward(self, x):
        note()
        with torch.enable_grad():
            note()
        note()
        return super().forward(x)


class Careless(torch.nn.Linear):
    """Leaves its call in another mode."""
    def forward(self, x):
        torch.set_grad_enabled(False)
        note()
        return super().forward(x)


class Own(torch.autograd.Function):
    """What forward() makes belongs to the graph, though torch has switched grad mode off meanwhile."""
    @staticmethod
    def forward(ctx, x):
        make("on")
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def make(mode):
    global serial
    serial += 1
    size = 100_000 + 64 * serial
    torch.empty(size // ELEMENT)
    print(size, mode)


def note():
    make("inference_mode" if torch.is_inference_mode_enabled() else "on" if torch.is_grad_enabled() else "no_grad")


@torch.no_grad()
def decorated(model, x):
    note()
    model(x)
    note()


def step(model, optimizer):
    loss = model(torch.randn(4, 8)).sum()
    note()
    with torch.no_grad():
        note()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    note()


x = torch.randn(4, 8)
net = torch.nn.Sequential(Layer(8, 8), torch.nn.ReLU(), Layer(8, 8))
optimizer = torch.optim.Adam(net.parameters())
for _ in range(3):
    step(net, optimizer)
decorated(net, x)
note()
with torch.inference_mode():
    note()
    net(x)
    with torch.inference_mode(False):
        note()
    with torch.no_grad():
        note()
    note()
note()
with torch.no_grad():
    note()
    with torch.enable_grad():
        note()
        net(x)  # its forward stays open
    note()
    net.eval()
    net(x)
    note()
    net.train()
note()
careless = torch.nn.Sequential(Careless(8, 8))
careless(x)
note()
torch.set_grad_enabled(True)
note()
Own.apply(torch.randn(4, 8, requires_grad=True))
note()
for _ in range(2):
    step(net, optimizer)
