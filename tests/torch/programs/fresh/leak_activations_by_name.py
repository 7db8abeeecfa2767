# truth: leak line 14, 98,304 B/step
# forward hooks write into a dict by layer and step instead of by layer
import torch
import torch.nn as nn

net = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 32))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
activations = {}
step = 0


def remember(name):
    def hook(module, inputs, output):
        activations[f"{name}.{step}"] = output.detach().half()  # <-- leak
    return hook


for name, module in net.named_children():
    if isinstance(module, nn.Linear):
        module.register_forward_hook(remember(name))
for step in range(45):
    loss = net(torch.randn(512, 48)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# 512*(64 + 32)*2 = 98,304
