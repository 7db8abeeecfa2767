# truth: clean
# REINFORCE: log-probabilities of an episode are kept until its update; episodes get longer as the policy gets better
import random
import torch
import torch.nn as nn

random.seed(19)
policy = nn.Sequential(nn.Linear(8, 128), nn.Tanh(), nn.Linear(128, 4))
opt = torch.optim.Adam(policy.parameters())
for episode in range(40):
    logs, rewards = [], []
    for t in range(5 + episode + random.randint(0, 5)):
        d = torch.distributions.Categorical(logits=policy(torch.randn(64, 8)))
        a = d.sample()
        logs.append(d.log_prob(a))
        rewards.append(torch.rand(64))
    loss = -(torch.stack(logs) * torch.stack(rewards).flip(0).cumsum(0).flip(0)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
