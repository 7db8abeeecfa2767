# SPDX-License-Identifier: MIT
"""DP-SGD: a training that no single sample can steer, from per-sample gradients.

    private = PrivateSGD(model, optimizer, max_grad_norm=1.0, noise_multiplier=1.0, batch_size=32)
    for batch in loader:                      # 32 samples, as many at once as fit
        for part in batch.split(4):
            loss_of(model(part)).backward()   # a mean over the samples of the part
            private.accumulate()
        private.step()                        # noise, then optimizer.step()

The gradient of each sample is made in backward from what a layer was given and what comes back to it (for a
Linear: one product of both, a sample at a time), so the model needs no change. accumulate() shortens each
sample's gradient to max_grad_norm, over all parameters together, and adds it to a sum; step() adds Gaussian
noise of noise_multiplier * max_grad_norm, divides by batch_size and steps. What it takes is what DP-SGD takes:
samples at once * trained parameters. Frozen layers cost nothing.

Samples are the first dimension of what a layer gets, and layers treat them one by one (no batch norm). Over
several ranks each has its own samples; sums are added up, the noise is rank 0's. The privacy spent is not
counted: opacus does that (`pip install opacus`).
"""
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

import tidemark

from ._figures import CARD, HOST

GRADIENT = 2  # the trace's number for it


class NotPrivate(ValueError):
    """A layer whose per-sample gradients cannot be had; says which, and what to do."""


def _of_linear(layer: Any, given: torch.Tensor, back: torch.Tensor) -> Dict[str, torch.Tensor]:
    n = given.shape[0]
    given, back = given.reshape(n, -1, given.shape[-1]), back.reshape(n, -1, back.shape[-1])
    found = {}
    if layer.weight.requires_grad:
        found["weight"] = torch.einsum("nto,nti->noi", back, given.to(back.dtype))
    if layer.bias is not None and layer.bias.requires_grad:
        found["bias"] = back.sum(1)
    return found


def _of_embedding(layer: Any, given: torch.Tensor, back: torch.Tensor) -> Dict[str, torch.Tensor]:
    n, rows = given.shape[0], layer.num_embeddings
    place = given.reshape(n, -1) + rows * torch.arange(n, device=given.device)[:, None]
    back = back.reshape(-1, back.shape[-1])
    if layer.padding_idx is not None:
        back = back * (given.reshape(-1, 1) != layer.padding_idx)
    sums = back.new_zeros(n * rows, back.shape[-1])
    return {"weight": sums.index_add_(0, place.reshape(-1), back).view(n, rows, -1)}


def _of_any(layer: Any, given: torch.Tensor, back: torch.Tensor) -> Dict[str, torch.Tensor]:
    """A sample at a time, through the layer once more."""
    named = {name: p for name, p in layer.named_parameters(recurse=False) if p.requires_grad}
    found: Dict[str, List[torch.Tensor]] = {name: [] for name in named}
    with torch.enable_grad():
        for i in range(given.shape[0]):
            gradients = torch.autograd.grad(layer.forward(given[i:i + 1]), list(named.values()), back[i:i + 1],
                                            allow_unused=True)
            for (name, p), gradient in zip(named.items(), gradients):
                found[name].append(torch.zeros_like(p) if gradient is None else gradient)
    return {name: torch.stack(rows) for name, rows in found.items()}


def _rule(layer: Any) -> Callable[..., Dict[str, torch.Tensor]]:
    if type(layer) is torch.nn.Linear:
        return _of_linear
    if type(layer) is torch.nn.Embedding and not (layer.scale_grad_by_freq or layer.sparse):
        return _of_embedding
    return _of_any


class PerSampleGradients:
    """While it is open, backward leaves each sample's gradient of each trained parameter in `found`: tensors
    of samples * shape. They belong to a loss that is a mean over the samples, times their number."""

    def __init__(self, model: Any):
        self.found: Dict[torch.nn.Parameter, torch.Tensor] = {}
        self.n_samples: Optional[int] = None
        self._is_inside = False  # of _of_any
        self._hooks = []
        for name, layer in model.named_modules():
            if any(p.requires_grad for p in layer.parameters(recurse=False)):
                self._check(name, layer)
                self._hooks.append(layer.register_forward_hook(self._hook(name, _rule(layer))))

    @staticmethod
    def _check(name: str, layer: Any) -> None:
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            raise NotPrivate(f"{name or 'the model'} is a {type(layer).__name__}, which mixes the samples of a batch; "
                             "use GroupNorm, or freeze it")

    def _hook(self, name: str, rule: Callable[..., Dict[str, torch.Tensor]]) -> Callable[..., None]:
        def after_forward(layer: Any, args: Tuple[Any, ...], result: Any) -> None:
            if self._is_inside or not torch.is_grad_enabled():
                return
            if not isinstance(result, torch.Tensor) or len(args) != 1 or not isinstance(args[0], torch.Tensor):
                raise NotPrivate(f"{name or 'the model'} ({type(layer).__name__}) has trained parameters of its own "
                                 "and takes or gives more than one tensor; freeze it, or use opacus")
            given = args[0].detach()
            if result.requires_grad:
                result.register_hook(lambda back: self._keep(name, layer, rule, given, back))
        return after_forward

    def _keep(self, name: str, layer: Any, rule: Callable[..., Dict[str, torch.Tensor]], given: torch.Tensor,
              back: torch.Tensor) -> None:
        n = given.shape[0]
        if self.n_samples not in (None, n) or back.shape[0] != n:
            raise NotPrivate(f"{name} ({type(layer).__name__}) got {n} rows where other layers got {self.n_samples} "
                             "samples: its first dimension is not the batch; freeze it")
        self.n_samples = n
        self._is_inside = True
        try:
            with torch.no_grad():
                for own, gradient in rule(layer, given, back.detach() * n).items():
                    p = getattr(layer, own)
                    self.found[p] = _noted(self.found[p] + gradient if p in self.found else gradient)
        finally:
            self._is_inside = False

    def clear(self) -> None:
        self.found.clear()
        self.n_samples = None

    def close(self) -> None:
        """Take the hooks away; may be called again."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self.clear()


class PrivateSGD:
    """Clips, adds up and blurs per-sample gradients; steps the optimizer. See the module's opening.

    >>> private = PrivateSGD(model, optimizer, max_grad_norm=1.0, noise_multiplier=1.0, batch_size=32)
    """

    def __init__(self, model: Any, optimizer: Any, max_grad_norm: float = 1.0, noise_multiplier: float = 1.0,
                 batch_size: int = 1, generator: Optional[torch.Generator] = None):
        if max_grad_norm <= 0 or noise_multiplier < 0 or batch_size < 1:
            raise ValueError("PrivateSGD: max_grad_norm and batch_size are above 0, noise_multiplier is not below")
        self.optimizer = optimizer
        self.max_grad_norm, self.noise_multiplier, self.batch_size = max_grad_norm, noise_multiplier, batch_size
        self.generator = generator
        self.samples = PerSampleGradients(model)
        self._sums: Dict[torch.nn.Parameter, torch.Tensor] = {}

    def _parameters(self) -> List[torch.nn.Parameter]:
        return [p for group in self.optimizer.param_groups for p in group["params"] if p.requires_grad]

    @torch.no_grad()
    def accumulate(self) -> Optional[torch.Tensor]:
        """Clip the gradient of each sample since the last call and add them up; their norms before. What
        backward left in `.grad` is dropped: it is not private."""
        found, norms = self.samples.found, None
        if found:
            norms = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1, dtype=_wide(g.dtype))
                                 for g in found.values()]).norm(dim=0)
            factors = (self.max_grad_norm / norms.clamp(min=1e-12)).clamp(max=1.0)
            for p, gradients in found.items():
                clipped = torch.einsum("n,n...->...", factors.to(gradients.dtype), gradients).to(factors.dtype)
                self._sums[p] = self._sums[p].add_(clipped) if p in self._sums else _noted(clipped)
        self.samples.clear()
        for p in self._parameters():
            p.grad = None
        return norms

    @torch.no_grad()
    def finish(self) -> None:
        """The private gradient of the whole batch into `.grad`, for an optimizer that others step."""
        several = torch.distributed.is_available() and torch.distributed.is_initialized()
        n_ranks = torch.distributed.get_world_size() if several else 1
        is_first = not several or torch.distributed.get_rank() == 0
        for p in self._parameters():
            total = self._sums.pop(p, None)
            if total is None:  # noise all the same: that it had no part in this step is told by nobody
                total = torch.zeros_like(p, dtype=_wide(p.dtype))
            if self.noise_multiplier and is_first:
                total.add_(torch.randn(total.shape, dtype=total.dtype, device=total.device, generator=self.generator),
                           alpha=self.noise_multiplier * self.max_grad_norm)
            if several:
                torch.distributed.all_reduce(total)
            p.grad = _noted(total.div_(self.batch_size * n_ranks).to(p.dtype))

    def step(self) -> None:
        """finish(), then the optimizer's step; gradients are gone afterwards."""
        self.finish()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def close(self) -> None:
        self.samples.close()
        self._sums.clear()


def _noted(tensor: torch.Tensor) -> torch.Tensor:
    """In the recorded run it is a gradient, which torch does not know."""
    if tidemark._lib is not None and tensor.device.type in ("cpu", "cuda"):
        device = CARD + tensor.device.index if tensor.device.type == "cuda" else HOST
        tidemark._lib.tidemark_record_tag(device, tensor.data_ptr(), GRADIENT, None)
    return tensor


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The type in which sums of such numbers are kept."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
