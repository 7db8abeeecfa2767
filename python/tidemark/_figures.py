# SPDX-License-Identifier: MIT
"""How much is allocated and reserved on which device: the one place where the package finds out.

libtidemark is told by torch with every block and answers in 0.2 µs, without a lock and without a word
to the device. Where it does not know, torch is asked (tens of µs): until torch's first block, and after
memory was given back without one (empty_cache); libtidemark is told the answer, which is good until the next
change. After `import tidemark` alone, where the driver's calls are not seen, torch is asked each time if it has
memory that cudaMalloc() did not give it (expandable segments). A machine without a GPU
has one device, the CPU: allocated are torch's tensors; what the C library's allocator has reserved for them
is not known. Nothing here initialises CUDA, and before it is in use nothing is allocated (_visible.py says the rest).
"""
import ctypes
import functools
import gc
import importlib
import importlib.util
import os
import struct
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _visible
from ._words import log

MB = 1024 * 1024
GB = 1024 * MB
ROW = struct.Struct("5Q")  # as libtidemark's tally() packs it
HOST = 0                   # its number for the CPU
CARD = 1 << 8              # and for CUDA's first device


class Figures(NamedTuple):
    """Bytes of one device at one moment; None: not known."""
    time_ns: int
    allocated: Optional[int]
    reserved: Optional[int]
    max_allocated: Optional[int]
    max_reserved: Optional[int]


class Device(NamedTuple):
    """A device that figures can be had of."""
    index: int
    kind: str  # "GPU", or "CPU" where there is none
    name: str
    total: Optional[int]

    @property
    def label(self) -> str:
        return f"GPU {self.index}" if self.kind == "GPU" else "CPU"


def is_off() -> bool:
    """TIDEMARK=0: the package does nothing."""
    return os.environ.get("TIDEMARK") == "0"


_broken: Optional[str] = None  # why torch, which is there, could not be imported: it is not tried again


def torch_or_none() -> Any:
    """torch, imported if it is installed; None if it is not, or if that fails."""
    global _broken
    if sys.modules.get("torch") is not None:
        return sys.modules["torch"]
    try:
        if _broken is None and importlib.util.find_spec("torch") is not None:
            return importlib.import_module("torch")
    except Exception as reason:  # whatever a broken installation raises
        _broken = f"{type(reason).__name__}: {reason}"
        log.debug("torch is installed, but cannot be imported: %s", _broken)
    return None


def need_torch(who: str) -> Any:
    """torch; ImportError says how to install it."""
    torch = torch_or_none()
    if torch is None:
        raise ImportError(f"{who} needs torch, which is " + (
            "not installed: pip install torch" if _broken is None else
            f"installed but cannot be imported ({_broken}): pip install --force-reinstall torch"))
    return torch


def is_in_use(torch: Any) -> bool:
    """Has this process initialised CUDA? While it has not, nothing here does: forked children could not use it then,
    not even after torch.cuda.is_available()."""
    return torch is not None and torch.cuda.is_initialized()


def uses_cuda() -> bool:
    """Are torch's devices GPUs? Before CUDA is in use torch counts them by NVML, without initialising it."""
    torch = torch_or_none()
    return torch is not None and (is_in_use(torch) or torch.cuda.device_count() > 0)


# ---- what libtidemark knows

def _unknown(_device: int) -> bytes:
    return b""


def tally_function() -> Callable[[int], bytes]:
    """libtidemark's tally(device): ROW packed, or b"" where it does not know."""
    import tidemark
    return _unknown if tidemark._lib is None else tidemark._lib.tally


def host_memory() -> Tuple[Optional[int], Optional[int]]:
    """Total and available bytes of the host, in a container by its limit; None: not known."""
    import tidemark
    if tidemark._lib is not None:
        pair = (ctypes.c_uint64 * 2)()
        if tidemark._lib.tidemark_record_host_memory(pair):
            return pair[0], pair[1]
    return None, None


# ---- devices

@functools.lru_cache(maxsize=None)
def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return os.uname().machine


def devices() -> List[Device]:
    """Those that torch can use: its GPUs, or the CPU where there is none."""
    if not uses_cuda():
        return [Device(0, "CPU", _cpu_name(), host_memory()[0])]
    torch = torch_or_none()
    return [_gpu(torch, index) for index in range(torch.cuda.device_count())]


def _gpu(torch: Any, index: int) -> Device:
    if is_in_use(torch):
        properties = torch.cuda.get_device_properties(index)
        return Device(index, "GPU", properties.name, properties.total_memory)
    card = _visible.known(index)
    return Device(index, "GPU", card.name or "GPU", card.total)


def free_bytes(device: Device, reserved: Optional[int], allocated: Optional[int]) -> Optional[int]:
    """What can still be had on a device; None: not known. One on which this process has nothing may have no context
    of it, and gets none by this: the driver is asked beside it."""
    if device.kind == "CPU":
        return host_memory()[1]
    if not reserved or allocated is None:
        return _visible.look(device.index).free
    free, _ = torch_or_none().cuda.mem_get_info(device.index)
    return free + reserved - allocated  # what torch keeps can be given out again


def number_of(device: Device) -> int:
    """As libtidemark numbers it."""
    return CARD + device.index if device.kind == "GPU" else HOST


def name_of(number: int) -> str:
    """As torch names the device: "cuda:1", "cpu"."""
    return f"cuda:{number - CARD}" if number >= CARD else "cpu"


def number_named(device: Any) -> int:
    """Of a device that torch can use: 1, "cuda:1" or a torch.device; "cuda" is the one that torch allocates on. Without a
    GPU the CPU is 0. ValueError says which there are."""
    count = torch_or_none().cuda.device_count() if uses_cuda() else 0
    known = {f"cuda:{index}": CARD + index for index in range(count)}
    known["cpu"] = HOST
    if str(device) == "cuda" and count > 0:
        return current_number()()
    name = str(device)
    if isinstance(device, int) and not isinstance(device, bool):
        name = "cpu" if count == 0 and device == 0 else f"cuda:{device}"
    if name not in known:
        raise ValueError(f"no device {device!r}; there is " + ", ".join(known))
    return known[name]


def current_number() -> Callable[[], int]:
    """A function that says the number of the device that torch allocates on, without making a context. Until CUDA is in
    use it is the first."""
    if not uses_cuda():
        return lambda: HOST
    torch = torch_or_none()
    current, cuda = torch._C._cuda_getDevice, torch.cuda
    if hasattr(cuda, "_initialized"):  # as is_initialized() says it, at a fraction of the time, but for forked children
        return lambda: CARD + (current() if cuda._initialized and (not _is_child or cuda.is_initialized()) else 0)
    return lambda: CARD + (current() if cuda.is_initialized() else 0)


_is_child = False  # of a fork, in which CUDA cannot be used if it was in use before


def _in_child() -> None:
    global _is_child, _windows_lock
    _is_child, _windows_lock = True, threading.RLock()


os.register_at_fork(after_in_child=_in_child)


# ---- figures

LISTS = 4  # of torch's segments, for one in the midst of which none comes or goes


def _segments(torch: Any) -> List[Dict[str, Any]]:
    """Those that torch has, as it lists them; none where that cannot be had, or would bring all its history along."""
    if not is_in_use(torch):  # then torch has no allocator, and what asks one would crash
        return []
    try:
        keeps_history = getattr(torch._C, "_cuda_isHistoryEnabled", lambda: False)()
        return [] if keeps_history else torch.cuda.memory_snapshot()
    except Exception as reason:  # of torch's allocators not all have a list
        log.debug("torch does not list its segments, and will be asked each time: %s", reason)
        return []


def _tell_segments(lib: ctypes.CDLL) -> None:
    """What torch had got before its calls of cudaMalloc() were seen. What another allocator may have given it, mapped
    piece by piece or to a pool of its own, is left out: it goes without a cudaFree()."""
    torch = torch_or_none()
    for _ in range(LISTS):
        begun = lib.tidemark_record_begin_segments()
        for segment in _segments(torch):
            if not segment.get("is_expandable") and tuple(segment.get("segment_pool_id", (0, 0))) == (0, 0):
                lib.tidemark_record_segment(segment["device"], segment["address"], segment["total_size"])
        if lib.tidemark_record_end_segments(begun):
            return
    lib.tidemark_record_begin_segments()  # without any: torch will be asked each time, until it has given all back


def ask_torch(number: int) -> Figures:
    """What torch itself counts, of a GPU: slower, always right. Of the CPU it counts nothing."""
    import tidemark
    now, lib, asked = time.time_ns(), tidemark._lib, 0
    if number < CARD:
        return Figures(now, None, None, None, None)
    torch = torch_or_none()
    if lib is not None:
        if lib.tidemark_record_see_runtime():
            _tell_segments(lib)
        asked = lib.tidemark_record_ask(number)
    stats = torch.cuda.memory_stats_as_nested_dict(number - CARD)
    if not stats:  # CUDA is not in use yet
        return Figures(now, 0, 0, 0, 0)
    allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
    found = Figures(now, allocated["current"], reserved["current"], allocated["peak"], reserved["peak"])
    if lib is not None:
        lib.tell(number, asked, *found[1:])
    return found


def unpacked(row: bytes, number: int) -> Figures:
    """A row of tally()'s. The host's has what is allocated in the place of what is reserved, which is not known."""
    found = Figures(*ROW.unpack(row))
    return found if number >= CARD else found._replace(reserved=None, max_reserved=None)


def figures(number: int) -> Figures:
    """Of a device by its number, now."""
    row = tally_function()(number)
    return unpacked(row, number) if row else ask_torch(number)


def give_back() -> None:
    """Collect garbage, and have torch give back what it caches."""
    gc.collect()
    torch = torch_or_none()
    if is_in_use(torch):
        torch.cuda.empty_cache()


# ---- peaks

_windows: "weakref.WeakSet[Window]" = weakref.WeakSet()
_windows_lock = threading.RLock()
_torch_counts: Dict[int, bool] = {}  # by device: torch's own peak began with the last window


class Window:
    """The most that is allocated on a device from now on. Windows may overlap: a new one takes nothing from those that
    are open. libtidemark counts; where it does not hear torch's blocks, a GPU's peaks are torch's own, which is told to
    begin anew (torch.cuda.reset_peak_memory_stats)."""

    def __init__(self, number: int):
        self.number, self.before = number, figures(number).allocated
        self._most: Optional[int] = 0
        with _windows_lock:
            _note_peak(number)
            _begin_peak(number)
            _windows.add(self)

    def peak(self) -> Optional[int]:
        """Allocated bytes; None: not known."""
        with _windows_lock:
            _note_peak(self.number)
            return self._most


def _counted_peak(number: int) -> Optional[int]:
    """By libtidemark, since the last window began; None: it does not know."""
    import tidemark
    found = (ctypes.c_uint64 * 2)()  # one is written; two by versions before
    is_known = tidemark._lib is not None and tidemark._lib.tidemark_record_window(number, found)
    return found[0] if is_known else None


def _begin_peak(number: int) -> None:
    import tidemark
    if tidemark._lib is not None:
        tidemark._lib.tidemark_record_begin_window(number)
    _torch_counts[number] = number >= CARD and _counted_peak(number) is None
    if _torch_counts[number] and is_in_use(torch_or_none()):
        torch_or_none().cuda.reset_peak_memory_stats(number - CARD)


def _note_peak(number: int) -> None:
    """For each open window of the device."""
    peak = _counted_peak(number)
    if peak is None and _torch_counts.get(number):
        peak = ask_torch(number).max_allocated
    for window in _windows:
        if window.number == number:
            window._most = None if peak is None or window._most is None else max(window._most, peak)


def mb(size: Optional[float]) -> Optional[float]:
    return None if size is None else size / MB


def mb_text(size: Optional[float], columns: int = 6) -> str:
    """Bytes as seeds' tables show them: `  12.0MB`; `-` where they are not known."""
    return f"{'-':>{columns}}  " if size is None else f"{size / MB:{columns}.1f}MB"
