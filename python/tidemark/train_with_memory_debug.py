# SPDX-License-Identifier: MIT
"""A LoRA training looked at from its beginning to its end, and configurations compared.

    from tidemark import debug_lora_training, debug_memory_with_different_configs

    model, results = debug_lora_training({"r": 8, "alpha": 16}, dataloader, precision="fp16", pkg="matplotlib",
                                         version="3.8.0", knowledge_type="code", log_dir="logs/training_debug")
    print(results["creation_analysis"]["summary"]["total_memory_mb"], results["memory_issues"])

    sizes = debug_memory_with_different_configs({"batch_size": 4}, {"small_r": {"r": 8}, "large_r": {"r": 32}})
    print(min(sizes.items(), key=lambda item: item[1]["memory_mb"])[0])

The training is tidemark.lora_training's. MB are 1024² bytes.
"""
import json
import logging
import math
import os
import re
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import tidemark

from . import _figures, _model
from ._figures import MB
from ._files import write_new_file
from ._helpers import helped_s
from ._settings import settings_of
from ._words import padded, say, words
from .gradient_checks import check_gradients
from .lora_training import (Hooks, LoraConfig, Trained, build_model, changed_configs, is_out_of_memory, make_data,
                            make_optimizer, pick_device, run, settled, train)
from .memory_debugger import MemoryDebugger
from .quick_memory_debug import _large_text, _not_finite_text, _take, analyze_model
from .training_stages import TrainingProfiler

LOG_DIR = "logs/training_debug"
NAME_COLUMNS = 24


# ---- reports

def log_folder(log_dir: str, pkg: Optional[str], version: Optional[str]) -> str:
    """Labels are part of the path: LOG_DIR/PKG-VERSION.

    >>> log_folder("logs", "matplotlib", "3.8.0")
    'logs/matplotlib-3.8.0'
    """
    parts = [re.sub(r"[^\w.+-]", "_", str(label)) for label in (pkg, version) if label]
    name = "-".join(parts).strip(".")
    return os.path.join(log_dir, name) if name else log_dir


def _for_json(value: Any) -> Any:
    """What is no number there (inf: did not fit) is null."""
    if isinstance(value, dict):
        return {key: _for_json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_report(folder: str, kind: str, report: Mapping[str, Any]) -> Optional[str]:
    """As JSON; the path of the file. With TIDEMARK=0: none.

    >>> write_report("logs", "full", {"losses": [8.3]})
    'logs/full_20261115_184237.json'
    """
    if _figures.is_off():
        return None
    path = write_new_file(folder, kind, ".json",
                          json.dumps(_for_json(dict(report)), indent=2, ensure_ascii=False) + "\n")
    say(logging.INFO, words("report written to ", "报告已保存: ") + path)
    return path


def labels_of(pkg: Optional[str], version: Optional[str], knowledge_type: Optional[str],
              precision: Optional[str]) -> Dict[str, Optional[str]]:
    """What a report is labelled with.

    >>> labels_of("matplotlib", "3.8.0", "code", "fp16")["pkg"]
    'matplotlib'
    """
    return {"pkg": pkg, "version": version, "knowledge_type": knowledge_type, "precision": precision}


# ---- what a training holds

def _state_bytes(optimizer: Any) -> int:
    return _model.tensors_bytes(value for state in optimizer.state.values() for value in state.values() if hasattr(value, "numel"))


def analyze_training(trained: Trained, name: str = "trained_model") -> Dict[str, Any]:
    """analyze_model(), and in its summary what training holds besides: gradients and the optimizer's state.

    >>> analyze_training(trained)["summary"]["optimizer_mb"]
    0.22
    """
    found = analyze_model(trained.model, name)
    if _figures.is_off():
        found["summary"].update(dict.fromkeys(("model_mb", "gradient_mb", "optimizer_mb"), math.nan))
        return found
    gradients = _model.tensors_bytes(p.grad for p in trained.model.parameters() if p.grad is not None)
    state = _state_bytes(trained.optimizer)
    found["summary"].update(model_mb=found["memory_mb"], gradient_mb=gradients / MB, optimizer_mb=state / MB,
                            total_memory_mb=(found["bytes"] + gradients + state) / MB)
    return found


def _model_issues(analysis: Dict[str, Any]) -> List[Dict[str, Any]]:
    large = [{"type": "large_parameter", "name": row["name"], "memory_mb": row["memory_mb"],
              "message": _large_text(row)} for row in analysis["large_parameters"]]
    wrong = [{"type": f"{entry['kind'].lower()}_parameter", "name": entry["name"], "index": entry["index"],
              "message": _not_finite_text(entry)} for entry in analysis["not_finite"]]
    return large + wrong


# ---- one training

class _Debugged:
    """A training in stages; each step is a snapshot that is looked at for leaks."""

    def __init__(self, config: LoraConfig, folder: str):
        self.config, self.stages = config, TrainingProfiler()
        self.debugger = MemoryDebugger(folder)
        self.report: Dict[str, Any] = {"creation_analysis": None, "training_analysis": None, "memory_issues": []}

    def _after_step(self, step: int, loss: float) -> None:
        if step > 0 and not _figures.is_off():  # in the first step gradients and the optimizer's state come
            self.debugger._keep(_take(f"step_{step}"))
            self.debugger._check_in_time()

    def train(self, dataloader: Optional[Iterable[Any]]) -> Any:
        stage, report = self.stages.profile_stage, self.report
        self.config = settled(self.config)
        window = _window(pick_device(self.config.device))
        model = stage("model_creation", build_model, self.config)
        report["creation_analysis"] = analyze_model(model, "lora_model")
        data = stage("data_loading", lambda: make_data(self.config, model) if dataloader is None else dataloader)
        optimizer = stage("optimizer_setup", make_optimizer, model, self.config)
        losses = stage("training", train, model, data, optimizer, self.config, Hooks(after_step=self._after_step))
        report.update(losses=losses, peak_mb=_peak_mb(window),
                      gradient_analysis=check_gradients(model, is_first_step=len(losses) == 1))
        self.config = self.config.with_({"num_steps": len(losses)})
        report["training_analysis"] = analyze_training(Trained(model, optimizer, losses, self.config))
        report["memory_issues"] = self._issues()
        return model

    def _issues(self) -> List[Dict[str, Any]]:
        if _figures.is_off():
            return []
        if self.debugger.memory_history:
            self.debugger._check_memory_anomalies()
        return (_model_issues(self.report["training_analysis"]) +
                self.report["gradient_analysis"]["issues"] + self.debugger.past_issues)


def _window(device: Any) -> Optional[_figures.Window]:
    if _figures.is_off():
        return None
    return _figures.Window(_figures.HOST if device.type == "cpu" else _figures.CARD + (device.index or 0))


def _peak_mb(window: Optional[_figures.Window]) -> Optional[float]:
    """Beyond what was there before it."""
    peak = None if window is None else window.peak()
    return None if peak is None or window.before is None else (peak - window.before) / MB


def debug_lora_training(config: Any = None, dataloader: Optional[Iterable[Any]] = None, precision: Optional[str] = None,
                        pkg: Optional[str] = None, version: Optional[str] = None, knowledge_type: Optional[str] = None,
                        log_dir: str = LOG_DIR) -> Tuple[Any, Dict[str, Any]]:
    """Train (one pass over the dataloader, or num_steps of the config; without a dataloader on random tokens), and say
    what it took: the trained model and a dict with `creation_analysis` (the model as made),
    `training_analysis` (its summary counts gradients and the optimizer's state too), `memory_issues`, `stages`,
    `losses`, `peak_mb`, `gradient_analysis`, the labels, `log_file`, and `report_file`, where the same is written. What
    the training raises goes through, after the report is written with it as `error`.

    >>> trained_model, results = debug_lora_training(config, dataloader, "fp16", "matplotlib", "3.8.0", "code")
    >>> results["training_analysis"]["summary"]["total_memory_mb"]
    19.54
    """
    _figures.need_torch("debug_lora_training")
    config = LoraConfig.of(config)
    if precision is not None:
        config = config.with_({"precision": precision})
    folder = log_folder(log_dir, pkg, version)
    debugged, error = _Debugged(config, folder), None
    report = debugged.report
    report.update(labels_of(pkg, version, knowledge_type, precision or config.precision))
    try:
        return debugged.train(dataloader), report
    except Exception as reason:
        error = f"{type(reason).__name__}: {reason}"
        raise
    finally:
        report.update(stages=debugged.stages.generate_training_report(), config=debugged.config.to_dict(), error=error,
                      precision_used=debugged.config.precision, run=tidemark.run, log_file=debugged.debugger.log_file)
        report["report_file"] = write_report(folder, "training_debug", report)


# ---- configurations

def _trial(config: LoraConfig, window: Optional[_figures.Window]) -> Dict[str, Any]:
    """Built, trained, measured; it is all given back when this returns."""
    start, helped = time.monotonic(), helped_s()
    trained = run(config)
    duration_s = time.monotonic() - start - (helped_s() - helped)
    model = trained.model
    parameters = {id(p): p for p in model.parameters()}.values()
    total, trainable = sum(p.numel() for p in parameters), sum(p.numel() for p in parameters if p.requires_grad)
    peak = _peak_mb(window)
    return {"memory_mb": math.nan if peak is None else peak,
            "model_mb": sum(part.bytes for part in _model.parts_of(model)) / MB,
            "gradient_mb": _model.tensors_bytes(p.grad for p in parameters if p.grad is not None) / MB,
            "optimizer_mb": _state_bytes(trained.optimizer) / MB, "total_params": total, "trainable_params": trainable,
            "param_efficiency": 100.0 * trainable / total, "loss": trained.losses[-1],
            "duration_s": duration_s, "config": trained.config.to_dict(), "error": None}


def _survived(config: LoraConfig, window: Optional[_figures.Window]) -> Dict[str, Any]:
    """The same; one that does not fit has memory_mb inf and says why."""
    try:
        return _trial(config, window)
    except RuntimeError as reason:
        if not is_out_of_memory(reason):
            raise
        return _unmeasured(config, math.inf, str(reason))


def _unmeasured(config: LoraConfig, memory_mb: float, error: Optional[str]) -> Dict[str, Any]:
    return {"memory_mb": memory_mb, "model_mb": None, "gradient_mb": None, "optimizer_mb": None, "total_params": None,
            "trainable_params": None, "param_efficiency": None, "loss": None, "duration_s": None,
            "config": config.to_dict(), "error": error}


def debug_memory_with_different_configs(base_config: Any, variations: Mapping[str, Mapping[str, Any]], *,
                                        num_steps: int = 1, log_dir: Optional[str] = None) -> Dict[str, Dict[str, Any]]:
    """Each variation of the base, built and trained for a step, and given back before the next: `memory_mb` is the
    most that it had allocated at once (inf where it ran out of memory: `error` has torch's message; nan where that is
    not known, with TIDEMARK_OFF on the CPU; with TIDEMARK=0 nothing is trained), beside
    `model_mb`, `gradient_mb`, `optimizer_mb`, `trainable_params`, `param_efficiency` and more.

    >>> results = debug_memory_with_different_configs(base_config, {"small_r": {"r": 8, "alpha": 16}})
    >>> results["small_r"]["memory_mb"]
    53.4
    """
    base = LoraConfig.of(base_config)
    configs = changed_configs(base.with_({"num_steps": num_steps}), variations)
    if _figures.is_off():
        return {name: _unmeasured(config, math.nan, None) for name, config in configs.items()}
    _figures.need_torch("debug_memory_with_different_configs")
    results = {}
    for name, config in configs.items():
        _begin_alike()
        say(logging.INFO, words("configuration: ", "配置: ") + f"{name} {settings_of(settings_of(variations)[name])}")
        results[name] = _survived(config, _window(pick_device(config.device)))
    _begin_alike()
    _say_configs(results)
    if log_dir is not None:
        write_report(log_dir, "config_comparison", {"results": results, "run": tidemark.run})
    return results


def _begin_alike() -> None:
    """No configuration finds what one before has left: neither torch's cache, nor cuBLAS' workspaces, which stay
    allocated and would be counted for the first alone."""
    torch = _figures.torch_or_none()
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None and _figures.is_in_use(torch):
        torch.cuda.synchronize()
        clear()
    _figures.give_back()


def figure_text(value: Optional[float], unit: str = "") -> str:
    """With two digits behind the point; what is not a number (TIDEMARK=0, TIDEMARK_OFF on the CPU) was not measured.

    >>> figure_text(math.nan)
    'not measured'
    """
    if value is None or math.isnan(value):
        return words("not measured", "未测量")
    return f"{value:.2f}{unit}"


def _say_configs(results: Mapping[str, Mapping[str, Any]]) -> None:
    say(logging.INFO, words("configurations, by memory at the peak", "配置内存比较 (峰值)"))
    for name, found in sorted(results.items(), key=lambda item: item[1]["memory_mb"]):
        if found["error"] is not None:
            say(logging.WARNING, f"  {padded(name, NAME_COLUMNS)} " + words("out of memory: ", "内存不足: ") +
                found["error"].splitlines()[0])
            continue
        share = words("trainable", "可训练")
        say(logging.INFO, f"  {padded(name, NAME_COLUMNS)} {figure_text(found['memory_mb'], ' MB'):>13}  "
            f"{found['trainable_params']:,} {share} ({found['param_efficiency']:.2f}%)")
