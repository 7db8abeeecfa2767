"""Models by the variables that hold them. Each case runs in a process of its own; "CASE PID" is printed for it."""
import copy
import os

import torch
from torch import nn
from torch.nn.utils import parametrizations


def update(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def adversaries():
    """Two that are trained, in a function's variables."""
    G, D = nn.Sequential(nn.Linear(4, 8)), nn.Sequential(nn.Linear(8, 1))
    of_G, of_D = (torch.optim.SGD(model.parameters(), 0.1) for model in (G, D))
    for _ in range(2):
        update(D, of_D, G(torch.randn(2, 4)).detach())
        of_G.zero_grad()
        D(G(torch.randn(2, 4))).mean().backward()
        of_G.step()


class Trainer:
    def __init__(self):
        self.student, self.teacher = nn.Linear(4, 2), nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.student.parameters(), 0.1)

    def train(self):
        x = torch.randn(3, 4)
        with torch.no_grad():
            y = self.teacher(x)
        (self.student(x) - y).square().mean().backward()
        self.optimizer.step()


def distilled():
    """One of two is trained: it has the plain names, though the other one is called first."""
    Trainer().train()


def many():
    """In a list and in a dict; the loop's variable holds one after the other."""
    models, heads = [nn.Linear(4, 4) for _ in range(2)], {"cls": nn.Linear(4, 2), "box": nn.Linear(4, 4)}
    with torch.no_grad():
        for model in (*models, *heads.values()):
            model(torch.randn(2, 4))


def same():
    """Two hold their model in an attribute of the same name."""
    trainers = Trainer(), Trainer()
    for trainer in trainers:
        trainer.teacher = None
    both = [trainer.student for trainer in trainers]
    trainers[0].student(torch.randn(2, 4))
    return both


def averaged():
    """A copy that nobody calls, beside the only model that is trained."""
    model = nn.Linear(4, 4)
    ema = copy.deepcopy(model)
    update(model, torch.optim.SGD(model.parameters(), 0.1), torch.randn(2, 4))
    return ema


def child_of_that_name():
    """A second model has the name of a part of the first."""
    model = nn.ModuleDict({"head": nn.Linear(4, 4)})
    model["head"](torch.randn(2, 4))
    head = nn.Linear(4, 2)
    head(torch.randn(2, 4))


def shared():
    """Variables that an inner function has too, one of them an argument."""
    def of(actor):
        critic = nn.Linear(4, 1)

        def act():
            return critic(actor(torch.randn(2, 4)))
        act()
    of(nn.Linear(4, 4))


class Proxy:
    """Says that it is of any class, and raises when it is asked for more."""

    @property
    def __class__(self):
        raise RuntimeError("working outside of a context")

    @property
    def __dict__(self):
        raise RuntimeError("working outside of a context")


def beside_a_proxy():
    proxy, first, second = Proxy(), nn.Linear(4, 4), nn.Linear(4, 4)
    first(torch.randn(2, 4))
    return proxy, second


class Made(nn.Module):
    """Its parts are called while it is being made."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 2, 3), nn.Flatten())
        self.head = parametrizations.spectral_norm(nn.Linear(self.body(torch.zeros(1, 1, 5)).shape[1], 2))

    def forward(self, x):
        return self.head(self.body(x))


def made():
    net = Made()
    update(net, torch.optim.SGD(net.parameters(), 0.1), torch.randn(2, 1, 5))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(8, 4), nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.embed(x))


def tied():
    net = Tied()
    update(net, torch.optim.SGD(net.parameters(), 0.1), torch.tensor([1, 2]))


def not_kept():
    """What a function's variables hold goes when it did before."""
    class Note:
        def __del__(self):
            print("gone", flush=True)

    note, model, other = Note(), nn.Linear(4, 4), nn.Linear(4, 4)
    model(torch.randn(2, 4))
    del note
    print("after", flush=True)
    return other


for case in (adversaries, distilled, many, same, averaged, child_of_that_name, shared,
             beside_a_proxy, made, tied, not_kept):
    pid = os.fork()
    if pid == 0:
        case()
        os._exit(0)
    os.waitpid(pid, 0)
    print(case.__name__, pid)
