# SPDX-License-Identifier: MIT
"""MemoryDebugger's report as a page for people: what devices use, what grows, what is fragmented, what to do.

The dictionary has everything; the page has the verdicts, and of each list the first few. Sizes are those of Tiny
Torch's memory tools: GB and MB of 1024.
"""
import textwrap
from typing import Any, Dict, Iterator, List, Optional

from ._figures import MB
from ._words import words

GB = 1 << 30
MOST_ROWS = 5     # of a list
MOST_WIDTH = 100  # columns of a line; longer ones are wrapped


class StatusReport(Dict[str, Any]):
    """What get_status_report() returns: a dictionary; as text it is one page.

    >>> str(StatusReport({"timestamp": "2025-01-15T10:30:00", "devices": {}})).splitlines()[0]
    'memory status, 2025-01-15T10:30:00'
    """

    def __str__(self) -> str:
        return "\n".join(part for line in _page(self) for part in _wrapped(line))


def _wrapped(line: str) -> List[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, MOST_WIDTH, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False)


def _size(value: Optional[float]) -> str:
    if value is None:
        return "-"
    return f"{value / GB:.2f} GB" if abs(value) >= GB else f"{value / MB:.1f} MB"


def _percent(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.1f}%"


def _verdict(part: Optional[Dict[str, Any]]) -> str:
    """`leak`, `clean`, or why there is none."""
    if part is None:
        return words("not known", "未知")
    if part["verdict"] is not None:
        return words(part["verdict"], {"leak": "泄漏", "clean": "无泄漏"}[part["verdict"]])
    reason = part.get("verdict_reason") or part.get("reason")
    return words("not known", "未知") + (f": {reason}" if reason else "")


def _page(report: Dict[str, Any]) -> Iterator[str]:
    watched = report.get("duration_s")
    yield words("memory status", "显存状态") + f", {report['timestamp']}" + (
        "" if watched is None else words(f", watched for {watched:.1f} s", f", 已监控 {watched:.1f} 秒"))
    if report.get("reason"):
        yield "  " + report["reason"]
    for label, device in report["devices"].items():
        yield from _device_lines(label, device)
    if "watched" in report:
        yield from _growth_lines(report)
    if "run" in report:
        yield from _run_lines(report)
    yield from _advice_lines(report)


# ---- devices

def _device_lines(label: str, device: Dict[str, Any]) -> Iterator[str]:
    usage, past = device["current_usage"], device["statistics"]
    name = words("host", "主机") if device["kind"] == "host" else f"GPU {label}"
    yield (f"  {name}  {_size(usage['allocated'])} / {_size(usage['total'])} "
           f"({_percent(usage['utilization_percent'])})  " +
           words(f"mean {_percent(past['avg_utilization'])}  most {_percent(past['max_utilization'])}",
                 f"平均 {_percent(past['avg_utilization'])}  最高 {_percent(past['max_utilization'])}"))
    if device.get("error"):
        yield f"    {device['error']}"
    if "oom" in device:
        yield "    " + _risk_text(device["oom"])
        yield "    " + _fragmentation_text(device)


def _risk_text(oom: Dict[str, Any]) -> str:
    text = words("OOM risk: ", "OOM风险: ") + (oom["risk_level"] or words("not known yet", "尚未知"))
    if oom["predicted_oom_time"] is not None:
        text += words(f", in {oom['predicted_oom_time']:.1f} s (confidence {oom['confidence']:.2f})",
                      f", {oom['predicted_oom_time']:.1f}秒后 (置信度 {oom['confidence']:.2f})")
    if oom["ooms"]:
        last = oom["last_oom"]
        text += words(f"; ran out of memory {oom['ooms']} times, last process {last['pid']} for "
                      f"{_size(last['requested'])} at {last['timestamp']}",
                      f"; 内存不足 {oom['ooms']} 次, 最近: 进程 {last['pid']} 申请 {_size(last['requested'])}, "
                      f"{last['timestamp']}")
    return text


def _fragmentation_text(device: Dict[str, Any]) -> str:
    found = device["fragmentation"]
    if found is None:
        return words("fragmentation: not known: ", "碎片: 未知: ") + (device["fragmentation_reason"] or "-")
    return words(f"fragmentation: {_size(found['stuck'])} of {_size(found['reserved'])} reserved lie free between "
                 f"blocks ({_percent(found['percent'])}), largest {_size(found['largest_free'])}",
                 f"碎片: 保留的 {_size(found['reserved'])} 中, 块间空闲 {_size(found['stuck'])} "
                 f"({_percent(found['percent'])}), 最大 {_size(found['largest_free'])}")


# ---- what grows

def _more(n: int) -> List[str]:
    return [words(f"    and {n - MOST_ROWS} more", f"    另有 {n - MOST_ROWS} 项")] if n > MOST_ROWS else []


def _growth_lines(report: Dict[str, Any]) -> Iterator[str]:
    yield words("  growth of devices: ", "  设备增长: ") + _verdict(report)
    for row in report["leaks"][:MOST_ROWS]:
        who = words("all", "全部") if row["pid"] is None else f"{row['pid']} {row['process'] or '-'}"
        yield (f"    {row['device']}: {who}  +{_size(row['growth_bytes'])}" +
               words(f" in {row['window_s']:.0f} s", f" / {row['window_s']:.0f} 秒"))
    yield from _more(len(report["leaks"]))


def _run_lines(report: Dict[str, Any]) -> Iterator[str]:
    yield words("  recorded run: ", "  记录: ") + (report["run"] or words("none", "无"))
    oom, leak = report["oom"], report["leak"]
    if oom["ranks"] or oom["refused"]:
        yield (words("    OOM risk of its processes: ", "    进程OOM风险: ") + (oom["risk_level"] or "-") +
               (words(f"; {len(oom['refused'])} requests failed", f"; {len(oom['refused'])} 次申请失败")
                if oom["refused"] else ""))
    yield words("    lines that leak: ", "    泄漏的代码行: ") + (leak["reason"] or str(len(leak["leaks"])))
    for row in leak["leaks"][:MOST_ROWS]:
        step = "" if row["bytes_per_step"] is None else words(f", {_size(row['bytes_per_step'])} a step",
                                                              f", 每步 {_size(row['bytes_per_step'])}")
        yield f"      {row['file']}:{row['line']} {row['function']}  +{_size(row['growth_bytes'])}{step}"
    yield from _more(len(leak["leaks"]))
    host, python = leak["host"], leak["python"]
    if host is not None:
        yield (words("    memory of this process: ", "    本进程内存: ") +
               f"{_size(host['rss_before'])} -> {_size(host['rss'])}, {_verdict(host)}")
    if python is not None:
        yield from _python_lines(python)


def _python_lines(python: Dict[str, Any]) -> Iterator[str]:
    yield (words("    Python objects: ", "    Python对象: ") +
           f"{python['objects_before']:,} -> {python['objects']:,}, {_verdict(python)}")
    shown = [row for row in python["growing"] if row["verdict"] != "clean"][:MOST_ROWS]
    for row in shown:
        yield f"      {row['type']}: {row['before']:,} -> {row['after']:,}" + (
            "  " + words("LEAK", "泄漏") if row["verdict"] == "leak" else "")


# ---- what to do

def _advice_lines(report: Dict[str, Any]) -> Iterator[str]:
    """That of the devices at risk, then the next command for what leaks."""
    advice = [text for device in report["devices"].values() for text in device.get("oom", {}).get("recommended_actions")
              or ()]
    leak = report.get("leak")
    if leak is not None and leak["leaks"] and report["run"]:
        advice.append(f"tidemark leak {report['run']}")
    for text in list(dict.fromkeys(advice))[:MOST_ROWS]:
        yield words("  advice: ", "  建议: ") + text
