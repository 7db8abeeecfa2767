# truth: clean
# a benchmark of matrix products over sizes, without any module
import time
import torch

for n in range(64, 900, 12):
    a, b = torch.randn(n, n), torch.randn(n, n)
    start = time.perf_counter()
    c = a @ b
    print(n, time.perf_counter() - start, float(c[0, 0]))
