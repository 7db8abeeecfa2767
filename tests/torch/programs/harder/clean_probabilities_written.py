# truth: clean
# probabilities of a test set are gathered over all batches and then counted, as every evaluation script does
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Sequential(nn.Linear(40, 160), nn.ReLU(), nn.Linear(160, 120)).eval()
probabilities, targets = [], []
with torch.no_grad():
    for i in range(70):
        x, y = torch.randn(256, 40), torch.randint(0, 120, (256,))
        probabilities.append(F.softmax(model(x), dim=1))
        targets.append(y)
p, t = torch.cat(probabilities), torch.cat(targets)
print((p.argmax(1) == t).float().mean())
