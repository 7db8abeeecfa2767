# SPDX-License-Identifier: MIT
"""DP-SGD's gradients against a loop over the samples, one backward each."""
from seeds_kit import run_python

SOURCE = """
import copy, torch
from tidemark.private_sgd import NotPrivate, PrivateSGD

torch.manual_seed(3)

class Lora(torch.nn.Module):
    def __init__(self, n, rank):
        super().__init__()
        self.base = torch.nn.Linear(n, n).requires_grad_(False)
        self.lora_A = torch.nn.Linear(n, rank, bias=False)
        self.lora_B = torch.nn.Linear(rank, n, bias=False)
    def forward(self, x):
        return self.base(x) + 2.0 * self.lora_B(self.lora_A(x))

class Scale(torch.nn.Module):  # no rule of its own
    def __init__(self, n):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(n))
        self.unused = torch.nn.Parameter(torch.rand(2))
    def forward(self, x):
        return x * self.scale

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 8, padding_idx=0)
        self.lora, self.norm, self.scale = Lora(8, 3), torch.nn.LayerNorm(8), Scale(8)
        self.frozen = torch.nn.Linear(8, 8).requires_grad_(False)
        self.head = torch.nn.Linear(8, 11)
        self.never = torch.nn.Linear(2, 2)
    def forward(self, tokens):
        x = self.lora(self.embedding(tokens))
        x = self.frozen(self.norm(self.lora(x)))  # the same adapters twice
        return self.head(torch.tanh(self.scale(x)))

def loss_of(model, tokens):
    out = model(tokens)
    return torch.nn.functional.cross_entropy(out.flatten(0, 1), tokens.flatten())

def expected(model, tokens, limit):
    sums, clipped = None, 0
    for row in tokens:
        model.zero_grad(set_to_none=True)
        loss_of(model, row[None]).backward()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in trained(model)]
        norm = torch.stack([g.norm() for g in gradients]).norm()
        clipped += int(norm > limit)
        gradients = [g * min(1.0, limit / float(norm)) for g in gradients]
        sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    assert 0 < clipped < len(tokens), clipped  # the limit tells samples apart
    return [s / len(tokens) for s in sums]

def trained(model):
    return [p for p in model.parameters() if p.requires_grad]

class Kept(torch.optim.SGD):  # what step() was given
    def step(self, closure=None):
        self.given = [p.grad.clone() for group in self.param_groups for p in group["params"]]
        return super().step(closure)

def private(model, tokens, limit, noise, parts, seed=5):
    optimizer = Kept(trained(model), lr=0.1)
    engine = PrivateSGD(model, optimizer, limit, noise, len(tokens), torch.Generator().manual_seed(seed))
    for part in tokens.split(parts):
        loss_of(model, part).backward()
        norms = engine.accumulate()
        assert norms.shape == (len(part),)
    engine.step()
    engine.close()
    assert all(p.grad is None for p in trained(model))
    return optimizer.given

tokens = torch.randint(0, 11, (7, 5))
model = Model().double()
norms = []  # a limit between the samples'
for row in tokens:
    model.zero_grad(set_to_none=True)
    loss_of(model, row[None]).backward()
    norms.append(float(torch.stack([p.grad.norm() for p in trained(model) if p.grad is not None]).norm()))
limit = sorted(norms)[3] + 1e-9
wanted = expected(copy.deepcopy(model), tokens, limit)
for parts in (1, 3, 7):
    found = private(copy.deepcopy(model), tokens, limit, 0.0, parts)
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted):
        assert torch.allclose(f, w, rtol=1e-9, atol=1e-12), (parts, (f - w).abs().max())

# The noise is what the generator gives, once a parameter, divided with the sum.
source = torch.Generator().manual_seed(5)
noisy = private(copy.deepcopy(model), tokens, limit, 1.5, 3)
for n, w in zip(noisy, wanted):
    noise = torch.randn(w.shape, dtype=w.dtype, generator=source) * 1.5 * limit / len(tokens)
    assert torch.allclose(n - w, noise, rtol=1e-9, atol=1e-12)

# Gradients of 16 bits are added up in 32.
low = Model().bfloat16()
found = private(copy.deepcopy(low), tokens, 1e9, 0.0, 3)
wide = private(copy.deepcopy(low).float(), tokens, 1e9, 0.0, 3)
assert all(f.dtype == torch.bfloat16 for f in found)
assert max(float((f.float() - w).norm() / (w.norm() + 1e-6)) for f, w in zip(found, wide)) < 0.05

def refused(model, tokens, text):
    try:
        engine = PrivateSGD(model, torch.optim.SGD(trained(model), 0.1))
        model(tokens).sum().backward()
    except NotPrivate as reason:
        assert text in str(reason), reason
        return
    raise SystemExit("not refused: " + text)

refused(torch.nn.BatchNorm1d(4), torch.ones(2, 4), "BatchNorm1d, which mixes the samples")
two = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Flatten(0, 1), torch.nn.Linear(4, 4))
refused(two, torch.ones(2, 3, 4), "0 (Linear) got 2 rows where other layers got 6")
"""


def test_per_sample_gradients(tmp_path, rings):
    run_python(SOURCE, tmp_path, rings)
