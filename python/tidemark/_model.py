# SPDX-License-Identifier: MIT
"""What a model is made of, and whether its numbers are still numbers.

Bytes are those of memory: where tensors share it (tied weights, views, expanded ones) it counts once, with the
first of them. Of a sharded tensor (DTensor, as FSDP2 makes them) it is this rank's part; nothing here talks to
other ranks.

Values are looked at where they are: one sum a tensor (NaN and Inf never vanish from a sum, and of a sum
nothing but its finiteness is looked at), one answer a device comes to the host. Only a tensor whose sum is
not finite is looked through, a piece at a time, for the first. So a check reads the model's memory once,
and needs a few MB for pieces at most.
"""
import bisect
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


def is_unmade(tensor: Any) -> bool:
    """A lazy module's, before its first call."""
    return hasattr(tensor, "materialize")


def n_elements(tensor: Any) -> int:
    return 0 if is_unmade(tensor) else tensor.numel()


# ---- memory

class Span(NamedTuple):
    """Bytes of a storage."""
    storage: Any
    start: int
    end: int


def _strided(tensor: Any) -> List[Any]:
    """The tensors that it consists of: of a sparse one indices and values, of a sharded one this rank's part."""
    if is_unmade(tensor):
        return []
    if hasattr(tensor, "to_local"):
        return _strided(tensor.detach().to_local())
    if str(tensor.layout) in SPARSE:
        return [getattr(tensor, part)() for part in SPARSE[str(tensor.layout)]]
    return [tensor]


def _n_spanned(tensor: Any) -> int:
    """Elements of its storage from its first to its last."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))


def _span(tensor: Any) -> Span:
    """From its first element to its last, as far as the storage is there. Of tensors without one (some kinds of
    quantized ones) as much as their elements take."""
    size = tensor.element_size()
    try:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        start, there = tensor.storage_offset() * size, storage.nbytes()
        key = (str(tensor.device), storage.data_ptr() or getattr(storage, "_storage", storage)._cdata)
    except (AttributeError, NotImplementedError, RuntimeError):
        return Span(id(tensor), 0, tensor.numel() * size)
    return Span(key, min(start, there), min(start + _n_spanned(tensor) * size, there))


def spans_of(tensor: Any) -> List[Span]:
    """Where its memory is; none for one not made yet."""
    return [_span(part) for part in _strided(tensor)]


class Memory:
    """Which bytes of which storages are counted already, and who was the first."""

    def __init__(self) -> None:
        self._storages: Dict[Any, List[Tuple[int, int, str]]] = {}  # parts of each, in their order

    def add(self, span: Span, name: str) -> Tuple[int, Optional[str]]:
        """How many bytes are new, and whose the others are."""
        known = self._storages.setdefault(span.storage, [])
        first = bisect.bisect_left(known, (span.start,))
        if first > 0 and known[first - 1][1] > span.start:
            first -= 1
        last = first
        while last < len(known) and known[last][0] < span.end:
            last += 1
        met = known[first:last]
        n_new = span.end - span.start - sum(min(end, span.end) - max(start, span.start) for start, end, _ in met)
        owner = met[0][2] if met else None
        if span.end > span.start:
            known[first:last] = [(min([span.start] + [start for start, _, _ in met]),
                                  max([span.end] + [end for _, end, _ in met]), owner or name)]
        return n_new, owner


def tensors_bytes(tensors: Any) -> int:
    """Bytes of memory that these take together."""
    memory = Memory()
    return sum(memory.add(span, "")[0] for tensor in tensors for span in spans_of(tensor))


def _all_named(model: Any, what: str) -> Iterator[Tuple[str, Any]]:
    """Parameters or buffers, by each of their names: torch leaves out the second name of a tied one by itself."""
    try:
        yield from getattr(model, f"named_{what}s")(remove_duplicate=False)
    except TypeError:  # before torch 2
        for path, module in model.named_modules(remove_duplicate=False):
            for name, tensor in getattr(module, f"_{what}s").items():
                if tensor is not None:
                    yield (f"{path}.{name}" if path else name), tensor


def parts_of(model: Any) -> List[Part]:
    """Parameters, then buffers, by the names that torch gives them. What shares its memory with one before
    is tied to it and takes no bytes, or those by which it is larger."""
    found: List[Part] = []
    memory, objects = Memory(), {}

    def add(kind: str, named: Iterator[Tuple[str, Any]]) -> None:
        for name, tensor in named:
            new = [memory.add(span, name) for span in spans_of(tensor)]
            owner = objects.setdefault(id(tensor), name)  # of those that have no memory yet
            owners = [first for _, first in new if first is not None] + ([owner] if owner != name else [])
            found.append(Part(name, kind, tensor, sum(n for n, _ in new), owners[0] if owners else None))

    add("parameter", _all_named(model, "parameter"))
    add("buffer", _all_named(model, "buffer"))
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


class Values(NamedTuple):
    """Of tensors that were looked at: what is wrong; and which could not be looked at, and why."""
    wrong: List[Finding]
    skipped: List[Tuple[str, str]]


#: What torch raises for a kind of number that it cannot compute with (float4 and the like).
CANNOT = (AttributeError, NotImplementedError, RuntimeError, TypeError)


def why(reason: BaseException) -> str:
    return (str(reason).splitlines() or [""])[0] or type(reason).__name__


def numbers_of(tensor: Any) -> Optional[Any]:
    """The strided tensor of floating-point numbers in it; None: it has none that could be wrong."""
    if tensor is None or is_unmade(tensor) or tensor.device.type == "meta" or getattr(tensor, "is_quantized", False):
        return None
    tensor = _strided(tensor.detach())[-1]
    if str(tensor.layout) != "torch.strided" or tensor.numel() == 0:
        return None
    span = _span(tensor)
    if span.end - span.start < tensor.element_size() * _n_spanned(tensor):
        return None  # as FSDP leaves what it has scattered: to read it would be a crash
    if tensor.is_complex():
        import torch
        tensor = torch.view_as_real(tensor)
    return tensor if tensor.is_floating_point() else None


def pieces_of(tensor: Any) -> Iterator[Any]:
    """Views of it, of PIECE elements or fewer, in the order of its elements."""
    if tensor.numel() <= PIECE:
        yield tensor
        return
    dim = next(dim for dim, size in enumerate(tensor.shape) if size > 1)
    step = max(1, PIECE // (tensor.numel() // tensor.shape[dim]))
    for start in range(0, tensor.shape[dim], step):
        yield from pieces_of(tensor.narrow(dim, start, min(step, tensor.shape[dim] - start)))


def is_summed_whole(tensor: Any) -> bool:
    """Does torch add it up in 32 bits or more as it reads? Narrow types it would copy on the CPU; those of 8 bits it
    does not add at all."""
    return tensor.element_size() >= 4 or (tensor.element_size() == 2 and tensor.device.type == "cuda")


def _sum(tensor: Any) -> Any:
    import torch
    if is_summed_whole(tensor):
        return tensor.sum(dtype=torch.float32 if tensor.element_size() == 2 else None)
    return sum(piece.float().sum() for piece in pieces_of(tensor))


def _index(flat: int, shape: Any) -> Tuple[int, ...]:
    found: List[int] = []
    for size in reversed(shape):
        flat, i = divmod(flat, size)
        found.insert(0, i)
    return tuple(found)


def _first_wrong(name: str, tensor: Any) -> Optional[Finding]:
    import torch
    before = 0
    for piece in pieces_of(tensor):
        wrong = torch.isfinite(piece.float() if piece.element_size() == 1 else piece).logical_not_().reshape(-1)
        if bool(wrong.any()):
            place = int(wrong.to(torch.uint8).argmax())  # of equal ones the first
            value = float(piece[_index(place, piece.shape)])
            return Finding(name, "NaN" if value != value else "Inf", _index(before + place, tensor.shape),
                           before + place)
        before += piece.numel()
    return None  # a sum of numbers can be too large for its type


def _of_complex(finding: Finding) -> Finding:
    """Each was looked at as two."""
    return finding._replace(index=finding.index[:-1], flat_index=finding.flat_index // 2)


def check_values(named: List[Tuple[str, Any]]) -> Values:
    """Of each tensor with NaN or Inf in it, the first; of a sharded one by its place in this rank's part."""
    if not named:
        return Values([], [])
    import torch
    by_device: Dict[Any, List[Tuple[str, Any, Any]]] = {}
    wrong: List[Finding] = []
    skipped = []
    with torch.no_grad():
        for name, tensor in named:
            try:
                numbers = numbers_of(tensor)
                if numbers is not None:
                    is_fine = torch.isfinite(_sum(numbers))
                    by_device.setdefault(numbers.device, []).append((name, numbers, is_fine))
            except CANNOT as reason:
                skipped.append((name, why(reason)))
        for items in by_device.values():
            fine = torch.stack([ok for _, _, ok in items]).tolist()  # the one wait for the device
            found = [_first_wrong(name, numbers) for (name, numbers, _), ok in zip(items, fine) if not ok]
            wrong += [finding for finding in found if finding is not None]
    of_name = dict(named)
    return Values([_of_complex(finding) if of_name[finding.name].is_complex() else finding for finding in wrong],
                  skipped)
