# truth: leak line 11, 32,768 B/step
# every fourth request of an inference server times out and is put on a retry list, which nobody works off
import torch
import torch.nn as nn

model = nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv1d(8, 2, 3, padding=1)).eval()
retry = []


def receive(n):
    return torch.randn(16, 4, 512)  # <-- leak


@torch.no_grad()
def handle(n):
    batch = receive(n)
    answer = model(batch)
    if n % 4 == 3:
        retry.append((n, batch))
        return None
    return answer.argmax(1)


for n in range(88):
    handle(n)
# 16*4*512*4 = 131,072 every 4th request
