# SPDX-License-Identifier: MIT
"""What a model is made of, and whether its numbers are still numbers.

Values are looked at where they are: one sum a tensor (NaN and Inf never vanish from a sum, and of a sum
nothing but its finiteness is looked at), one answer a device comes to the host. Only a tensor whose sum is
not finite is looked through, a piece at a time, for the first. So a check reads the model's memory once,
and needs none.
"""
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

PIECE = 1 << 20  # elements looked through at once

#: What sparse tensors consist of, their values last.
SPARSE = {"torch.sparse_coo": ("_indices", "_values"),
          **dict.fromkeys(("torch.sparse_csr", "torch.sparse_bsr"), ("crow_indices", "col_indices", "values")),
          **dict.fromkeys(("torch.sparse_csc", "torch.sparse_bsc"), ("ccol_indices", "row_indices", "values"))}


class Part(NamedTuple):
    """A parameter or a buffer."""
    name: str
    kind: str  # "parameter" or "buffer"
    tensor: Any
    bytes: int
    tied_to: Optional[str]  # the one before, whose memory it shares


def tensor_bytes(tensor: Any) -> int:
    """Bytes of its elements; of a sparse one those of indices and values; 0 for one not made yet."""
    if _is_unmade(tensor):
        return 0
    if str(tensor.layout) in SPARSE:
        return sum(tensor_bytes(getattr(tensor, part)()) for part in SPARSE[str(tensor.layout)])
    return tensor.numel() * tensor.element_size()


def _is_unmade(tensor: Any) -> bool:
    return hasattr(tensor, "materialize")  # a lazy module's


def n_elements(tensor: Any) -> int:
    return 0 if _is_unmade(tensor) else tensor.numel()


def _memory_key(tensor: Any) -> Any:
    """Equal for tensors that share their memory."""
    if _is_unmade(tensor) or str(tensor.layout) != "torch.strided" or tensor.device.type == "meta":
        return id(tensor)
    address = tensor.data_ptr()
    return (str(tensor.device), address) if address else id(tensor)


def parts_of(model: Any) -> List[Part]:
    """Parameters, then buffers, by the names that torch gives them. What shares its memory with one before
    is tied to it and takes no bytes, or those by which it is larger."""
    found: List[Part] = []
    known: Dict[Any, Tuple[str, int]] = {}

    def add(kind: str, named: Iterator[Tuple[str, Any]]) -> None:
        for name, tensor in named:
            key, size = _memory_key(tensor), tensor_bytes(tensor)
            first, counted = known.get(key, (None, 0))
            found.append(Part(name, kind, tensor, max(0, size - counted), first))
            known[key] = (first or name, max(size, counted))

    add("parameter", model.named_parameters())
    add("buffer", model.named_buffers())
    return found


def group_of(name: str) -> str:
    """The layer that a parameter belongs to: its path to the first number, else its module."""
    words = name.split(".")
    for i, word in enumerate(words[:-1]):
        if word.isdigit():
            return ".".join(words[:i + 1])
    return ".".join(words[:-1]) or name


# ---- values

class Finding(NamedTuple):
    """The first element of a tensor that is no number."""
    name: str
    kind: str   # "NaN" or "Inf"
    index: Tuple[int, ...]
    flat_index: int


def _numbers_of(tensor: Any) -> Optional[Any]:
    """The strided tensor of floating-point numbers in it; None: it has none that could be wrong."""
    if tensor is None or _is_unmade(tensor) or tensor.device.type == "meta" or getattr(tensor, "is_quantized", False):
        return None
    tensor = tensor.detach()
    if str(tensor.layout) in SPARSE:
        tensor = getattr(tensor, SPARSE[str(tensor.layout)][-1])()
    if str(tensor.layout) != "torch.strided" or tensor.numel() == 0:
        return None
    if tensor.is_complex():
        import torch
        tensor = torch.view_as_real(tensor)
    return tensor if tensor.is_floating_point() else None


def _sum(tensor: Any) -> Any:
    """Of a type in which torch adds up without a copy of the whole."""
    import torch
    if tensor.element_size() == 1:  # the 8-bit types have no sum: a piece at a time
        flat = tensor.reshape(-1)
        return sum(flat[i:i + PIECE].float().sum() for i in range(0, flat.numel(), PIECE))
    return tensor.sum(dtype=torch.float32 if tensor.element_size() == 2 else None)


def _first_wrong(name: str, tensor: Any) -> Optional[Finding]:
    import torch
    n = tensor.numel()
    step = max(1, PIECE // max(1, n // tensor.shape[0])) if tensor.dim() else 1
    rows = tensor if tensor.dim() else tensor.reshape(1)
    for start in range(0, rows.shape[0], step):
        piece = rows[start:start + step]
        wrong = ~torch.isfinite(piece.float() if piece.element_size() == 1 else piece)
        if not bool(wrong.any()):
            continue
        place = torch.nonzero(wrong)[0].tolist()
        value = float(piece[tuple(place)])
        place[0] += start
        flat = 0
        for size, i in zip(rows.shape, place):
            flat = flat * size + i
        return Finding(name, "NaN" if value != value else "Inf", tuple(place) if tensor.dim() else (), flat)
    return None  # a sum of numbers can be too large for its type


def first_not_finite(named: List[Tuple[str, Any]]) -> List[Finding]:
    """Of each tensor with NaN or Inf in it, the first."""
    import torch
    by_device: Dict[Any, List[Tuple[str, Any, Any]]] = {}
    with torch.no_grad():
        for name, tensor in named:
            numbers = _numbers_of(tensor)
            if numbers is not None:
                by_device.setdefault(numbers.device, []).append((name, numbers, torch.isfinite(_sum(numbers))))
        found = []
        for items in by_device.values():
            fine = torch.stack([ok for _, _, ok in items]).tolist()  # the one wait for the device
            found += [_first_wrong(name, numbers) for (name, numbers, _), ok in zip(items, fine) if not ok]
    of_name = dict(named)
    return [finding._replace(index=finding.index[:-1], flat_index=finding.flat_index // 2)
            if of_name[finding.name].is_complex() else finding for finding in found if finding is not None]
