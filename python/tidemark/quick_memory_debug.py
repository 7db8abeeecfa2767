# SPDX-License-Identifier: MIT
"""Memory in a line or two: snapshots and what changed, what a model takes, what a function leaves.

    from tidemark import memory_snapshot, compare_snapshots, analyze_model, monitor_function

    before = memory_snapshot("before")
    model = make_model()
    change = compare_snapshots(before, memory_snapshot("after"))
    print(change["gpu_changes"][0]["memory_change_mb"])

Figures of a GPU are torch's own. Without a GPU the CPU stands in its place, with the bytes of torch's
tensors that were made since `import tidemark`. MB are 1024² bytes. Messages go to the logger `tidemark`.
"""
import collections
import logging
import math
import time
from datetime import datetime
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from . import _figures, _model
from ._figures import MB, mb
from ._files import write_file
from ._report import figure as _text
from ._report import history_lines, issue_lines, peak_lines, size_figure, stage_lines
from ._report import label as _label
from ._words import padded, say, words

Snapshot = Dict[str, Any]

LARGE_MB = 100.0
MAX_HISTORY = 1000
SHOWN_PARTS = 10

#: What generate_report() tells of, the oldest given up first.
history: Deque[Snapshot] = collections.deque(maxlen=MAX_HISTORY)
#: Stages of TrainingProfiler, as they end, with the `time` of that, and what check_memory_status() warned of.
finished_stages: Deque[Dict[str, Any]] = collections.deque(maxlen=MAX_HISTORY)
warned: Deque[Dict[str, Any]] = collections.deque(maxlen=MAX_HISTORY)
_models: Dict[str, Dict[str, Any]] = {}


def _percent(part: Optional[float], whole: Optional[float]) -> Optional[float]:
    return None if part is None or not whole else 100.0 * part / whole


def _difference(after: Optional[float], before: Optional[float]) -> Optional[float]:
    return None if after is None or before is None else after - before


# ---- snapshots

def _device_entry(device: _figures.Device) -> Dict[str, Any]:
    found = _figures.figures(_figures.number_of(device))
    return {"device_id": device.index, "kind": device.kind, "name": device.name, "allocated": found.allocated,
            "reserved": found.reserved, "total": device.total, "max_allocated": found.max_allocated,
            "utilization": _percent(found.allocated, device.total), "allocated_mb": mb(found.allocated),
            "reserved_mb": mb(found.reserved), "total_mb": mb(device.total)}


def _take(name: str) -> Snapshot:
    total, available = _figures.host_memory()
    return {"name": name, "timestamp": datetime.now().isoformat(), "time": time.time(),
            "gpu_memory": [_device_entry(device) for device in _figures.devices()],
            "system_memory": {"total": total, "available": available, "total_mb": mb(total),
                              "available_mb": mb(available),
                              "percent": _percent(_difference(total, available), total)}}


def _empty(name: str) -> Snapshot:
    """With TIDEMARK=0."""
    return {"name": name, "timestamp": datetime.now().isoformat(), "time": time.time(), "gpu_memory": [],
            "system_memory": {"total": None, "available": None, "total_mb": None, "available_mb": None,
                              "percent": None}}


def memory_snapshot(name: str = "snapshot") -> Snapshot:
    """What is allocated and reserved now, on each device, and of the system.

    >>> memory_snapshot("training_start")["gpu_memory"][0]["allocated"]
    1294467072
    """
    if _figures.is_off():
        return _empty(name)
    snapshot = _take(name)
    history.append(snapshot)
    say(logging.INFO, words("memory snapshot: ", "获取内存快照: ") + name)
    for entry in snapshot["gpu_memory"]:
        say(logging.INFO, f"  {_label(entry)}: {_text(entry['allocated_mb'], '.1f')}MB / "
                          f"{_text(entry['total_mb'], '.1f')}MB ({_text(entry['utilization'], '.1f')}%)")
    return snapshot


def _changes(before: Snapshot, after: Snapshot) -> Dict[str, Any]:
    known = {entry["device_id"]: entry for entry in before["gpu_memory"]}
    changes = []
    for entry in after["gpu_memory"]:
        old = known.get(entry["device_id"])
        if old is None:
            continue
        change = _difference(entry["allocated"], old["allocated"])
        reserved = _difference(entry["reserved"], old["reserved"])
        changes.append({"device_id": entry["device_id"], "kind": entry["kind"], "name": entry["name"],
                        "memory_change": change, "memory_change_mb": mb(change), "reserved_change": reserved,
                        "reserved_change_mb": mb(reserved),
                        "utilization_change": _difference(entry["utilization"], old["utilization"])})
    system = _difference(before["system_memory"]["available"], after["system_memory"]["available"])
    return {"before": before["name"], "after": after["name"], "time_diff": after["time"] - before["time"],
            "gpu_changes": changes, "system_change_mb": mb(system)}


def compare_snapshots(before: Snapshot, after: Snapshot) -> Dict[str, Any]:
    """What has changed between two snapshots, by device.

    >>> compare_snapshots(before, after)["gpu_changes"][0]["memory_change_mb"]
    456.7
    """
    comparison = _changes(before, after)
    if _figures.is_off():
        return comparison
    say(logging.INFO, words("comparing memory snapshots: ", "比较内存快照: ") + f"{before['name']} vs {after['name']}")
    for change in comparison["gpu_changes"]:
        size, share = _text(change["memory_change_mb"], "+.1f"), _text(change["utilization_change"], "+.1f")
        say(logging.INFO, f"  {_label(change)}: " + words(f"memory {size}MB, utilization {share}%",
                                                          f"内存变化 {size}MB, 利用率变化 {share}%"))
    return comparison


def monitor_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Tuple[Any, Dict[str, Any]]:
    """Call it; its result, and what it has changed. What it raises goes through.

    >>> model, comparison = monitor_function(create_model)
    """
    name = getattr(function, "__name__", type(function).__name__)
    before = memory_snapshot(f"before_{name}")
    result = function(*args, **kwargs)
    return result, compare_snapshots(before, memory_snapshot(f"after_{name}"))


# ---- models

def _row(part: _model.Part) -> Dict[str, Any]:
    tensor = part.tensor
    return {"name": part.name, "kind": part.kind, "shape": None if _model.is_unmade(tensor) else list(tensor.shape),
            "dtype": str(tensor.dtype), "device": str(tensor.device), "params": _model.n_elements(tensor),
            "bytes": part.bytes, "memory_mb": part.bytes / MB, "requires_grad": tensor.requires_grad,
            "tied_to": part.tied_to}


def _sums(rows: List[Dict[str, Any]], key: Callable[[Dict[str, Any]], str]) -> Dict[str, Dict[str, Any]]:
    sums: Dict[str, Dict[str, Any]] = {}
    for row in rows:
        entry = sums.setdefault(key(row), {"params": 0, "bytes": 0, "memory_mb": 0.0})
        entry["params"] += row["params"] if row["kind"] == "parameter" and row["tied_to"] is None else 0
        entry["bytes"] += row["bytes"]
        entry["memory_mb"] = entry["bytes"] / MB
    return sums


def _large_text(row: Dict[str, Any]) -> str:
    return words("large parameter: ", "大参数检测: ") + f"{row['name']} ({row['memory_mb']:.2f} MB)"


def _not_finite_text(wrong: Dict[str, Any]) -> str:
    return words(f"{wrong['kind']} in parameter: ", f"参数包含{wrong['kind']}: ") + \
        f"{wrong['name']} {tuple(wrong['index'])}"


def _say_model(found: Dict[str, Any]) -> None:
    say(logging.INFO, words("model: ", "快速分析模型: ") + found["name"])
    say(logging.INFO, words("  parameters: ", "  总参数: ") + f"{found['total_params']:,}")
    say(logging.INFO, words("  trainable: ", "  可训练参数: ") + f"{found['trainable_params']:,}")
    say(logging.INFO, words("  memory: ", "  内存占用: ") + f"{found['memory_mb']:.2f} MB")
    say(logging.INFO, words("  trainable share: ", "  参数效率: ") + f"{found['param_efficiency']:.2f}%")
    _say_first(logging.WARNING, [_large_text(row) for row in found["large_parameters"]])
    _say_first(logging.ERROR, [_not_finite_text(wrong) for wrong in found["not_finite"]])
    _say_first(logging.WARNING, [words("not looked at for NaN and Inf: ", "未检查NaN和Inf: ") +
                                 f"{entry['name']} ({entry['reason']})" for entry in found["not_checked"]])


def _say_first(level: int, messages: List[str]) -> None:
    """A large model has hundreds of large parameters, and one that is ill is ill all over: the first are enough."""
    for message in messages[:SHOWN_PARTS]:
        say(level, message)
    if len(messages) > SHOWN_PARTS:
        say(level, words(f"and {len(messages) - SHOWN_PARTS} more", f"另有 {len(messages) - SHOWN_PARTS} 个"))


def analyze_model(model: Any, name: str = "model", *, large_mb: float = LARGE_MB,
                  check_values: bool = True) -> Dict[str, Any]:
    """What a model takes: totals, each parameter and buffer, layers, dtypes, devices; large ones; the first
    NaN or Inf of each tensor that has one (the index of it too), found on the device in one pass over the
    model's memory; `not_checked` are those of a kind that torch cannot compute with. Memory that is shared (tied
    weights, views, expanded tensors) counts once: a view is `tied_to` the one that it shows, and takes what it adds.
    Of sharded tensors (FSDP2) it is what lies on this rank; on the meta device what the model would take.

    >>> analysis = analyze_model(model, "lora_model")
    >>> analysis["memory_mb"], analysis["param_efficiency"]   # MB; trainable ones of all, in percent
    (27.64, 1.81)
    """
    if _figures.is_off():
        return _unmeasured(name)
    _figures.need_torch("analyze_model")
    parts = _model.parts_of(model)
    rows = [_row(part) for part in parts]
    own = [row for row in rows if row["kind"] == "parameter" and row["tied_to"] is None]
    total, trainable = sum(row["params"] for row in own), sum(row["params"] for row in own if row["requires_grad"])
    sizes = {kind: sum(row["bytes"] for row in rows if row["kind"] == kind) for kind in ("parameter", "buffer")}
    looked = _model.check_values([(part.name, part.tensor) for part in parts if part.tied_to is None or part.bytes]
                                 if check_values else [])
    size = sizes["parameter"] + sizes["buffer"]
    found = {"name": name, "total_params": total, "trainable_params": trainable, "frozen_params": total - trainable,
             "param_efficiency": 100.0 * trainable / total if total else 0.0, "bytes": size, "memory_mb": size / MB,
             "parameter_mb": sizes["parameter"] / MB, "buffer_mb": sizes["buffer"] / MB, "parameters": rows,
             "layer_groups": _sums(rows, lambda row: _model.group_of(row["name"])),
             "by_dtype": _sums(rows, lambda row: row["dtype"]), "by_device": _sums(rows, lambda row: row["device"]),
             "large_parameters": [row for row in rows if row["memory_mb"] >= large_mb],
             "not_finite": [{"name": f.name, "kind": f.kind, "index": list(f.index), "flat_index": f.flat_index}
                            for f in looked.wrong],
             "not_checked": [{"name": part, "reason": reason} for part, reason in looked.skipped],
             "summary": {"total_memory_mb": size / MB, "total_params": total, "trainable_params": trainable}}
    _models[name] = found
    _say_model(found)
    return found


def _unmeasured(name: str) -> Dict[str, Any]:
    """With TIDEMARK=0: the same keys. What is in MB or percent is nan, which people's own lines can print."""
    return {"name": name, "total_params": None, "trainable_params": None, "frozen_params": None,
            "param_efficiency": math.nan, "bytes": None, "memory_mb": math.nan, "parameter_mb": math.nan,
            "buffer_mb": math.nan, "parameters": [], "layer_groups": {}, "by_dtype": {}, "by_device": {},
            "large_parameters": [], "not_finite": [], "not_checked": [],
            "summary": {"total_memory_mb": math.nan, "total_params": None, "trainable_params": None}}


# ---- status, cleaning up, report

def check_memory_status(threshold_mb: float = 1000.0) -> List[Dict[str, Any]]:
    """Warn of each device that uses more than this (type `over_threshold`), or on which this much is not free
    (`not_free`); the list of issues, each with type, device_id, used_mb or free_mb, threshold_mb and message.

    >>> [issue["type"] for issue in check_memory_status(threshold_mb=1000.0)]
    []
    """
    issues: List[Dict[str, Any]] = []
    if _figures.is_off():
        return issues
    for device in _figures.devices():
        entry = _device_entry(device)
        used, label = entry["allocated_mb"], device.label
        free = mb(_figures.free_bytes(device, entry["reserved"], entry["allocated"]))
        if used is not None and used > threshold_mb:
            issues.append({"type": "over_threshold", "device_id": entry["device_id"], "used_mb": used,
                           "threshold_mb": threshold_mb,
                           "message": label + words(" uses more than the threshold: ", " 内存使用超过阈值: ") +
                           f"{used:.1f}MB > {threshold_mb:.1f}MB"})
        if free is not None and free < threshold_mb:
            issues.append({"type": "not_free", "device_id": entry["device_id"], "free_mb": free,
                           "threshold_mb": threshold_mb,
                           "message": label + words(" has too little free: ", " 可用内存不足: ") +
                           f"{free:.1f}MB < {threshold_mb:.1f}MB"})
        elif free is not None:
            say(logging.INFO, label + words(f" has enough free: {free:.1f}MB >= {threshold_mb:.1f}MB",
                                            f": 可用内存充足 {free:.1f}MB >= {threshold_mb:.1f}MB"))
        else:
            say(logging.INFO, label + words(f": it is not known whether {threshold_mb:.1f}MB are free",
                                            f": 可用内存未知 (阈值 {threshold_mb:.1f}MB)"))
    timestamp = datetime.now().isoformat()
    for issue in issues:
        say(logging.WARNING, issue["message"])
        warned.append({**issue, "timestamp": timestamp, "until": timestamp})
    return issues


def cleanup_memory() -> Dict[str, Any]:
    """Collect garbage and give back what torch caches; what that has changed.

    >>> cleanup_memory()["gpu_changes"][0]["memory_change_mb"]
    -512.0
    """
    if _figures.is_off():
        return _changes(_empty("before_cleanup"), _empty("after_cleanup"))
    before = _take("before_cleanup")
    _figures.give_back()
    comparison = _changes(before, _take("after_cleanup"))
    for change in comparison["gpu_changes"]:
        size, kept = size_figure(change["memory_change_mb"], "+.1f"), size_figure(change["reserved_change_mb"], "+.1f")
        say(logging.INFO, words("cleaned up: ", "清理内存: ") + f"{_label(change)} " +
            words(f"allocated {size}, reserved {kept}", f"分配 {size}, 保留 {kept}"))
    return comparison


def _model_lines(found: Dict[str, Any]) -> List[str]:
    lines = [f"  {found['name']}: {found['total_params']:,} " + words("parameters", "参数") +
             f", {found['memory_mb']:.2f} MB, {found['param_efficiency']:.2f}% " + words("trainable", "可训练")]
    groups = sorted(found["layer_groups"].items(), key=lambda item: -item[1]["bytes"])
    lines += [f"    {padded(group, 40)} {entry['memory_mb']:10.2f} MB" for group, entry in groups[:SHOWN_PARTS]]
    if len(groups) > SHOWN_PARTS:
        lines.append(words(f"    and {len(groups) - SHOWN_PARTS} more", f"    另有 {len(groups) - SHOWN_PARTS} 组"))
    return lines


def _peaks_mb() -> Dict[int, Optional[float]]:
    """Of each device since the program began."""
    return {device.index: mb(_figures.figures(_figures.number_of(device)).max_allocated) for device in _figures.devices()}


def generate_report(output_file: Optional[str] = None) -> str:
    """What was seen so far, as text: the peak, snapshots with their times, the change from the first to the last, stages,
    warnings with their times, models. To a file too.

    >>> text = generate_report("memory_report.txt")
    """
    if _figures.is_off():
        return ""
    lines = ["=" * 80, words("memory report", "内存调试报告") + f"  {datetime.now().isoformat(timespec='seconds')}",
             "=" * 80]
    if not history:
        lines.append(words("no snapshot was taken", "没有内存快照"))
    else:
        lines += peak_lines(history, _peaks_mb()) + history_lines(list(history))
        for change in _changes(history[0], history[-1])["gpu_changes"]:
            lines.append(words("from the first to the last: ", "总变化: ") +
                         f"{_label(change)} {_text(change['memory_change_mb'], '+.1f')}MB")
    lines += stage_lines(list(finished_stages)) + (issue_lines(list(warned)) if warned else [])
    if _models:
        lines.append(words("models", "模型"))
        for found in _models.values():
            lines += _model_lines(found)
    report = "\n".join(lines) + "\n"
    if output_file is not None:
        write_file(output_file, report)
        say(logging.INFO, words("report written to ", "报告已保存: ") + str(output_file))
    return report
