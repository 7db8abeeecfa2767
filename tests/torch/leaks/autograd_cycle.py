# SPDX-License-Identifier: MIT
"""Leak: a function of autograd's own that holds its result on ctx: no collector finds that cycle."""
import leak_truth as truth
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x * x  # owner
        ctx.result = result
        return result

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * torch.sqrt(ctx.result)


model, optimizer = truth.small_model()
weight = torch.ones(96, 1024, requires_grad=True)
for _ in range(30):
    Square.apply(weight).sum().backward()
    weight.grad = None
    truth.train(model, optimizer)
truth.tell("leak", weight.numel() * 4, "container")
