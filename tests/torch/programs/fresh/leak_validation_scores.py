# truth: leak line 18, 33,453 B/step
# validation after every third update runs without no_grad; the scores of all validations are kept in a dict
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Sequential(nn.Linear(30, 60), nn.Tanh(), nn.Linear(60, 6))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
scores = {}
for step in range(60):
    x, y = torch.randn(32, 30), torch.randint(0, 6, (32,))
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 3 == 2:
        xv, yv = torch.randn(256, 30), torch.randint(0, 6, (256,))
        scores[step] = F.cross_entropy(model(xv), yv)  # <-- leak
print(min(scores, key=lambda s: scores[s].item()))
# x 256*30*4 = 30,720; tanh 256*60*4 = 61,440; log_softmax 256*6*4 = 6,144; y 256*8 = 2,048; loss and weight 8: 100,360 every 3rd step
