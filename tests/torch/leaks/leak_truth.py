# SPDX-License-Identifier: MIT
"""What the programs of this folder share, and what they say is true of themselves.

The line that owns a leak has the comment `# owner`. How much it keeps is counted by the program
itself, from what it holds or from what autograd saved, with nothing of tidemark's."""
import contextlib
import json
import os
import sys

import torch


def small_network(width=64):
    return torch.nn.Sequential(torch.nn.Linear(64 if width < 512 else width, width), torch.nn.ReLU(),
                               torch.nn.Linear(width, 8))


def small_model(width=64):
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 8))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train(model, optimizer, batch=16, width=64):
    (model(torch.ones(batch, width)) ** 2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def storages(tensors):
    return {t.storage().data_ptr(): t.storage().nbytes() for t in tensors}


def kept_bytes(tensors):
    """Of their storages, each once."""
    return sum(storages(tensors).values())


class Saved:
    """Storages that autograd saved between start and stop, each once. The graph alone holds them."""

    def __init__(self):
        self.storages, self.is_on = {}, False

    def start(self):
        self.is_on = True

    def stop(self):
        self.is_on = False

    def pack(self, tensor):
        if self.is_on:
            self.storages.update(storages([tensor]))
        return tensor

    def bytes(self, model, more=()):
        """Without the model's own."""
        own = storages(model.parameters())
        return sum(n for address, n in {**self.storages, **storages(more)}.items() if address not in own)


@contextlib.contextmanager
def saved_by_autograd():
    saved = Saved()
    with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda tensor: tensor):
        yield saved


def tell(verdict, bytes_per_step=None, kept_by=None, falls_back=False, not_judged=None):
    """To the test, which set the file's name."""
    truth = {"program": sys.argv[0], "pid": os.getpid(), "verdict": verdict, "bytes_per_step": bytes_per_step,
             "kept_by": kept_by, "falls_back": falls_back, "not_judged": not_judged}
    path = os.environ.get("LEAK_TRUTH")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(truth) + "\n")
    else:
        print(json.dumps(truth))
