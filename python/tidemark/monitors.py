# SPDX-License-Identifier: MIT
"""MemoryProfiler and OOMDetector: devices watched while the training runs.

    from tidemark import MemoryProfiler

    profiler = MemoryProfiler(sampling_interval=0.1)
    profiler.start_monitoring()
    train()
    profiler.stop_monitoring()
    print(profiler.generate_report()["summary"])

Each is `tidemark monitor --follow` beside the program: devices as a whole, as the driver sees them, all
processes together; those that this program sees, by the numbers that CUDA and torch give them. Without a GPU
the host's memory is device 0. docs/monitors.md says what is measured, docs/forecast.md what risk and
confidence mean.
"""
import collections
import enum
import json
import logging
import os
import time
import weakref
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Union

from . import _figures
from ._files import write_file
from ._follower import Follower
from ._words import is_chinese, log, say, words

KEPT_SAMPLES = 600  # of a device, for a strategy


class RiskLevel(enum.Enum):
    """How likely it is to run out; UNKNOWN: too little was seen.

    >>> RiskLevel.HIGH.value
    'high'
    """
    UNKNOWN = "unknown"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


URGENT = {RiskLevel.HIGH: 1, RiskLevel.CRITICAL: 2}


class Sample(NamedTuple):
    """What a device had in use at one moment; a strategy is given these.

    >>> Sample(device_id=0, time_s=0.1, allocated=8 << 30, total=16 << 30, utilization_percent=50.0).allocated
    8589934592
    """
    device_id: Union[int, str]
    time_s: float  # since the monitor began
    allocated: int
    total: int
    utilization_percent: float


class OOMPrediction(NamedTuple):
    """What a callback is given, and what a strategy returns; None: not known.

    >>> OOMPrediction(device_id=0, risk_level=RiskLevel.HIGH, predicted_oom_time=45.2, confidence=0.82,
    ...               current_usage=87.3, trend_slope=1e8, recommended_actions=["save"]).risk_level.value
    'high'
    """
    device_id: Union[int, str]
    risk_level: RiskLevel
    predicted_oom_time: Optional[float]  # seconds from now
    confidence: Optional[float]          # that it comes within the bounds said, 0 to 1
    current_usage: Optional[float]       # percent
    trend_slope: Optional[float]         # bytes a second
    recommended_actions: List[str]
    device_name: str = ""
    cause: Optional[str] = None          # growth, nearly_full, full, out_of_memory


Callback = Callable[[OOMPrediction], None]
Strategy = Callable[[Sequence[Sample]], Optional[OOMPrediction]]


def _id_of(label: str) -> Union[int, str]:
    return int(label) if label.isdigit() else label


def _checked(prediction: Any) -> OOMPrediction:
    """A strategy's, with its device as samples name it; TypeError says what is wrong with it."""
    if not isinstance(prediction, OOMPrediction):
        raise TypeError(f"it returned {prediction!r}: an OOMPrediction or None is wanted")
    if not isinstance(prediction.risk_level, RiskLevel):
        raise TypeError(f"it returned risk_level={prediction.risk_level!r}: a RiskLevel is wanted")
    if not isinstance(prediction.device_id, (int, str)):
        raise TypeError(f"it returned device_id={prediction.device_id!r}: that of the samples is wanted")
    return prediction._replace(device_id=_id_of(str(prediction.device_id)),
                               recommended_actions=list(prediction.recommended_actions or ()))


def prediction_of(line: Dict[str, Any]) -> OOMPrediction:
    """A warning of the program's."""
    found = line["warning"]
    return OOMPrediction(found["device_id"], RiskLevel(found["risk_level"] or "unknown"), found["predicted_oom_time"],
                         found["confidence"], found["taken_percent"], found["trend_slope"], line["actions"],
                         found["name"] or "", found["cause"])


def oom_text(line: Dict[str, Any]) -> str:
    """Of a warning of the program's: which process ran out of memory, if one has."""
    last = line["warning"]["last_oom"]
    if line["warning"]["cause"] != "out_of_memory" or last is None:
        return ""
    size = f"{last['requested'] / (1 << 30):.2f} GB"
    return words(f"\n   Out of memory: process {last['pid']} asked for {size} at {last['timestamp']}",
                 f"\n   内存不足: 进程 {last['pid']} 申请 {size}, {last['timestamp']}")


def warning_text(prediction: OOMPrediction, label: str, actions: Sequence[str]) -> str:
    """As Tiny Torch's memory tools show it."""
    p = prediction
    usage = "-" if p.current_usage is None else f"{p.current_usage:.1f}%"
    confidence = "-" if p.confidence is None else f"{p.confidence:.2f}"
    if is_chinese():
        when = "-" if p.predicted_oom_time is None else f"{p.predicted_oom_time:.1f}秒后"
        lines = [f"OOM警告: {label}", f"风险等级: {p.risk_level.value}", f"当前使用率: {usage}", f"预测OOM时间: {when}",
                 f"置信度: {confidence}", *(f"建议: {text}" for text in actions)]
    else:
        when = "-" if p.predicted_oom_time is None else f"in {p.predicted_oom_time:.1f} s"
        lines = [f"OOM warning: {label}", f"Risk level: {p.risk_level.value}", f"Current usage: {usage}",
                 f"Predicted OOM time: {when}", f"Confidence: {confidence}",
                 *(f"Advice: {text}" for text in actions)]
    return "\n   ".join(lines)


_monitors: "weakref.WeakSet[_Monitor]" = weakref.WeakSet()


class _Monitor:
    """What the three share: one process that samples, while it runs."""

    def __init__(self, sampling_interval: float, devices: Optional[Sequence[Union[int, str]]],
                 more: Sequence[str] = ()):
        self._set_interval(sampling_interval)
        self._arguments = list(more)
        named = ["visible"] if devices is None else [f"visible:{d}" if isinstance(d, int) else str(d) for d in devices]
        self._arguments += ["--devices", ",".join(named)]
        self._follower: Optional[Follower] = None
        self._end: Optional[weakref.finalize] = None
        self._last: Optional[Dict[str, Any]] = None
        _monitors.add(self)

    def _set_interval(self, interval: float) -> None:
        if not interval > 0:
            raise ValueError(f"a sampling interval in seconds is wanted, above 0, not {interval!r}")
        self.sampling_interval = interval

    def _listeners(self) -> Dict[str, Any]:
        return {}

    def _tell_every_s(self) -> float:
        """How often samples are of interest here, beyond the first; each wakes a thread."""
        return 3600.0

    def _more_arguments(self) -> List[str]:
        return []

    def start_monitoring(self) -> None:
        """Begin; while it runs already, nothing. ValueError where there is no such device.

        >>> monitor.start_monitoring()
        """
        if _figures.is_off() or self.is_monitoring:
            return
        self._let_go()
        self._begin_anew()
        every_s = 0.0 if log.isEnabledFor(logging.DEBUG) else self._tell_every_s()
        self._follower = Follower(["--interval", f"{self.sampling_interval:.9f}", "--tell-every", f"{every_s:.3f}",
                                   *self._arguments, *self._more_arguments()],
                                  **self._listeners())
        self._end = weakref.finalize(self, self._follower.stop)
        try:
            self._follower.begin()
        except Exception:
            self._let_go()
            raise
        log.debug("monitoring every %s s", self.sampling_interval)

    @property
    def is_monitoring(self) -> bool:
        """True between start_monitoring() and stop_monitoring(), unless the monitor has ended by itself; in a forked
        child, until that starts it anew, False."""
        return self._follower is not None and not self._follower.has_ended

    def _let_go(self) -> None:
        """Of a monitor that has ended by itself."""
        follower, self._follower = self._follower, None
        if follower is None:
            return
        self._end.detach()
        last = follower.stop() or self._last
        if last is not None:
            self._last = {**last, "reason": f"the monitor has ended by itself: {follower.reason}"}

    def _begin_anew(self) -> None:
        """What samples before must not be mixed with, now that others come."""

    def _forget(self) -> None:
        """In a forked child: what runs, and what it saw, is the parent's."""
        if self._end is not None:
            self._end.detach()
        self._follower = self._end = self._last = None

    def stop_monitoring(self) -> None:
        """End; what was seen is kept. May be called again.

        >>> monitor.stop_monitoring()
        """
        if not self.is_monitoring:
            self._let_go()
            return
        follower, self._follower = self._follower, None
        self._end.detach()
        self._last = follower.stop() or self._last

    def __enter__(self) -> Any:
        self.start_monitoring()
        return self

    def __exit__(self, *_reason: Any) -> None:
        self.stop_monitoring()

    def _report(self) -> Dict[str, Any]:
        if self.is_monitoring:
            self._last = self._follower.report()
        if not self.is_monitoring:
            self._let_go()
        if self._last is not None:
            return self._last
        return {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%S"), "devices": {},
                "summary": {"total_devices": 0, "total_memory_gb": 0.0, "overall_utilization": None},
                "reason": "TIDEMARK=0" if _figures.is_off() else "nothing was monitored yet: start_monitoring()"}


def _in_child() -> None:
    for monitor in list(_monitors):
        monitor._forget()


os.register_at_fork(after_in_child=_in_child)


class MemoryProfiler(_Monitor):
    """What devices use over time, and at most.

    >>> profiler = MemoryProfiler(sampling_interval=0.1)
    >>> profiler.start_monitoring()
    >>> train()
    >>> profiler.stop_monitoring()
    >>> profiler.generate_report("memory_report.json")["devices"]["0"]["statistics"]["max_utilization"]
    89.1
    """

    def __init__(self, sampling_interval: float = 0.1, devices: Optional[Sequence[Union[int, str]]] = None):
        super().__init__(sampling_interval, devices)

    def generate_report(self, output_file: Optional[str] = None) -> Dict[str, Any]:
        """Current use and statistics of each device, and their sum; to a file as JSON too. Also while it runs.

        >>> profiler.generate_report("memory_report.json")["summary"]
        {'total_devices': 1, 'total_memory_gb': 11.5, 'overall_utilization': 69.5}
        """
        report = self._report()
        if output_file is not None:
            write_file(output_file, json.dumps(report, indent=2, ensure_ascii=False))
        return report


class OOMDetector(_Monitor):
    """Warns when a device gets too full, or is forecast to run out: to the logger, and to your callbacks.

    >>> def on_warning(prediction):
    ...     if prediction.risk_level.value == "critical":
    ...         print(f"GPU {prediction.device_id} will be full in {prediction.predicted_oom_time} s")
    >>> detector = OOMDetector(threshold=85.0, warning_callback=on_warning)
    >>> detector.start_monitoring()

    A device warns once each time it reaches the threshold (percent; from there on it is critical), when its risk gets
    high or critical, which takes warm_up seconds of samples unless it will be full in less than half a minute, when it
    is full, and when a recorded process on it has run out of memory (cause out_of_memory). Callbacks run on a thread of the detector's, one after the other. A
    strategy of yours (samples of a device in, oldest first; a prediction or None out), if there is one when monitoring
    begins, is asked after each sample, besides: its prediction warns when its risk gets high or critical.
    """

    def __init__(self, threshold: float = 85.0, warning_callback: Optional[Callback] = None, *,
                 sampling_interval: float = 0.1, devices: Optional[Sequence[Union[int, str]]] = None,
                 warm_up: float = 60.0, strategy: Optional[Strategy] = None):
        if not 0 < threshold <= 100:
            raise ValueError(f"a threshold in percent is wanted, above 0 and up to 100, not {threshold!r}")
        super().__init__(sampling_interval, devices, ["--threshold", f"{threshold:.6f}", "--warm-up", f"{warm_up:.6f}"])
        self.threshold, self.strategy = threshold, strategy
        self._callbacks: List[Callback] = [] if warning_callback is None else [warning_callback]
        self._samples: Dict[str, Deque[Sample]] = {}
        self._kinds: Dict[Union[int, str], str] = {}
        self._said: Dict[Union[int, str], RiskLevel] = {}  # what a strategy's last prediction of a device was
        self._has_failed = False  # the strategy; said
        #: The last predictions that were warned of.
        self.warnings: Deque[OOMPrediction] = collections.deque(maxlen=KEPT_SAMPLES)

    def add_callback(self, callback: Callback) -> None:
        """One more, called after those before.

        >>> detector.add_callback(lambda prediction: save_checkpoint())
        """
        self._callbacks.append(callback)

    def _listeners(self) -> Dict[str, Any]:
        own = weakref.WeakMethod(self._on_samples), weakref.WeakMethod(self._on_warning)

        def pass_on(method: Any, found: Any) -> None:  # the thread keeps nobody alive
            target = method()
            if target is not None:
                target(found)

        return {"on_samples": lambda found: pass_on(own[0], found), "on_warning": lambda found: pass_on(own[1], found)}

    def _tell_every_s(self) -> float:
        return 1.0 if self.strategy is None else 0.0

    def _begin_anew(self) -> None:
        self._samples, self._said, self._has_failed = {}, {}, False

    def _on_samples(self, samples: List[Dict[str, Any]]) -> None:
        self._kinds.update((_id_of(found["device"]), found["kind"]) for found in samples)
        for found in samples:
            device = _id_of(found["device"])
            log.debug("decision: device %s at %s %%, %s the threshold of %s %%, risk %s", found["device"],
                      found["utilization_percent"], "over" if found["over_threshold"] else "below", self.threshold,
                      found["risk_level"] or "unknown")
            if self.strategy is not None:
                self._try_strategy(device, found)

    def _try_strategy(self, device: Union[int, str], found: Dict[str, Any]) -> None:
        try:
            self._ask_strategy(device, found)
        except Exception as reason:  # the other devices, and what else is watched, go on
            name = getattr(self.strategy, "__qualname__", None) or type(self.strategy).__name__
            log.debug("strategy %s failed: %r", name, reason)
            if not self._has_failed:
                self._has_failed = True
                say(logging.ERROR, words(f"strategy {name} failed (said once): {reason!r}",
                                         f"策略 {name} 出错 (仅提示一次): {reason!r}"))

    def _ask_strategy(self, device: Union[int, str], found: Dict[str, Any]) -> None:
        kept = self._samples.setdefault(found["device"], collections.deque(maxlen=KEPT_SAMPLES))
        kept.append(Sample(device, found["time_s"], found["allocated"], found["total"], found["utilization_percent"]))
        prediction = self.strategy(list(kept))
        log.debug("strategy: %s", prediction)
        before = self._said.pop(device, None)
        if prediction is None:
            return
        prediction = _checked(prediction)
        self._said[device] = prediction.risk_level
        if prediction.risk_level in URGENT and URGENT.get(before, 0) < URGENT[prediction.risk_level]:
            self._warn(prediction, prediction.recommended_actions)

    def _on_warning(self, line: Dict[str, Any]) -> None:
        self._warn(prediction_of(line), line["actions_zh"] if is_chinese() else line["actions"], oom_text(line))

    def _warn(self, prediction: OOMPrediction, actions: Sequence[str], more: str = "") -> None:
        kind = self._kinds.get(prediction.device_id)
        label = (words("host", "主机") if kind == "host" else
                 f"GPU {prediction.device_id}" if kind is not None else
                 words("device", "设备") + f" {prediction.device_id}")
        self.warnings.append(prediction)
        say(logging.WARNING, warning_text(prediction, label, actions) + more)
        for callback in self._callbacks:
            try:
                callback(prediction)
            except Exception as reason:  # the others are called all the same
                say(logging.ERROR, words(f"a callback failed: {reason!r}", f"回调出错: {reason!r}"))
