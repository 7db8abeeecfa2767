# truth: leak line 23, 41,986 B/step in the mean (83,972 B in 45 of 90 steps)
# early stopping appends a copy of the weights for each best loss instead of replacing the last one
import copy
import torch
import torch.nn as nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 1))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
x = torch.randn(128, 80)
y = x[:, :1] * 2 + x[:, 1:2]
best, states = float("inf"), []
for step in range(90):
    rows = torch.randint(0, 128, (64,))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        value = nn.functional.mse_loss(model(x), y).item() + 0.02 * torch.randn(1).item()
    if value < best:
        best = value
        states.append(copy.deepcopy(model.state_dict()))  # <-- leak
print("kept", len(states), "of", 90)
# (80*256 + 256 + 256 + 1) * 4 = 83,972
