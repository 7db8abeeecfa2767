# truth: leak line 14, 65,536 B/step
# a thread reads two batches for every one that is trained on, into a queue without a bound
import queue
import threading
import torch
import torch.nn as nn

batches, go = queue.Queue(), threading.Semaphore(0)


def read():
    while go.acquire() and is_training:
        for _ in range(2):
            batches.put(torch.rand(128, 128))  # <-- leak


is_training, reader = True, threading.Thread(target=read)
reader.start()
model = nn.Linear(128, 8)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(50):
    go.release()
    x = batches.get()
    loss = model(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
is_training = False
go.release()
reader.join()
# 128*128*4 = 65,536
