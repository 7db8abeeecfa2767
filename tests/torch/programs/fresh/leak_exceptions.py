# truth: leak line 12, 28,444 B/step
# batches that fail are logged as exceptions; their traceback holds the frame, and the frame holds the batch
import torch
import torch.nn as nn

model = nn.Linear(50, 5)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
errors = []


def train_on(step):
    x = torch.randn(1280, 50)  # <-- leak
    if step % 10 == 4:
        raise ValueError(f"bad labels in batch {step}")
    loss = model(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()


for step in range(120):
    try:
        train_on(step)
    except ValueError as error:
        errors.append(error)
# 1280*50*4 = 256,000 in one of ten batches, that is nine updates: 28,444 an update
