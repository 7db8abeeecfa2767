"""Gradients of every kind: gradients.py [LIBRARY [STEP]], a stand-in for torch's newer functions (aoti.c),
which is to deny them from that step on.

After each backward it prints the names and bytes of those that there are, no two of the same size; at the
end how often the library was asked."""
import ctypes
import json
import sys

library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL) if len(sys.argv) > 1 else None

import torch  # noqa: E402  behind the library
from torch import nn  # noqa: E402

DENIED = int(sys.argv[2]) if len(sys.argv) > 2 else None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 24, sparse=True)
        self.first = nn.Linear(24, 40)
        self.frozen = nn.Linear(40, 28)
        self.late = nn.Linear(28, 36)
        self.head = nn.Linear(28, 12)
        self.frozen.requires_grad_(False)

    def forward(self, x, is_late):
        x = self.frozen(self.first(self.words(x)).relu())
        return self.head(x).sum() + (self.late(x).sum() if is_late else 0)


def refuse(gradient):
    raise ZeroDivisionError


torch.manual_seed(0)
model = Model()
dense = [p for name, p in model.named_parameters() if name != "words.weight" and p.requires_grad]
optimizers = [torch.optim.SGD(dense, lr=1e-3), torch.optim.SparseAdam([model.words.weight])]
for step in range(40):
    if step == 20:  # another object under the same name, of another size
        model.head = nn.Linear(28, 14)
    if step == DENIED:
        ctypes.c_int.in_dll(library, "denies").value = 1
    if step == 30:
        model.first.weight = nn.Parameter(model.first.weight.detach().clone())
    loss = model(torch.randint(0, 50, (16,)), step > 9)
    if step == 25:  # in the node of this gradient: those of the layers behind it are there
        refusal = model.first.weight.register_hook(refuse)
        try:
            loss.backward()
        except ZeroDivisionError:
            refusal.remove()
    else:
        loss.backward()
    found = {name: p.grad.numel() * p.grad.element_size() for name, p in model.named_parameters()
             if p.grad is not None and not p.grad.is_sparse}
    print(json.dumps(found), flush=True)
    for optimizer in optimizers:
        optimizer.step()
    model.zero_grad(set_to_none=True)
print(ctypes.c_int.in_dll(library, "n_asked").value if library else 0)
