# SPDX-License-Identifier: MIT
"""memory_profiled_training: a training in stages, and what each of them leaves.

    from tidemark import memory_profiled_training

    with memory_profiled_training() as profiler:
        model = profiler.profile_stage("model_creation", create_model)
        profiler.profile_stage("training", train_model, model)
        report = profiler.generate_training_report()

Each stage is a stage of the recorded run too: `tidemark peak RUN --by stage` says what was alive in it.
"""
import contextlib
import json
import logging
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

import tidemark

from . import _figures
from ._files import write_file, write_new_file
from ._words import padded, say, words
from .quick_memory_debug import _changes, _label, _take, _text

NAME_COLUMNS = 24


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
        before, start, error = _take(f"before_{name}"), time.monotonic(), None
        try:
            with tidemark.stage(name):
                return function(*args, **kwargs)
        except BaseException as reason:
            error = type(reason).__name__
            raise
        finally:
            self._add(name, before, time.monotonic() - start, error)

    def _add(self, name: str, before: Dict[str, Any], duration_s: float, error: Optional[str]) -> None:
        self.is_reported = False
        after = _take(f"after_{name}")
        changes = _changes(before, after)["gpu_changes"]
        self.stages.append({"name": name, "duration_s": duration_s, "error": error, "gpu_changes": changes,
                            "gpu_memory": after["gpu_memory"],
                            "memory_change_mb": _sum(change["memory_change_mb"] for change in changes)})
        for change in changes:
            say(logging.INFO, words("stage ", "阶段 ") + f"{name}: {_label(change)} " +
                words("memory ", "内存变化 ") + f"{_text(change['memory_change_mb'], '+.1f')}MB, {duration_s:.2f}s")

    def generate_training_report(self, output_file: Optional[str] = None) -> Dict[str, Any]:
        """All stages, their sum, and the one that left most; to a file as JSON too (in log_dir by itself).

        >>> profiler.generate_training_report()["largest_stage"]
        'model_creation'
        """
        self.is_reported = True
        known = [stage for stage in self.stages if stage["memory_change_mb"] is not None]
        report = {"stages": self.stages, "total_change_mb": _sum(stage["memory_change_mb"] for stage in known),
                  "total_duration_s": sum(stage["duration_s"] for stage in self.stages),
                  "largest_stage": max(known, key=lambda stage: stage["memory_change_mb"])["name"] if known else None}
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


def _sum(changes: Any) -> Optional[float]:
    """None where nothing is known."""
    known = [change for change in changes if change is not None]
    return sum(known) if known else None


def _lines(report: Dict[str, Any]) -> List[str]:
    lines = [words("training, by stage", "训练阶段内存报告")]
    for stage in report["stages"]:
        failed = f"  {stage['error']}" if stage["error"] else ""
        lines.append(f"  {padded(stage['name'], NAME_COLUMNS)} {_text(stage['memory_change_mb'], '+.1f'):>10}MB "
                     f"{stage['duration_s']:8.2f}s{failed}")
    lines.append(f"  {padded(words('together', '合计'), NAME_COLUMNS)} {_text(report['total_change_mb'], '+.1f'):>10}MB "
                 f"{report['total_duration_s']:8.2f}s")
    return lines


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
