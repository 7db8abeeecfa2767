# SPDX-License-Identifier: MIT
"""GPUMemoryProfiler: name the moments of a training, and see what was allocated at each.

    from tidemark import GPUMemoryProfiler

    profiler = GPUMemoryProfiler(log_dir="logs/my_training")
    profiler.record("model made")
    profiler.record("forward", "loss=0.1234")
    profiler.print_report()
    profiler.save_to_json()
    profiler.cleanup()
"""
import copy
import json
import logging
import math
import numbers
import sys
import time
import weakref
from collections import deque
from datetime import datetime
from typing import Any, Deque, Dict, Iterable, List, Optional, Set, Tuple

from . import _figures
from ._event_log import EventLog
from ._figures import CARD, GB, MB, ROW, Figures, mb, mb_text, name_of, unpacked
from ._files import new_file, write_file, write_new_file
from ._words import is_chinese, padded, say, show, words

FIRST_EVENT = "初始化"  # the constructor's row, as in GPUMemoryProfiler's own timeline, in every language
TITLE = "==== GPU Memory Timeline ====="
LABEL_COLUMNS = 20

MAX_RECORDS = 50_000  # kept, at 150 to 300 bytes each
MAX_OLD_EVENTS = 1000  # names of events of which no record is kept any more
OTHERS = "..."         # those beyond that, together
MAX_WARNINGS = 1000    # kept for the summary

Row = Tuple[str, Any, bytes, int]  # event, what else is known of it, figures as packed by libtidemark, of which device
AS_IT_IS = (str, int, float, bool)


def plain(value: Any) -> Any:
    """Text and numbers as they are; of anything else a text, made now, since the object must be free to go. Of a tensor
    never its values: asking for them would wait for the device."""
    if value is None or type(value) in AS_IT_IS:
        return value
    try:
        if isinstance(value, numbers.Number):  # numpy's, which have a shape as well
            return str(value)
        if all(hasattr(value, name) for name in ("shape", "dtype", "device")):
            return f"tensor(shape={tuple(value.shape)}, dtype={value.dtype}, device={value.device})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{plain(key)}: {plain(entry)}" for key, entry in value.items()) + "}"
        if isinstance(value, (list, tuple, set, frozenset)):
            return "[" + ", ".join(str(plain(entry)) for entry in value) + "]"
        return str(value)
    except Exception:  # whatever its class does, it is no fault of the training's
        return f"<{type(value).__name__}>"


def json_value(value: Any) -> Any:
    """plain(), and what is no number for JSON (inf, nan) as text."""
    value = plain(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Details:
    """What record_detailed() was given: facts, not the tensors themselves, which must be free to go."""

    def __init__(self, info: Optional[str], tensors: Dict[str, Dict[str, Any]], model: Dict[str, Any]):
        self.info, self.tensors, self.model = info, tensors, model


def tensor_facts(tensor: Any) -> Dict[str, Any]:
    """Shape, dtype, device and bytes of a tensor."""
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype), "device": str(tensor.device),
            "bytes": tensor.numel() * tensor.element_size()}


def model_facts(model: Any) -> Dict[str, Any]:
    """Counts of a module's parameters, each counted once; of a mapping, what it says."""
    if not hasattr(model, "parameters"):
        return {str(plain(key)): json_value(value) for key, value in dict(model).items()}
    parameters = list(model.parameters())
    return {"total_params": sum(p.numel() for p in parameters),
            "trainable_params": sum(p.numel() for p in parameters if p.requires_grad),
            "bytes": sum(p.numel() * p.element_size() for p in parameters)}


class Lines:
    """Rows as lines of the log. Knows nothing of the profiler, which must be free to go."""

    ENGLISH = ("event: %s | allocated: %s | reserved: %s | max allocated: %s | max reserved: %s | "
               "elapsed: %.2fs", " | device: ", " | info: ")
    CHINESE = ("事件: %s | 分配: %s | 保留: %s | 最大分配: %s | 最大保留: %s | 耗时: %.2fs", " | 设备: ", " | 额外信息: ")

    def __init__(self, start_ns: int, before: Dict[int, Figures]):
        """before: what torch says, of each device, of the time before the library saw its blocks."""
        self.start_ns = start_ns
        self._most = {number: (f.max_allocated or 0, f.max_reserved or 0) for number, f in before.items()}
        self._form, self._device, self._info = self.CHINESE if is_chinese() else self.ENGLISH
        self._told: Set[int] = set()  # devices of lines so far

    def figures(self, row: bytes, number: int) -> Figures:
        """Unpacked; the time alone means that nothing else was known."""
        if len(row) < ROW.size:
            return Figures(int.from_bytes(row, sys.byteorder), None, None, None, None)
        f, most = unpacked(row, number), self.most_before(number)
        return f._replace(max_allocated=max(f.max_allocated or 0, most[0]),
                          max_reserved=None if f.max_reserved is None else max(f.max_reserved, most[1]))

    def most_before(self, number: int) -> Tuple[int, int]:
        """Maxima of a device, allocated and reserved, of the time before."""
        return self._most.get(number, (0, 0))

    def seconds(self, time_ns: int) -> float:
        return max(0, time_ns - self.start_ns) / 1e9

    def line_of(self, row: Row) -> Tuple[int, str]:
        event, more, packed, number = row
        f = self.figures(packed, number)
        text = self._form % (event, *map(mb_text, f[1:]), self.seconds(f.time_ns))
        self._told.add(number)
        if len(self._told) > 1:
            text += self._device + name_of(number)
        if more is None:
            return f.time_ns, text
        info = more.info if isinstance(more, Details) else more
        if info is not None:
            text += self._info + str(info)
        return f.time_ns, text + (_detail_lines(more) if isinstance(more, Details) else "")


class Totals:
    """What events came to, of any number of records. add() works on packed figures: record() waits for it at times."""

    def __init__(self) -> None:
        self.count = 0
        #: By device and event: records, records with known sizes, their sum, the largest.
        self._events: Dict[Tuple[int, str], List[Any]] = {}
        #: By device: the maxima, allocated and reserved; the largest that was allocated at a record, and its event.
        self._peaks: Dict[int, List[Any]] = {}

    def copy(self) -> "Totals":
        return copy.deepcopy(self)

    def add(self, rows: List[Row], max_events: int = MAX_OLD_EVENTS) -> None:
        """So many records more; events beyond so many names have one together."""
        events, peaks, unpack, size = self._events, self._peaks, ROW.unpack, ROW.size
        self.count += len(rows)
        for event, _, packed, number in rows:
            found = events.get((number, event))
            if found is None:
                event = event if len(events) < max_events else OTHERS
                found = events.setdefault((number, event), [0, 0, 0, 0])
            found[0] += 1
            if len(packed) < size:
                continue
            _, allocated, _, max_allocated, max_reserved = unpack(packed)
            found[1] += 1
            found[2] += allocated
            if allocated > found[3]:
                found[3] = allocated
            peak = peaks.get(number)
            if peak is None:
                peak = peaks.setdefault(number, [0, 0, -1, None])
            if allocated > peak[2]:
                peak[2:] = allocated, event
            if max_allocated > peak[0]:
                peak[0] = max_allocated
            if max_reserved > peak[1]:
                peak[1] = max_reserved

    def _sum(self, numbers: Set[int], lines: Optional[Lines]) -> Dict[str, Any]:
        """Of these devices together."""
        merged: Dict[str, List[Any]] = {}
        for (number, event), found in self._events.items():
            if number in numbers:
                into = merged.setdefault(event, [0, 0, 0, 0])
                into[:] = [a + b for a, b in zip(into[:3], found)] + [max(into[3], found[3])]
        most = [(number, *peak[:2]) for number, peak in self._peaks.items() if number in numbers]
        most += [(number, *lines.most_before(number)) for number, *_ in most] if lines is not None else []
        highest = max((peak[2:] for number, peak in self._peaks.items() if number in numbers), default=[-1, None],
                      key=lambda pair: pair[0])
        return {"peak_allocated": mb(max((entry[1] for entry in most), default=None)),
                "peak_reserved": mb(max((entry[2] for entry in most if entry[0] >= CARD), default=None)),
                "peak_event": highest[1],
                "events": {event: {"count": count, "mean_allocated": mb(total / known) if known else None,
                                   "max_allocated": mb(largest) if known else None}
                           for event, (count, known, total, largest) in merged.items()}}

    def summary(self, duration_s: float, lines: Optional[Lines] = None) -> Dict[str, Any]:
        """As generate_summary_report() has it, in MB."""
        numbers = {number for number, _ in self._events}
        found = {"total_events": self.count, "duration_s": duration_s, **self._sum(numbers, lines)}
        if len(numbers) > 1:
            found["devices"] = {name_of(number): self._sum({number}, lines) for number in sorted(numbers)}
        return found


class GPUMemoryProfiler:
    """Allocated and reserved memory at the moments that you name.

    >>> profiler = GPUMemoryProfiler(log_dir="logs", enable_file_logging=True)
    >>> profiler.record("model made")

    Figures are those of the device that torch allocates on, or of the one that record() is given; without a GPU those of
    the CPU's tensors, of which what is reserved is not known. The JSON says of which device each record is; the timeline
    and the log say it where the records are of several.
    Maxima are the highest since the process began (since `import tidemark` on the CPU), whoever resets
    torch's meanwhile. Lines go to the console (stderr) and to log_dir/memory_profiler_<stamp>.log, which
    begins anew at max_log_bytes; log_backups older ones are kept. A thread writes them, within 0.1 s.
    A record that finds more allocated on a device than threshold_mb, or than threshold_percent of it, writes a warning;
    the next one comes when it was less in between. None: no such threshold.
    Beyond max_records the oldest leave the timeline and the JSON; the summary counts them all.
    """

    def __init__(self, log_dir: str = "logs", enable_file_logging: bool = True, *, console: bool = True,
                 max_log_bytes: int = 10 * MB, log_backups: int = 5, max_records: int = MAX_RECORDS,
                 threshold_mb: Optional[float] = None, threshold_percent: Optional[float] = 90.0):
        self._is_off = _figures.is_off()
        self.log_dir = log_dir
        self.log_file: Optional[str] = None
        self._rows: List[Row] = []
        self.max_records = max_records
        self._old = Totals()
        #: Times that a threshold was passed: event, device, allocated and threshold (MB), timestamp.
        self.warnings: Deque[Dict[str, Any]] = deque(maxlen=MAX_WARNINGS)
        self._start_ns = time.time_ns()
        self.stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(self._start_ns // 1_000_000_000))
        if self._is_off:
            return
        if enable_file_logging:
            self.log_file = new_file(log_dir, "memory_profiler", ".log", self.stamp)
        self._tally = _figures.tally_function()
        self._current = _figures.current_number()
        self._numbers: Dict[Any, int] = {}  # of devices as record() was given them
        self._devices = _figures.devices()
        self._limits = _limits(self._devices, threshold_mb, threshold_percent)
        self._over: Set[int] = set()  # devices above their limit
        self._lines = Lines(self._start_ns, {number: _figures.ask_torch(number)
                                             for number in map(_figures.number_of, self._devices)})
        number = self._current()
        self._first = self._lines.figures(self._read(number), number), number
        self._log = EventLog(self._rows, self._lines.line_of, f"MemoryProfiler_{self.stamp}", self.log_file, console,
                             max_log_bytes, log_backups)
        self._end = weakref.finalize(self, self._log.close)  # at exit too
        self._log.write(self._start_ns, "\n".join(self._opening()))

    def _opening(self) -> List[str]:
        bar = "=" * 80
        cards = [device for device in self._devices if device.kind == "GPU"]
        return [bar, words("GPU memory profiler begins", "GPU内存分析器初始化"), bar,
                *([words("log file", "日志文件") + f": {self.log_file}"] if self.log_file else []),
                words("CUDA available", "CUDA可用") + f": {bool(cards)}",
                words("GPUs", "GPU数量") + f": {len(cards)}",
                *(f"{device.label}: {device.name} ({(device.total or 0) / GB:.1f}GB)" for device in self._devices)]

    # ---- recording

    def _read(self, number: int) -> bytes:
        """The figures of a device now, packed. Neither allocates on the device nor waits for it."""
        row = self._tally(number)
        if row:
            return row
        asked = _figures.ask_torch(number)
        return ROW.pack(*asked) if asked.allocated is not None else ROW.pack(asked.time_ns, 0, 0, 0, 0)[:8]

    def _number(self, device: Any) -> int:
        """Of a device as record() is given it."""
        if device is None:
            return self._current()
        try:
            return self._numbers[type(device), device]
        except (KeyError, TypeError):
            number = _figures.number_named(device)
        if str(device) != "cuda":  # which is now one and then another
            self._numbers[type(device), device] = number
        return number

    def record(self, event: str, extra_info: Optional[str] = None, device: Any = None) -> None:
        """This happens now. The figures are of that device (1, "cuda:1" or a torch.device; "cpu"), without one of that
        which torch allocates on.

        >>> profiler.record("forward", "loss=0.1234")
        >>> profiler.record("forward", "first half", device=0)
        """
        if self._is_off:
            return
        number = self._current() if device is None else self._number(device)
        row = self._tally(number) or self._read(number)
        if type(event) is not str:
            event = str(plain(event))
        if extra_info is not None and type(extra_info) is not str:
            extra_info = plain(extra_info)
        self._rows.append((event, extra_info, row, number))
        if self._limits:
            self._look_at_limit(event, row, number)
        if len(self._rows) > self.max_records:
            self._thin()

    def record_detailed(self, event: str, tensor_info: Optional[Dict[str, Any]] = None,
                        model_info: Optional[Any] = None, extra_info: Optional[str] = None, device: Any = None) -> None:
        """This happens now, with these tensors (by name) and this model: a module, or counts.

        >>> profiler.record_detailed("step", tensor_info={"input": x}, model_info={"total_params": 1000})
        """
        if self._is_off:
            return
        number = self._number(device)
        row = self._read(number)
        tensors = {str(plain(name)): tensor_facts(tensor) for name, tensor in (tensor_info or {}).items()}
        model = {} if model_info is None else model_facts(model_info)
        event = str(plain(event))
        self._rows.append((event, Details(plain(extra_info), tensors, model), row, number))
        self._look_at_limit(event, row, number)
        if len(self._rows) > self.max_records:
            self._thin()

    def _look_at_limit(self, event: str, row: bytes, number: int) -> None:
        """Warn when more is allocated than the threshold, and was not before."""
        limit = self._limits.get(number)
        if limit is None or len(row) < ROW.size:
            return
        time_ns, allocated = ROW.unpack(row)[:2]
        if allocated <= limit:
            self._over.discard(number)
        elif number not in self._over:
            self._over.add(number)
            self._warn(event, time_ns, allocated, limit, number)

    def _warn(self, event: str, time_ns: int, allocated: int, limit: float, number: int) -> None:
        self.warnings.append({"event": event, "device": name_of(number), "allocated": mb(allocated), "threshold": mb(limit),
                              "timestamp": _iso_time(time_ns)})
        self._log.write(time_ns, words(
            f"{name_of(number)} is above its threshold: {allocated / MB:.1f}MB > {limit / MB:.1f}MB, event: {event}",
            f"内存超过阈值: {name_of(number)} {allocated / MB:.1f}MB > {limit / MB:.1f}MB, 事件: {event}"), "WARNING")

    def _thin(self) -> None:
        """Let go of the oldest tenth, but for what the summary says of it."""
        with self._log.lock:
            if len(self._rows) <= self.max_records:  # another thread has done it
                return
            if self._old.count == 0:
                say(logging.WARNING, words(
                    f"more than {self.max_records} records: the oldest leave the timeline and the JSON, and count in the "
                    "summary only; see max_records",
                    f"记录超过 {self.max_records} 条: 最早的记录不再出现在时间线和JSON中, 仅计入摘要; 参见 max_records"))
            self._old.add(self._log.drop(max(1, self.max_records // 10)))

    # ---- what was recorded

    def print_report(self) -> None:
        """The timeline, to stdout.

        >>> profiler.print_report()
        ==== GPU Memory Timeline =====
        初始化               | Allocated:    0.0MB | Reserved:      -
        """
        if self._is_off:
            return
        self._log.flush()
        rows = [(FIRST_EVENT, *self._first)] + [(event, self._lines.figures(row, number), number)
                                                 for event, _, row, number in list(self._rows)]
        names = _names_of(number for _, _, number in rows)
        lines = [f"{padded(event, LABEL_COLUMNS)} | Allocated: {mb_text(f.allocated)} | "
                 f"Reserved: {mb_text(f.reserved)}" + (f" | Device: {names[number]}" if names else "")
                 for event, f, number in rows]
        show("\n".join([TITLE, *(line.rstrip() for line in lines)]) + "\n", sys.stdout)

    def _entries(self) -> Dict[str, List[Dict[str, Any]]]:
        events: Dict[str, List[Dict[str, Any]]] = {}
        for event, more, packed, number in list(self._rows):
            f = self._lines.figures(packed, number)
            entry = {"time": round(self._lines.seconds(f.time_ns), 6), "allocated": mb(f.allocated),
                     "reserved": mb(f.reserved), "max_allocated": mb(f.max_allocated),
                     "max_reserved": mb(f.max_reserved),
                     "timestamp": _iso_time(f.time_ns), "device": name_of(number)}
            info = more.info if isinstance(more, Details) else more
            if info is not None:
                entry["info"] = str(info)
            if isinstance(more, Details):
                entry.update(tensors=more.tensors, model=more.model)
            events.setdefault(event, []).append(entry)
        return events

    def generate_summary_report(self) -> Dict[str, Any]:
        """Counts, peak and what each event came to, in MB; the same of each of several devices (`devices`), and the times
        that a threshold was passed (`warnings`). Written to the log as well.

        >>> profiler.generate_summary_report()["total_events"]
        2
        """
        if self._is_off:
            return {**Totals().summary(0.0), "peak_allocated": math.nan, "peak_reserved": math.nan, "warnings": []}
        with self._log.lock:
            totals = self._old.copy()
            totals.add(list(self._rows), sys.maxsize)
        summary = totals.summary(round(self._lines.seconds(time.time_ns()), 6), self._lines)
        summary["warnings"] = list(self.warnings)
        self._log.write(time.time_ns(), "\n".join(_summary_lines(summary)))
        return summary

    def save_to_json(self, path: Optional[str] = None) -> str:
        """All events with their figures (MB), by name, as JSON; returns the file's path. With TIDEMARK=0 there are none.

        >>> json_file = profiler.save_to_json()
        """
        text = json.dumps(self._entries(), ensure_ascii=False, indent=2)
        if path is None:
            return write_new_file(self.log_dir, "memory_profiler", ".json", text, self.stamp)
        write_file(path, text)
        return path

    def cleanup(self) -> None:
        """Write what is left of the log and close it. What was recorded stays.

        >>> profiler.cleanup()
        """
        if not self._is_off:
            self._end()


def _iso_time(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9).isoformat(timespec="microseconds")


def _names_of(numbers: Iterable[int]) -> Dict[int, str]:
    """Names of devices where there are several; none where there is one."""
    different = set(numbers)
    return {number: name_of(number) for number in different} if len(different) > 1 else {}


def _limits(devices: List[_figures.Device], threshold_mb: Optional[float],
            threshold_percent: Optional[float]) -> Dict[int, float]:
    """Bytes that may be allocated on each device before there is a warning: the lower of both thresholds."""
    found: Dict[int, float] = {}
    for device in devices:
        limits = [] if threshold_mb is None else [threshold_mb * MB]
        if threshold_percent is not None and device.total:
            limits.append(device.total * threshold_percent / 100)
        if limits:
            found[_figures.number_of(device)] = min(limits)
    return found


def _detail_lines(details: Details) -> str:
    lines = []
    for name, t in details.tensors.items():
        shape = tuple(t["shape"])
        lines.append(words(
            f"  tensor {name}: shape={shape}, dtype={t['dtype']}, size={t['bytes'] / MB:.2f}MB, device={t['device']}",
            f"  张量 {name}: 形状={shape}, 类型={t['dtype']}, 大小={t['bytes'] / MB:.2f}MB, 设备={t['device']}"))
    facts = []
    for key, value in details.model.items():
        name = {"total_params": words("parameters", "总参数"), "bytes": words("bytes", "字节"),
                "trainable_params": words("trainable", "可训练参数")}.get(key, key)
        facts.append(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}")
    if facts:
        lines.append(words("  model: ", "  模型: ") + ", ".join(facts))
    return "".join("\n" + line for line in lines)


def _size_text(value: Optional[float]) -> str:
    return mb_text(None if value is None else value * MB)


def _peak_text(found: Dict[str, Any]) -> str:
    return (f"{_size_text(found['peak_allocated'])} " + words("allocated", "分配") +
            f", {_size_text(found['peak_reserved'])} " + words("reserved", "保留"))


def _summary_lines(summary: Dict[str, Any]) -> List[str]:
    lines = ["=" * 80, words("summary of memory", "内存使用摘要"), "=" * 80,
             words(f"events: {summary['total_events']}, {summary['duration_s']:.2f}s",
                   f"事件总数: {summary['total_events']}, 总耗时: {summary['duration_s']:.2f}s"),
             words("peak", "峰值") + f": {_peak_text(summary)}"]
    for name, found in summary.get("devices", {}).items():
        lines.append(f"  {name}: {_peak_text(found)}")
    for event, found in summary["events"].items():
        lines.append(f"  {padded(event, LABEL_COLUMNS)} | " + words("count", "次数") + f": {found['count']} | " +
                     words("mean", "平均") + f": {_size_text(found['mean_allocated'])} | " + words("most", "最大") +
                     f": {_size_text(found['max_allocated'])}")
    return lines
