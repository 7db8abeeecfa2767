# truth: leak line 18, 49,152 B/step
# from step 40 on a debug switch is on, and outputs are kept
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 48))
opt = torch.optim.RMSprop(model.parameters())
kept, debug = [], False
for step in range(80):
    debug = debug or step == 40
    x = torch.randn(256, 16)
    out = model(x)
    loss = out.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if debug:
        kept.append((step, out.detach().clone()))  # <-- leak
# 256*48*4 = 49,152
