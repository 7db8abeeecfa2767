# truth: clean
# reinforcement learning with a replay memory of the last 25 transitions (of many environments at once)
import collections
import random
import torch
import torch.nn as nn

random.seed(4)
policy = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4))
opt = torch.optim.Adam(policy.parameters())
memory = collections.deque(maxlen=25)
state = torch.randn(1024, 16)
for step in range(90):
    with torch.no_grad():
        action = policy(state).argmax(1)
    following = torch.tanh(state + 0.1 * torch.randn_like(state))
    memory.append((state, action, following))
    state = following
    s, a, f = random.choice(memory)
    loss = (policy(s).gather(1, a[:, None])[:, 0] - policy(f).max(1)[0].detach() * 0.9).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
