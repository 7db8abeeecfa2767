# SPDX-License-Identifier: MIT
"""Gradients that vanish, explode, or are no numbers.

    from tidemark import check_gradients

    loss.backward()
    for issue in check_gradients(model)["issues"]:
        print(issue["message"])

One norm a gradient, computed where it is; one answer a device comes to the host. Only a gradient whose norm is
not finite is looked through for the first NaN or Inf. So a check reads the gradients once, and needs a few MB for
pieces at most. Of sharded gradients (FSDP2) this rank's part is looked at; no rank waits for another.
"""
import logging
import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _figures, _model
from ._words import words
from .quick_memory_debug import _say_first

VANISHING = 1e-8   # a gradient's norm (the root of the sum of its squares) below that
EXPLODING = 1e3    # and above that


def _narrow_norm(tensor: Any) -> Any:
    """Of a type whose own norm would overflow, in fp32: on a GPU as it is read, else a piece at a time."""
    import torch
    if _model.is_summed_whole(tensor):
        return torch.linalg.vector_norm(tensor, dtype=torch.float32)
    return torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(piece.float())
                                                 for piece in _model.pieces_of(tensor)]))


def _wide_norms(tensors: List[Any]) -> List[Any]:
    import torch
    if tensors and hasattr(torch, "_foreach_norm"):  # a few launches for all
        return list(torch._foreach_norm(tensors))
    return [torch.linalg.vector_norm(tensor) for tensor in tensors]


class Norms(NamedTuple):
    """Of tensors by name, not finite where an element is not or its square is too large; and those that torch cannot
    compute with, and why."""
    of: Dict[str, float]
    skipped: List[Tuple[str, str]]


def norms_of(named: List[Tuple[str, Any]]) -> Norms:
    """The norm of each tensor; the host waits for each device once. Of a sharded one that of this rank's part."""
    import torch
    by_device: Dict[Any, Dict[str, Any]] = {}
    wide: Dict[Any, List[Tuple[str, Any]]] = {}
    skipped = []
    with torch.no_grad():
        for name, tensor in named:
            try:
                numbers = _model.numbers_of(tensor)
                if numbers is None:
                    continue
                of_device = by_device.setdefault(numbers.device, {})
                if numbers.element_size() >= 4:
                    wide.setdefault(numbers.device, []).append((name, numbers))
                else:
                    of_device[name] = _narrow_norm(numbers)
            except _model.CANNOT as reason:
                skipped.append((name, _model.why(reason)))
        for device, items in wide.items():
            by_device[device].update(zip((name for name, _ in items), _wide_norms([tensor for _, tensor in items])))
        found = {name: norm for norms in by_device.values() if norms for name, norm in
                 zip(norms, torch.stack([norm.to(torch.float64) for norm in norms.values()]).tolist())}
    return Norms({name: found[name] for name, _ in named if name in found}, skipped)


def _issue(kind: str, name: str, norm: Optional[float], index: Optional[List[int]], english: str,
           chinese: str) -> Dict[str, Any]:
    return {"type": kind, "name": name, "norm": norm, "index": index,
            "message": words(english, chinese) + name +
            (f" {tuple(index)}" if index is not None else "" if norm is None else f" (norm {norm:.3g})")}


def _not_finite(name: str, gradient: Any) -> Dict[str, Any]:
    """Of a gradient whose norm is not finite."""
    wrong = _model.check_values([(name, gradient)]).wrong
    if not wrong:  # numbers whose squares are too large
        return _issue("exploding_gradient", name, None, None, "exploding gradient: ", "梯度爆炸: ")
    kind = wrong[0].kind
    return _issue(f"{kind.lower()}_gradient", name, None, list(wrong[0].index), f"{kind} in gradient: ",
                  f"梯度包含{kind}: ")


def _not_begun(model: Any, zeros: List[str]) -> List[str]:
    """Of these the A of adapters whose B is still 0, as it is at first: no gradient reaches A then."""
    weights = dict(model.named_parameters())
    partner = {name: name.replace(".lora_A", ".lora_B") for name in zeros if ".lora_A" in name}
    norms = norms_of([(b, weights[b]) for b in partner.values() if b in weights]).of
    return [a for a, b in partner.items() if norms.get(b) == 0.0]


def check_gradients(model: Any, *, vanishing: float = VANISHING, exploding: float = EXPLODING,
                    is_first_step: bool = False) -> Dict[str, Any]:
    """Norms of all gradients, and which of them vanish, explode, or have a NaN or Inf in them (with the index of
    the first). In a LoRA training's first step A has no gradient, since B is 0: that is not one of them. Call it
    after backward; where the first step has been made already, B is not 0 any more: then say is_first_step.

    >>> check_gradients(model)["issues"]
    [{'type': 'nan_gradient', 'name': 'layers.3.weight', 'norm': None, 'index': [7, 9], 'message': ...}]
    """
    if _figures.is_off():
        return {"checked": 0, "issues": [], "norms": {}, "total_norm": None, "not_checked": [], "without_gradient": []}
    _figures.need_torch("check_gradients")
    gradients = [(name, parameter.grad) for name, parameter in model.named_parameters() if parameter.requires_grad]
    there = [(name, gradient) for name, gradient in gradients if gradient is not None]
    norms, skipped = norms_of(there) if there else Norms({}, [])
    of_name, issues = dict(there), []
    zeros = [name for name, norm in norms.items() if norm == 0.0]
    fine = {name for name in zeros if ".lora_A" in name} if is_first_step else set(_not_begun(model, zeros))
    for name, norm in norms.items():
        if name in fine:
            continue
        if not math.isfinite(norm):
            issues.append(_not_finite(name, of_name[name]))
        elif norm > exploding:
            issues.append(_issue("exploding_gradient", name, norm, None, "exploding gradient: ", "梯度爆炸: "))
        elif norm < vanishing:
            issues.append(_issue("vanishing_gradient", name, norm, None, "vanishing gradient: ", "梯度消失: "))
    _say_issues(issues)
    finite = [norm for norm in norms.values() if math.isfinite(norm)]
    return {"checked": len(norms), "issues": issues,
            "norms": {name: norm if math.isfinite(norm) else None for name, norm in norms.items()},
            "total_norm": math.sqrt(sum(norm * norm for norm in finite)) if len(finite) == len(norms) else None,
            "not_checked": [{"name": name, "reason": reason} for name, reason in skipped],
            "without_gradient": [name for name, gradient in gradients if gradient is None]}


def _say_issues(issues: List[Dict[str, Any]]) -> None:
    for kind in dict.fromkeys(issue["type"] for issue in issues):
        _say_first(logging.WARNING if kind in ("vanishing_gradient", "exploding_gradient") else logging.ERROR,
                   [issue["message"] for issue in issues if issue["type"] == kind])
