# truth: clean
# layers are unfrozen one by one, every third step; Adam's state of each is made then
import torch
import torch.nn as nn

layers = [nn.Linear(256, 256) for _ in range(14)]
model = nn.Sequential(*layers)
for p in model.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(45):
    if step % 3 == 0 and step // 3 < len(layers):
        for p in layers[-1 - step // 3].parameters():
            p.requires_grad_(True)
    loss = model(torch.randn(32, 256)).square().mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
