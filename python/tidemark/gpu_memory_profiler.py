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
from datetime import datetime
from typing import Any, Dict, List, Optional, Set, Tuple

from . import _figures
from ._event_log import EventLog
from ._figures import GB, MB, ROW, Figures, mb, mb_text
from ._files import new_file, write_file, write_new_file
from ._words import is_chinese, padded, say, show, words

FIRST_EVENT = "初始化"  # the constructor's row, as in GPUMemoryProfiler's own timeline, in every language
TITLE = "==== GPU Memory Timeline ====="
LABEL_COLUMNS = 20

MAX_RECORDS = 50_000  # kept, at 150 to 300 bytes each
MAX_OLD_EVENTS = 1000  # names of events of which no record is kept any more
OTHERS = "..."         # those beyond that, together

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
               "elapsed: %.2fs", " | info: ")
    CHINESE = ("事件: %s | 分配: %s | 保留: %s | 最大分配: %s | 最大保留: %s | 耗时: %.2fs", " | 额外信息: ")

    def __init__(self, start_ns: int, before: Dict[int, Figures]):
        """before: what torch says, of each device, of the time before the library saw its blocks."""
        self.start_ns = start_ns
        self._most = {number: (f.max_allocated or 0, f.max_reserved or 0) for number, f in before.items()}
        self._form, self._info = self.CHINESE if is_chinese() else self.ENGLISH

    def figures(self, row: bytes, number: int) -> Figures:
        """Unpacked; the time alone means that nothing else was known."""
        if len(row) < ROW.size:
            return Figures(int.from_bytes(row, sys.byteorder), None, None, None, None)
        time_ns, allocated, reserved, max_allocated, max_reserved = ROW.unpack(row)
        most = self.most_before(number)
        return Figures(time_ns, allocated, reserved, max(max_allocated, most[0]), max(max_reserved, most[1]))

    def most_before(self, number: int) -> Tuple[int, int]:
        """Maxima of a device, allocated and reserved, of the time before."""
        return self._most.get(number, (0, 0))

    def seconds(self, time_ns: int) -> float:
        return max(0, time_ns - self.start_ns) / 1e9

    def line_of(self, row: Row) -> Tuple[int, str]:
        event, more, packed, number = row
        f = self.figures(packed, number)
        text = self._form % (event, *map(mb_text, f[1:]), self.seconds(f.time_ns))
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
        self._events: Dict[str, List[Any]] = {}  # records, records with known sizes, their sum, the largest
        self._numbers: Set[int] = set()
        self._most_allocated = self._most_reserved = 0
        self._largest, self._peak_event = -1, None

    def copy(self) -> "Totals":
        return copy.deepcopy(self)

    def add(self, rows: List[Row], max_events: int = MAX_OLD_EVENTS) -> None:
        """So many records more; events beyond so many names have one together."""
        events, unpack, size = self._events, ROW.unpack, ROW.size
        self.count += len(rows)
        for event, _, packed, number in rows:
            found = events.get(event)
            if found is None:
                event = event if len(events) < max_events else OTHERS
                found = events.setdefault(event, [0, 0, 0, 0])
            found[0] += 1
            if len(packed) < size:
                continue
            _, allocated, _, max_allocated, max_reserved = unpack(packed)
            found[1] += 1
            found[2] += allocated
            if allocated > found[3]:
                found[3] = allocated
            if allocated > self._largest:
                self._largest, self._peak_event = allocated, event
            if max_allocated > self._most_allocated:
                self._most_allocated = max_allocated
            if max_reserved > self._most_reserved:
                self._most_reserved = max_reserved
            self._numbers.add(number)

    def summary(self, duration_s: float, lines: Optional[Lines] = None) -> Dict[str, Any]:
        """As generate_summary_report() has it, in MB."""
        most = [lines.most_before(number) for number in self._numbers] + [(self._most_allocated, self._most_reserved)]
        is_known = self._peak_event is not None
        return {"total_events": self.count, "duration_s": duration_s,
                "peak_allocated": mb(max(pair[0] for pair in most)) if is_known else None,
                "peak_reserved": mb(max(pair[1] for pair in most)) if is_known else None,
                "peak_event": self._peak_event,
                "events": {event: {"count": count, "mean_allocated": mb(total / known) if known else None,
                                   "max_allocated": mb(largest) if known else None}
                           for event, (count, known, total, largest) in self._events.items()}}


class GPUMemoryProfiler:
    """Allocated and reserved memory at the moments that you name.

    >>> profiler = GPUMemoryProfiler(log_dir="logs", enable_file_logging=True)
    >>> profiler.record("model made")

    Figures are those of the device that torch allocates on; without a GPU those of the CPU's tensors.
    Maxima are the highest since the process began (since `import tidemark` on the CPU), whoever resets
    torch's meanwhile. Lines go to the console (stderr) and to log_dir/memory_profiler_<stamp>.log, which
    begins anew at max_log_bytes; log_backups older ones are kept. A thread writes them, within 0.1 s.
    Beyond max_records the oldest leave the timeline and the JSON; the summary counts them all.
    """

    def __init__(self, log_dir: str = "logs", enable_file_logging: bool = True, *, console: bool = True,
                 max_log_bytes: int = 10 * MB, log_backups: int = 5, max_records: int = MAX_RECORDS):
        self._is_off = _figures.is_off()
        self.log_dir = log_dir
        self.log_file: Optional[str] = None
        self._rows: List[Row] = []
        self.max_records = max_records
        self._old = Totals()
        self._start_ns = time.time_ns()
        self.stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(self._start_ns // 1_000_000_000))
        if self._is_off:
            return
        if enable_file_logging:
            self.log_file = new_file(log_dir, "memory_profiler", ".log", self.stamp)
        self._tally = _figures.tally_function()
        self._current = _figures.current_number()
        self._devices = _figures.devices()
        self._lines = Lines(self._start_ns, {number: _figures.ask_torch(number)
                                             for number in map(_figures.number_of, self._devices)})
        number = self._current()
        self._first = self._lines.figures(self._read(number), number)
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

    def record(self, event: str, extra_info: Optional[str] = None) -> None:
        """This happens now.

        >>> profiler.record("forward", "loss=0.1234")
        """
        if self._is_off:
            return
        number = self._current()
        row = self._tally(number) or self._read(number)
        if type(event) is not str:
            event = str(plain(event))
        if extra_info is not None and type(extra_info) is not str:
            extra_info = plain(extra_info)
        self._rows.append((event, extra_info, row, number))
        if len(self._rows) > self.max_records:
            self._thin()

    def record_detailed(self, event: str, tensor_info: Optional[Dict[str, Any]] = None,
                        model_info: Optional[Any] = None, extra_info: Optional[str] = None) -> None:
        """This happens now, with these tensors (by name) and this model: a module, or counts.

        >>> profiler.record_detailed("step", tensor_info={"input": x}, model_info={"total_params": 1000})
        """
        if self._is_off:
            return
        number = self._current()
        row = self._read(number)
        tensors = {str(plain(name)): tensor_facts(tensor) for name, tensor in (tensor_info or {}).items()}
        model = {} if model_info is None else model_facts(model_info)
        self._rows.append((str(plain(event)), Details(plain(extra_info), tensors, model), row, number))
        if len(self._rows) > self.max_records:
            self._thin()

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
        初始化               | Allocated:    0.0MB | Reserved:    0.0MB
        """
        if self._is_off:
            return
        self._log.flush()
        rows = [(FIRST_EVENT, self._first)] + [(event, self._lines.figures(row, number))
                                                for event, _, row, number in list(self._rows)]
        show("\n".join([TITLE, *(f"{padded(event, LABEL_COLUMNS)} | Allocated: {mb_text(f.allocated)} | "
                                 f"Reserved: {mb_text(f.reserved)}" for event, f in rows)]) + "\n", sys.stdout)

    def _entries(self) -> Dict[str, List[Dict[str, Any]]]:
        events: Dict[str, List[Dict[str, Any]]] = {}
        for event, more, packed, number in list(self._rows):
            f = self._lines.figures(packed, number)
            entry = {"time": round(self._lines.seconds(f.time_ns), 6), "allocated": mb(f.allocated),
                     "reserved": mb(f.reserved), "max_allocated": mb(f.max_allocated),
                     "max_reserved": mb(f.max_reserved),
                     "timestamp": datetime.fromtimestamp(f.time_ns / 1e9).isoformat(timespec="microseconds")}
            info = more.info if isinstance(more, Details) else more
            if info is not None:
                entry["info"] = str(info)
            if isinstance(more, Details):
                entry.update(tensors=more.tensors, model=more.model)
            events.setdefault(event, []).append(entry)
        return events

    def generate_summary_report(self) -> Dict[str, Any]:
        """Counts, peak and what each event came to, in MB; written to the log as well.

        >>> profiler.generate_summary_report()["total_events"]
        2
        """
        if self._is_off:
            return {**Totals().summary(0.0), "peak_allocated": math.nan, "peak_reserved": math.nan}
        with self._log.lock:
            totals = self._old.copy()
            totals.add(list(self._rows), sys.maxsize)
        summary = totals.summary(round(self._lines.seconds(time.time_ns()), 6), self._lines)
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


def _summary_lines(summary: Dict[str, Any]) -> List[str]:
    def size(value: Optional[float]) -> str:
        return mb_text(None if value is None else value * MB)

    lines = ["=" * 80, words("summary of memory", "内存使用摘要"), "=" * 80,
             words(f"events: {summary['total_events']}, {summary['duration_s']:.2f}s",
                   f"事件总数: {summary['total_events']}, 总耗时: {summary['duration_s']:.2f}s"),
             words("peak", "峰值") + f": {size(summary['peak_allocated'])} " + words("allocated", "分配") +
             f", {size(summary['peak_reserved'])} " + words("reserved", "保留")]
    for event, found in summary["events"].items():
        lines.append(f"  {padded(event, LABEL_COLUMNS)} | " + words("count", "次数") + f": {found['count']} | " +
                     words("mean", "平均") + f": {size(found['mean_allocated'])} | " + words("most", "最大") +
                     f": {size(found['max_allocated'])}")
    return lines
