# SPDX-License-Identifier: MIT
"""MemoryDebugger: devices watched while the training runs, checkpoints of your own, and what is odd.

    from tidemark import create_memory_debugger

    with create_memory_debugger(log_dir="logs/memory_debug") as debugger:
        debugger.create_memory_checkpoint("start")
        train()
        debugger.create_memory_checkpoint("end")
        debugger.compare_checkpoints("start", "end")
        print(debugger.generate_memory_report())
"""
import collections
import logging
import math
import os
import threading
import time
import weakref
from datetime import datetime
from typing import Any, Deque, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from . import _figures, _program, _run_answers
from ._figures import MB
from ._files import write_file, write_new_file
from ._growth import steady_rise
from ._log_file import log_in
from ._object_growth import ObjectGrowth
from ._report import history_lines, issue_lines, peak_lines, size_figure, stage_lines
from ._status_page import StatusReport
from ._words import log, padded, say, words
from .monitors import Callback, OOMDetector, Strategy
from .quick_memory_debug import (Snapshot, _label, _take, _text, compare_snapshots, finished_stages,
                                 memory_snapshot)

MAX_HISTORY = 1000      # snapshots, and anomalies that are over; the oldest are given up first
THRESHOLD_MB = 100.0    # of anomalies, until another one is set
OVER_USE_PERCENT = 90.0
LOOK_S = 3.0            # in real time: the whole history is looked at no more often, the last two snapshots each time
RECENT = ("over_use", "sudden_growth")  # what the last two show
LEAK_SNAPSHOTS = 9      # so many are looked at for a leak: the last ones, three times as many, and so on


class MemoryDebugger(OOMDetector):
    """All in one: use, warnings and growth of devices; checkpoints and anomalies of this process.

    >>> debugger = MemoryDebugger()
    >>> debugger.start_monitoring()
    >>> train()
    >>> debugger.stop_monitoring()
    >>> report = debugger.get_status_report()

    With enable_real_time snapshots of this process are kept in memory_history and looked at for anomalies. With log_dir
    all that the package says is in a log there, which is rotated, and reports are written there. While it monitors,
    Python's objects are counted by type now and then (python_objects), at a fifth of a percent of a core.
    """

    def __init__(self, log_dir: Optional[str] = None, enable_real_time: bool = False, *, threshold: float = 85.0,
                 warning_callback: Optional[Callback] = None, sampling_interval: float = 0.1,
                 devices: Optional[Sequence[Union[int, str]]] = None, warm_up: float = 60.0,
                 strategy: Optional[Strategy] = None, python_objects: bool = True):
        super().__init__(threshold, warning_callback, sampling_interval=sampling_interval, devices=devices,
                         warm_up=warm_up, strategy=strategy)
        self.log_dir = log_dir
        self.checkpoints: Dict[str, Snapshot] = {}
        self._history: List[Snapshot] = []
        #: What _check_memory_anomalies() found last.
        self.issues: List[Dict[str, Any]] = []
        self._past: Deque[Dict[str, Any]] = collections.deque(maxlen=MAX_HISTORY)
        self._lasting: Dict[Tuple[Any, ...], Dict[str, Any]] = {}  # those of _past that are not over
        self._telling = threading.Lock()
        self._threshold_mb = THRESHOLD_MB
        self._began_s = time.time()
        self._peaks, self._peaks_between = Peaks(), Peaks()
        self._wants_objects = python_objects
        self._objects: Optional[ObjectGrowth] = None
        self._blocks = BlockQuestion()
        self._is_real_time = False
        self._looked_s = -math.inf
        self._log = None if _figures.is_off() else log_in(log_dir, "memory_debug")
        #: Where the log is; None: there is none.
        self.log_file: Optional[str] = None if self._log is None else self._log.path
        if self._log is not None:
            weakref.finalize(self, self._log.close)
            self._log.write(words(f"memory debugger of process {os.getpid()} begins",
                                  f"内存调试器启动, 进程 {os.getpid()}"))
        if enable_real_time:
            self.start_real_time_monitoring()

    @property
    def memory_history(self) -> List[Snapshot]:
        """Snapshots, oldest first, at most MAX_HISTORY; may be assigned to.

        >>> debugger.memory_history = debugger.memory_history[-500:]
        """
        return self._history

    @memory_history.setter
    def memory_history(self, snapshots: Iterable[Snapshot]) -> None:
        self._history = list(snapshots)

    @property
    def past_issues(self) -> List[Dict[str, Any]]:
        """All anomalies so far, oldest first, at most MAX_HISTORY: as in `issues`, and since when (`timestamp`) and until
        when (`until`; None: it lasts).

        >>> debugger.past_issues[0]["message"], debugger.past_issues[0]["timestamp"]
        ('GPU 0 grew suddenly: +512.0MB > 100.0MB', '2026-11-15T18:42:37.123456')
        """
        return list(self._past)

    # ---- devices

    def get_status_report(self) -> StatusReport:
        """What MemoryProfiler reports of devices, each with `oom` (what is forecast) and `fragmentation`; `verdict`,
        `leaks` and `watched`: what grew on them. Then of the recorded run, all ranks: `oom`, `leak` (with `host` and
        `python` of this process), `fragmentation`, each with the `reason` where it is not known. Also while it runs.
        It is a dictionary; printed, or as text, it is one page of what matters.

        >>> report = debugger.get_status_report()
        >>> print(report)
        memory status, 2025-01-15T10:30:00, watched for 60.0 s
          ... 8.00 GB / 11.50 GB (69.5%)  mean 65.2%  most 89.1%
            OOM risk: low
            ...
        >>> report["devices"]["0"]["current_usage"]["utilization_percent"]
        69.5
        >>> report["leak"]["leaks"], report["fragmentation"]["ranks"]
        ([], [])
        """
        if _figures.is_off():
            return StatusReport({**self._report(), **_run_answers.off()})
        if self.is_monitoring and self._objects is not None:
            self._objects.look()
        report = dict(self._report())
        leak = _run_answers.leak()
        leak["host"] = report.pop("process", None)
        leak["python"] = None if self._objects is None else self._objects.report()
        verdicts = [part["verdict"] for part in (leak, leak["host"], leak["python"]) if part is not None]
        leak["verdict"] = "leak" if "leak" in verdicts else "clean" if "clean" in verdicts else None
        return StatusReport({**report, "run": _run_answers.run_folder(), "oom": _run_answers.oom(), "leak": leak,
                             "fragmentation": _run_answers.fragmentation()})

    def start_monitoring(self) -> None:
        """Begin; while it runs already, nothing.

        >>> debugger.start_monitoring()
        """
        if _figures.is_off() or self.is_monitoring:
            return
        self._objects = ObjectGrowth() if self._wants_objects else None
        super().start_monitoring()

    def _forget(self) -> None:
        super()._forget()
        self._objects, self._telling = None, threading.Lock()  # the old one may be held by a thread that is not here

    def _tell_every_s(self) -> float:
        return 0.0 if self._is_real_time else super()._tell_every_s()

    def _more_arguments(self) -> List[str]:
        return ["--process", str(os.getpid())]

    def start_real_time_monitoring(self, interval: float = 1.0) -> None:
        """Begin, or go on at this interval (seconds): a snapshot of this process each time, looked at for anomalies.

        >>> debugger.start_real_time_monitoring(interval=0.5)
        """
        self.stop_monitoring()
        self._set_interval(interval)
        self._is_real_time = True
        self.start_monitoring()

    def stop_monitoring(self) -> None:
        """End; what was seen is kept. May be called again.

        >>> debugger.stop_monitoring()
        """
        if self.is_monitoring and self._objects is not None:
            self._objects.look()
        super().stop_monitoring()
        self._is_real_time = False

    def __enter__(self) -> "MemoryDebugger":
        return self  # with create_memory_debugger(): watched if it was asked to

    def _on_samples(self, samples: List[Dict[str, Any]]) -> None:
        super()._on_samples(samples)
        if self._objects is not None:
            self._objects.look_if_due()
        if self._is_real_time:
            self._log_change(_take("real_time"))
            self._check_in_time()

    # ---- this process

    def _keep(self, snapshot: Snapshot) -> None:
        self._peaks.begin(snapshot)
        self._history.append(snapshot)
        if len(self._history) > MAX_HISTORY:
            del self._history[:-MAX_HISTORY]

    def _log_change(self, snapshot: Snapshot) -> None:
        """Keep it; a line of the log's if it differs from the one before."""
        before = self._history[-1]["gpu_memory"] if self._history else []
        self._keep(snapshot)
        if self._log is not None and snapshot["gpu_memory"] != before:
            self._log.write(snapshot["name"] + ": " + ", ".join(
                f"{_label(entry)} {_text(entry['allocated_mb'], '.1f')}MB / {_text(entry['total_mb'], '.1f')}MB "
                f"({_text(entry['utilization'], '.1f')}%)" for entry in snapshot["gpu_memory"]))

    def create_memory_checkpoint(self, name: str) -> Snapshot:
        """A snapshot under this name, looked at for anomalies; one of the same name is replaced. Each device in it has
        `peak_since_mb`, the most that was allocated since the checkpoint before.

        >>> debugger.create_memory_checkpoint("start")["gpu_memory"][0]["allocated"]
        0
        """
        self.checkpoints[name] = snapshot = memory_snapshot(name)
        if _figures.is_off():
            return snapshot
        peaks = self._peaks_between.mb()
        for entry in snapshot["gpu_memory"]:
            entry["peak_since_mb"] = peaks.get(entry["device_id"])
        self._peaks_between = Peaks()
        self._peaks_between.begin(snapshot)
        self._keep(snapshot)
        self._check_in_time()
        return snapshot

    def compare_checkpoints(self, before: str, after: str) -> Dict[str, Any]:
        """What has changed between two checkpoints, as compare_snapshots() says it.

        >>> debugger.compare_checkpoints("start", "after_problem")["gpu_changes"][0]["memory_change_mb"]
        456.7
        """
        for name in (before, after):
            if name not in self.checkpoints:
                raise KeyError(f"there is no checkpoint {name!r}; there are: {', '.join(self.checkpoints) or 'none'}")
        return compare_snapshots(self.checkpoints[before], self.checkpoints[after])

    def _check_in_time(self, threshold_mb: Optional[float] = None) -> None:
        """As _check_memory_anomalies(), at the cost of the last two snapshots most of the time."""
        threshold_mb = self._threshold_mb if threshold_mb is None else threshold_mb
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._check_memory_anomalies(threshold_mb)
            self._looked_s = time.monotonic()
            return
        lasting = [issue for issue in self.issues if issue["type"] not in RECENT]
        self._tell(recent_anomalies(self.memory_history[-2:], threshold_mb) + lasting)

    def _tell(self, found: List[Dict[str, Any]]) -> None:
        """Say what was not so before, and keep it; what was so before and is no more has ended."""
        timestamp = datetime.now().isoformat()
        with self._telling:
            lasting, self._lasting = self._lasting, {}
            for issue in found:
                past = lasting.pop(_what(issue), None)
                if past is None:
                    say(logging.WARNING, issue["message"])
                    past = {"timestamp": timestamp, "until": None}
                    self._past.append(past)
                past.update(issue)
                self._lasting[_what(issue)] = past
            for past in lasting.values():
                past["until"] = timestamp
            self.issues = found

    def _check_memory_anomalies(self, threshold_mb: Optional[float] = None) -> List[Dict[str, Any]]:
        """What is odd now, of what memory_history shows; each is said once until it is over, and stays in past_issues. A
        threshold holds from now on, also for what is looked at in real time and in reports.

        >>> debugger._check_memory_anomalies(threshold_mb=200.0)
        [{'type': 'sudden_growth', 'device_id': 0, 'growth_mb': 512.0, 'message': ...}]
        """
        if threshold_mb is not None:
            self._threshold_mb = float(threshold_mb)
        threshold_mb, history = self._threshold_mb, list(self.memory_history)
        if _figures.is_off() or not history:
            return []
        found = anomalies(history, threshold_mb) + fragmented(self._blocks.rows(history[-1], threshold_mb), threshold_mb)
        found += leaking_types(self._objects.report() if self._objects is not None else None)
        log.debug("anomalies of %d snapshots: %s", len(history), found)
        self._tell(found)
        return found

    def generate_memory_report(self, output_file: Optional[str] = None) -> str:
        """The peak, history, checkpoints with the change and the peak from each to the next, stages, and what is and was
        odd, with times, as text; to a file too (in log_dir by itself).

        >>> report = debugger.generate_memory_report(output_file="custom_report.txt")
        """
        if _figures.is_off():
            text = words("TIDEMARK=0: nothing was watched\n", "TIDEMARK=0: 未进行监控\n")
            if output_file is not None:
                write_file(output_file, text)
            return text
        text = "\n".join(self._report_lines()) + "\n"
        if output_file is not None:
            write_file(output_file, text)
        elif self.log_dir is not None:
            output_file = write_new_file(self.log_dir, "memory_report", ".txt", text)
        if output_file is not None:
            say(logging.INFO, words("report written to ", "报告已保存: ") + str(output_file))
        return text

    def _report_lines(self) -> List[str]:
        self._check_memory_anomalies()
        lines = ["=" * 80, words("memory report", "内存调试报告") + time.strftime("  %Y-%m-%dT%H:%M:%S"), "=" * 80]
        lines += peak_lines(self.memory_history, self._peaks.mb())
        lines += self._checkpoint_lines()
        lines += stage_lines([stage for stage in finished_stages if stage["time"] >= self._began_s])
        lines += issue_lines(self.past_issues)
        leaks = _run_answers.leak()["leaks"]
        if leaks:
            lines.append(words("lines that leak", "泄漏的代码行"))
        lines += [f"  {leak['file']}:{leak['line']} {leak['function']}  +{leak['growth_bytes'] / MB:.1f}MB"
                  for leak in leaks]
        return lines + history_lines(list(self.memory_history))

    def _checkpoint_lines(self) -> List[str]:
        lines = [words("checkpoints (allocated, change, peak since the one before, reserved)",
                       "检查点 (分配, 变化, 上一检查点以来的峰值, 保留)")]
        last: Dict[int, Optional[float]] = {}
        for name, snapshot in self.checkpoints.items():
            for entry in snapshot["gpu_memory"]:
                now, before = entry["allocated_mb"], last.get(entry["device_id"])
                is_first = entry["device_id"] not in last
                change, peak = ("", "") if is_first else (
                    "-" if now is None or before is None else f"{now - before:+.1f}MB",
                    f"{_text(entry['peak_since_mb'], '.1f')}MB")
                last[entry["device_id"]] = now
                lines.append(f"  {padded(name, 30)} {_label(entry)} {size_figure(now, '.1f'):>12} {change:>12} {peak:>12} "
                             f"{size_figure(entry['reserved_mb'], '.1f'):>12}")
        return lines + ([] if self.checkpoints else [words("  none", "  无")])


class Peaks:
    """The most that is allocated on each device, from the first snapshot on."""

    def __init__(self) -> None:
        self._windows: Dict[int, _figures.Window] = {}

    def begin(self, snapshot: Snapshot) -> None:
        """Of the devices that have not begun."""
        for entry in snapshot["gpu_memory"]:
            if entry["device_id"] not in self._windows:
                number = _figures.CARD + entry["device_id"] if entry["kind"] == "GPU" else _figures.HOST
                self._windows[entry["device_id"]] = _figures.Window(number)

    def mb(self) -> Dict[int, Optional[float]]:
        return {index: _figures.mb(window.peak()) for index, window in self._windows.items()}


# ---- anomalies

def _series(history: List[Snapshot], device_id: int) -> List[float]:
    """MB allocated on a device, oldest first, as far as known."""
    return [entry["allocated_mb"] for snapshot in history for entry in snapshot["gpu_memory"]
            if entry["device_id"] == device_id and entry["allocated_mb"] is not None]


def steady_growth(series: List[float], threshold_mb: float) -> Optional[float]:
    """By how much it has grown steadily, and by more than this: over the last LEAK_SNAPSHOTS, three times as many and so
    on, whichever shows it first. None: it does not."""
    n = LEAK_SNAPSHOTS
    while n <= len(series):
        grown = steady_rise(series[-n:])
        if grown > threshold_mb:
            return grown
        n = min(3 * n, len(series)) if n < len(series) else n + 1
    return None


def over_use(entry: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """A device that is nearly full, of tensors (allocated) or of what torch holds besides (reserved); None: it is not."""
    reserved, total = entry.get("reserved"), entry.get("total")
    for what, percent in (("allocated", entry["utilization"]),
                          ("reserved", 100.0 * reserved / total if reserved is not None and total else None)):
        if percent is not None and percent > OVER_USE_PERCENT:
            return {"type": "over_use", "device_id": entry["device_id"], "utilization": percent, "of": what,
                    "message": _label(entry) + words(" is nearly full: ", " 内存过度使用: ") + f"{percent:.1f}%" +
                    ("" if what == "allocated" else
                     words(f" reserved by torch, {_text(entry['utilization'], '.1f')}% allocated",
                           f" 被torch保留, 已分配 {_text(entry['utilization'], '.1f')}%"))}
    return None


def recent_anomalies(last: List[Snapshot], threshold_mb: float) -> List[Dict[str, Any]]:
    """Over-use and sudden growth, by device, of the last two snapshots."""
    found: List[Dict[str, Any]] = []
    for entry in last[-1]["gpu_memory"] if last else ():
        full, series = over_use(entry), _series(last[-2:], entry["device_id"])
        if full is not None:
            found.append(full)
        if len(series) > 1 and series[-1] - series[-2] > threshold_mb:
            grown = series[-1] - series[-2]
            found.append({"type": "sudden_growth", "device_id": entry["device_id"], "growth_mb": grown,
                          "message": _label(entry) + words(" grew suddenly: ", " 内存异常增长: ") +
                          f"+{grown:.1f}MB > {threshold_mb:.1f}MB"})
    return found


def anomalies(history: List[Snapshot], threshold_mb: float) -> List[Dict[str, Any]]:
    """Over-use, sudden growth and steady growth, by device."""
    found = recent_anomalies(history[-2:], threshold_mb)
    for entry in history[-1]["gpu_memory"]:
        grown = steady_growth(_series(history, entry["device_id"]), threshold_mb)
        if grown is not None:
            found.append({"type": "leak", "device_id": entry["device_id"], "growth_mb": grown,
                          "message": _label(entry) + words(" grows steadily, a leak? ", " 疑似内存泄漏: ") +
                          f"+{grown:.1f}MB" + words("; find the line: tidemark leak RUN",
                                                    "; 定位代码: tidemark leak RUN")})
    return found


def _what(issue: Dict[str, Any]) -> Tuple[str, Optional[int], Optional[str]]:
    """Equal for issues of which one warning is enough."""
    return issue["type"], issue["device_id"], issue.get("object_type")


def leaking_types(python: Optional[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Types of Python's of which there are more and more, of what ObjectGrowth reports."""
    return [{"type": "python_leak", "device_id": None, "object_type": row["type"], "before": row["before"],
             "after": row["after"],
             "message": words(f"Python objects grow steadily, a leak? {row['type']}: {row['before']} -> {row['after']}",
                              f"疑似Python内存泄漏: {row['type']}: {row['before']} -> {row['after']}")}
            for row in (python or {"growing": []})["growing"] if row["verdict"] == "leak"]


class BlockQuestion:
    """Asks the program where the blocks of this process lie: only when torch holds much that is in no block, and not
    sooner than a hundred times what the last answer took."""

    def __init__(self) -> None:
        self._rows: List[Dict[str, Any]] = []
        self._due_s = 0.0

    def rows(self, snapshot: Snapshot, threshold_mb: float) -> List[Dict[str, Any]]:
        if not any(entry["reserved"] is not None and entry["reserved"] - entry["allocated"] > threshold_mb * MB
                   for entry in snapshot["gpu_memory"]):
            self._rows = []
        elif time.monotonic() >= self._due_s:
            start = time.monotonic()
            try:
                self._rows = _program.rows(str(os.getpid()), _run_answers.FRAGMENTATION)
            except _program.NoAnswer as reason:
                log.debug("fragmentation: %s", reason)
                self._rows = []
            end = time.monotonic()
            self._due_s = end + 100 * (end - start)
        return self._rows


def fragmented(rows: List[Dict[str, Any]], threshold_mb: float) -> List[Dict[str, Any]]:
    """Devices on which more than this lies between blocks, so that it cannot be given back, and no request could have
    half of it. Free segments do not count: torch gives them back when it needs to."""
    found = []
    for row in rows:
        free, releasable, largest = row["free"], row["releasable"], row["largest_allocatable"]
        if free is None or releasable is None or largest is None:
            continue
        stuck = free - releasable
        if stuck <= threshold_mb * MB or largest >= stuck / 2:
            continue
        number = row["device"].rpartition(":")[2]
        found.append({"type": "fragmentation", "device_id": int(number) if number.isdigit() else 0,
                      "stuck_mb": stuck / MB, "largest_mb": largest / MB, "free_blocks": row["free_blocks"],
                      "message": row["device"] + words(
                          f" is fragmented: {stuck / MB:.1f}MB free between blocks, the largest piece "
                          f"{largest / MB:.1f}MB; see tidemark frag RUN",
                          f" 内存碎片化: 块间空闲 {stuck / MB:.1f}MB, 最大连续 {largest / MB:.1f}MB; 详见 tidemark frag RUN")})
    return found


def create_memory_debugger(log_dir: str = "logs/memory_debug", enable_real_time: bool = False) -> MemoryDebugger:
    """A MemoryDebugger, for `with` or without; its log and its reports go into log_dir.

    >>> debugger = create_memory_debugger(log_dir="custom_logs/memory_debug", enable_real_time=True)
    """
    return MemoryDebugger(log_dir, enable_real_time)
