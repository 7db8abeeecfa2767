# truth: leak line 11, exponential: the archive starts at 16 and has an eighth more in each generation
# novelty search: children of an eighth of the archive are evaluated and all added to it
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 8)).eval()
archive = [torch.randn(1024) for _ in range(16)]
with torch.no_grad():
    for generation in range(40):
        parents = archive[:: 8]
        children = [p + torch.randn(1024) * 0.1 for p in parents]  # <-- leak
        model(torch.stack([c[:32] for c in children[:2]]))
        archive += children
print(len(archive))
