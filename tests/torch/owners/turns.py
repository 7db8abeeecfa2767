"""Loops whose updates do not come one an iteration. Each case runs in a process of its own; "CASE PID" is
printed for it."""
import os

import torch
from torch import nn
from torch.optim import SGD, RMSprop


def critics():
    """Eight iterations: five updates of the critic, then one of the generator."""
    made, judge = nn.Linear(8, 32), nn.Linear(32, 1)
    of_made, of_judge = RMSprop(made.parameters()), RMSprop(judge.parameters())
    for _ in range(8):
        for _ in range(5):
            loss = judge(made(torch.randn(16, 8)).detach()).mean() - judge(torch.randn(16, 32)).mean()
            of_judge.zero_grad()
            loss.backward()
            of_judge.step()
        of_made.zero_grad()
        (-judge(made(torch.randn(16, 8)))).mean().backward()
        of_made.step()


def unused():
    """Forty iterations; the optimizer of a model that is only asked never steps."""
    asked, model = nn.Linear(8, 8), nn.Linear(8, 4)
    held, of_model = SGD(asked.parameters(), 0.1), RMSprop(model.parameters())
    for _ in range(40):
        of_model.zero_grad()
        model(asked(torch.randn(4, 8)).detach()).mean().backward()
        of_model.step()
    return held


def population():
    """Seven generations of five models, each with an optimizer of its own."""
    models = [nn.Linear(16, 16) for _ in range(5)]
    optimizers = [SGD(model.parameters(), lr=0.1, momentum=0.9) for model in models]
    for _ in range(7):
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            model(torch.randn(4, 16)).square().mean().backward()
            optimizer.step()


def towers():
    """Nine requests, each answered by three models and a module that is made on the spot."""
    image, text, head = nn.Linear(48, 32).eval(), nn.Linear(24, 32).eval(), nn.Linear(64, 3).eval()
    with torch.inference_mode():
        for _ in range(9):
            both = torch.cat([image(torch.randn(4, 48)), text(torch.randn(4, 24))], 1)
            nn.Softmax(-1)(head(both))


def tokens():
    """Four requests of one call of an encoder and six of a decoder: each token is a step."""
    encoder, decoder = nn.Linear(16, 32).eval(), nn.Linear(32, 32).eval()
    with torch.no_grad():
        for _ in range(4):
            x = encoder(torch.randn(2, 16))
            for _ in range(6):
                x = decoder(x)


def evaluated():
    """Ten steps, an evaluation after each fifth, results that are kept at the end."""
    model = nn.Linear(8, 4)
    optimizer = SGD(model.parameters(), 0.1)
    for i in range(10):
        update(model, optimizer)
        if i % 5 == 4:
            with torch.no_grad():
                kept = [model(torch.randn(4, 8)) for _ in range(3)]
    return torch.cat(kept)


def update(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()


def skipped():
    """Every fourth of 12 iterations has no update: the last one belongs to the step before."""
    model = nn.Linear(8, 4)
    optimizer = SGD(model.parameters(), 0.1)
    for i in range(12):
        loss = model(torch.randn(4, 8)).square().mean()
        if i % 4 < 3:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def served():
    """Five steps, then so many blocks that they fill several chunks of the trace."""
    model = nn.Linear(8, 4)
    optimizer = SGD(model.parameters(), 0.1)
    for _ in range(5):
        update(model, optimizer)
    for i in range(20000):
        torch.empty(8 + i % 50)


class Failing(nn.Linear):
    def forward(self, x):
        if len(x) == 5:
            raise ValueError("five")
        return super().forward(x)


def failed():
    """The sixth iteration raises in the model: it is a step."""
    model = Failing(8, 4)
    optimizer = SGD(model.parameters(), 0.1)
    try:
        for i in range(10):
            optimizer.zero_grad()
            model(torch.randn(i, 8)).square().sum().backward()
            optimizer.step()
    except ValueError:
        return torch.zeros(3)


def seldom():
    """Twelve iterations; the second optimizer steps in every fourth, and a norm is taken before."""
    model, slow = nn.Linear(8, 8), nn.Linear(8, 4)
    of_model, of_slow = RMSprop(model.parameters()), SGD(slow.parameters(), 0.1)
    for i in range(12):
        loss = slow(model(torch.randn(4, 8))).square().mean()
        of_model.zero_grad()
        loss.backward()
        of_model.step()
        if i % 4 == 3:
            nn.utils.clip_grad_norm_(slow.parameters(), 1.0)
            of_slow.step()
            of_slow.zero_grad()


for case in (critics, unused, population, towers, tokens, evaluated, skipped, failed, seldom, served):
    pid = os.fork()
    if pid == 0:
        case()
        os._exit(0)
    os.waitpid(pid, 0)
    print(case.__name__, pid)
