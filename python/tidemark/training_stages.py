# SPDX-License-Identifier: MIT
"""memory_profiled_training: a training in stages, what each of them leaves, and the most that it had allocated.

    from tidemark import memory_profiled_training

    with memory_profiled_training() as profiler:
        model = profiler.profile_stage("model_creation", create_model)
        profiler.profile_stage("training", train_model, model)
        report = profiler.generate_training_report()

Each stage is a stage of the recorded run too: `tidemark peak RUN --by stage` says what was alive in it. Its duration is
without what helpers of the package took meanwhile.
"""
import contextlib
import json
import logging
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

import tidemark

from . import _figures
from ._files import write_file, write_new_file
from ._helpers import helped_s
from ._report import stage_line
from ._words import say, words
from .quick_memory_debug import _changes, _label, _take, _text, finished_stages


class TrainingProfiler:
    """Stages of a training, in the order in which they ran.

    >>> profiler = TrainingProfiler()
    >>> model = profiler.profile_stage("model_creation", create_model)
    """

    def __init__(self, log_dir: Optional[str] = None):
        self.log_dir = log_dir
        self.stages: List[Dict[str, Any]] = []
        self.is_reported = True  # nothing has come since the last report

    def profile_stage(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call it as a stage of this name; its result. What it raises goes through, and the stage says so.

        >>> trained = profiler.profile_stage("training", train_model, model, dataloader)
        """
        if _figures.is_off():
            return function(*args, **kwargs)
        before, error = _take(f"before_{name}"), None
        windows = {device.index: _figures.Window(_figures.number_of(device)) for device in _figures.devices()}
        start, helped = time.monotonic(), helped_s()
        try:
            with tidemark.stage(name):
                return function(*args, **kwargs)
        except BaseException as reason:
            error = type(reason).__name__
            raise
        finally:
            duration_s = time.monotonic() - start - (helped_s() - helped)
            self._add(name, before, duration_s, error, {index: window.peak() for index, window in windows.items()})

    def _add(self, name: str, before: Dict[str, Any], duration_s: float, error: Optional[str],
             peaks: Dict[int, Optional[int]]) -> None:
        self.is_reported = False
        after = _take(f"after_{name}")
        changes = _changes(before, after)["gpu_changes"]
        for change in changes:
            peak = peaks.get(change["device_id"])
            change.update(peak=peak, peak_mb=_figures.mb(peak))
        stage = {"name": name, "timestamp": before["timestamp"], "duration_s": duration_s, "error": error,
                 "gpu_changes": changes, "gpu_memory": after["gpu_memory"],
                 "memory_change_mb": _over(sum, (change["memory_change_mb"] for change in changes)),
                 "peak_mb": _over(max, (change["peak_mb"] for change in changes))}
        self.stages.append(stage)
        finished_stages.append({**stage, "time": after["time"]})
        for change in changes:
            say(logging.INFO, words("stage ", "阶段 ") + f"{name}: {_label(change)} " +
                words("memory ", "内存变化 ") + f"{_text(change['memory_change_mb'], '+.1f')}MB, " +
                words("peak ", "峰值 ") + f"{_text(change['peak_mb'], '.1f')}MB, {duration_s:.2f}s")

    def generate_training_report(self, output_file: Optional[str] = None) -> Dict[str, Any]:
        """All stages, their sum, the one that left most and the one in which most was allocated at once; to a file as
        JSON too (in log_dir by itself).

        >>> profiler.generate_training_report()["largest_stage"]
        'model_creation'
        """
        self.is_reported = True
        known = [stage for stage in self.stages if stage["memory_change_mb"] is not None]
        peaks = [stage for stage in self.stages if stage["peak_mb"] is not None]
        report = {"stages": self.stages, "total_change_mb": _over(sum, (stage["memory_change_mb"] for stage in known)),
                  "total_duration_s": sum(stage["duration_s"] for stage in self.stages),
                  "largest_stage": max(known, key=lambda stage: stage["memory_change_mb"])["name"] if known else None,
                  "peak_mb": _over(max, (stage["peak_mb"] for stage in peaks)),
                  "peak_stage": max(peaks, key=lambda stage: stage["peak_mb"])["name"] if peaks else None}
        is_off = _figures.is_off()
        if is_off:
            report["reason"] = "TIDEMARK=0"
        for line in [] if is_off else _lines(report):
            say(logging.INFO, line)
        text = json.dumps(report, indent=2, ensure_ascii=False)
        if output_file is not None:
            write_file(output_file, text)
        elif self.log_dir is not None and not is_off:
            write_new_file(self.log_dir, "training_report", ".json", text)
        return report


def _over(combine: Callable[[List[float]], float], values: Iterable[Optional[float]]) -> Optional[float]:
    """sum or max of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return combine(known) if known else None


def _lines(report: Dict[str, Any]) -> List[str]:
    together = {"name": words("together", "合计"), "memory_change_mb": report["total_change_mb"], "error": None,
                "peak_mb": report["peak_mb"], "duration_s": report["total_duration_s"]}
    return [words("training, by stage (change, peak, time)", "训练阶段内存报告 (变化, 峰值, 时间)"),
            *map(stage_line, [*report["stages"], together])]


@contextlib.contextmanager
def memory_profiled_training(log_dir: Optional[str] = None) -> Iterator[TrainingProfiler]:
    """A TrainingProfiler for `with`; its report is written at the end unless it was before, also after an error.

    >>> with memory_profiled_training(log_dir="logs") as profiler:
    ...     model = profiler.profile_stage("model_creation", create_model)
    """
    profiler = TrainingProfiler(log_dir)
    try:
        yield profiler
    finally:
        if not profiler.is_reported:
            profiler.generate_training_report()
