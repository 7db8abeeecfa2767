# SPDX-License-Identifier: MIT
"""Lines of the reports in text: what was seen until now, when, and the most of it. From data to text, nothing else."""
from datetime import datetime
from typing import Any, Dict, Iterable, List, Optional, Sequence

from ._words import padded, words

NAME_COLUMNS, SNAPSHOT_COLUMNS = 24, 30
SHOWN_FIRST, SHOWN_LAST = 10, 20  # of snapshots, when there are more than both together

Entry = Dict[str, Any]  # of a device, in a snapshot


def figure(value: Optional[float], form: str) -> str:
    """Unknown is `-`."""
    return "-" if value is None else format(value, form)


def size_figure(value_mb: Optional[float], form: str) -> str:
    """Likewise, with its unit."""
    return "-" if value_mb is None else format(value_mb, form) + "MB"


def label(entry: Entry) -> str:
    return f"GPU {entry['device_id']}" if entry["kind"] == "GPU" else "CPU"


def clock(timestamp: Optional[str]) -> str:
    """Of an ISO time, to the second; without one it is going on.

    >>> clock("2026-11-15T18:42:37.123456")
    '2026-11-15 18:42:37'
    """
    if timestamp is None:
        return words("now", "至今")
    return datetime.fromisoformat(timestamp).strftime("%Y-%m-%d %H:%M:%S")


def stage_line(stage: Dict[str, Any]) -> str:
    """Its change, its peak, its time."""
    failed = f"  {stage['error']}" if stage["error"] else ""
    return (f"  {padded(stage['name'], NAME_COLUMNS)} {figure(stage['memory_change_mb'], '+.1f'):>10}MB "
            f"{figure(stage['peak_mb'], '.1f'):>10}MB {stage['duration_s']:8.2f}s{failed}")


def stage_lines(stages: Sequence[Dict[str, Any]]) -> List[str]:
    """A section; none without stages."""
    head = words("stages (change, peak, time)", "训练阶段 (变化, 峰值, 时间)")
    return [head, *map(stage_line, stages)] if stages else []


def _snapshot_lines(snapshot: Dict[str, Any]) -> List[str]:
    return [f"  {clock(snapshot.get('timestamp'))}  {padded(snapshot.get('name', ''), SNAPSHOT_COLUMNS)} {label(entry)}  "
            f"{size_figure(entry['allocated_mb'], '.1f'):>12} {size_figure(entry.get('reserved_mb'), '.1f'):>12} "
            f"{figure(entry['utilization'], '.1f'):>6}%" for entry in snapshot["gpu_memory"]]


def _is_news(before: Dict[str, Any], snapshot: Dict[str, Any]) -> bool:
    """It has another name than the one before, or other figures."""
    return any(before.get(key) != snapshot.get(key) for key in ("name", "gpu_memory"))


def history_lines(history: Sequence[Dict[str, Any]]) -> List[str]:
    """A section: snapshots that differ from the one before, oldest first; of many the first and the last."""
    lines = [words(f"history: {len(history)} snapshots, repeated ones are left out (time, allocated, reserved, utilization)",
                   f"内存历史: {len(history)} 个快照, 重复的只列一次 (时间, 分配, 保留, 利用率)")]
    news = [snapshot for before, snapshot in zip([{}, *history], history) if _is_news(before, snapshot)]
    n_left_out = max(0, len(news) - SHOWN_FIRST - SHOWN_LAST)
    last = news[SHOWN_FIRST + n_left_out:]
    for snapshot in news[:SHOWN_FIRST]:
        lines += _snapshot_lines(snapshot)
    if n_left_out > 0:
        lines.append(words(f"  ({n_left_out} between them are not shown)", f"  (中间 {n_left_out} 个未显示)"))
    for snapshot in last:
        lines += _snapshot_lines(snapshot)
    return lines


def peak_lines(history: Iterable[Dict[str, Any]], peaks: Dict[int, Optional[float]]) -> List[str]:
    """A section: of each device the most that was allocated (peaks, in MB, by device; unknown: None), and the snapshot
    with the most."""
    most: Dict[int, Any] = {}
    for snapshot in history:
        for entry in snapshot["gpu_memory"]:
            size, known = entry["allocated_mb"], most.get(entry["device_id"])
            if known is None or size is not None and (known[1] is None or size > known[1]):
                most[entry["device_id"]] = (label(entry), size, snapshot)
    lines = []
    for index, (name, size, snapshot) in most.items():
        at = "" if size is None else words("; the largest snapshot: ", "; 最大快照: ") + \
            f"{size:.1f}MB, {snapshot.get('name', '')}, {clock(snapshot.get('timestamp'))}"
        lines.append(f"  {name}  {figure(peaks.get(index), '.1f')}MB{at}")
    return [words("peak (allocated at once)", "峰值 (同时分配)"), *lines] if lines else []


def _span(issue: Dict[str, Any]) -> str:
    start, end = clock(issue["timestamp"]), clock(issue["until"])
    return start if start == end else f"{start} - {end}"


def issue_lines(issues: Sequence[Dict[str, Any]]) -> List[str]:
    """A section: since when, until when, what."""
    lines = [f"  {_span(issue)}  {issue['message']}" for issue in issues]
    return [words("anomalies (from - until)", "内存异常 (开始 - 结束)"), *(lines or [words("  none", "  无")])]
