# SPDX-License-Identifier: MIT
"""`python -m tidemark.debug`: what a LoRA training takes, from its model alone to configurations compared."""
import argparse
import json
import math
import sys
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

import tidemark

from . import _figures
from ._log_file import log_in
from ._lora_config import Parser, add_arguments
from ._words import words
from .lora_training import (Batch, LoraConfig, as_batch, build_model, changed_configs, checked_config, is_expected,
                            make_data, make_optimizer, pick_device, settled)

SHOWN = 10  # issues; all are in the report
VARIATIONS = {"small_r": {"r": 8, "alpha": 16}, "medium_r": {"r": 16, "alpha": 32}, "large_r": {"r": 32, "alpha": 64}}

EXAMPLES = """examples:
  python -m tidemark.debug --debug_level model_only --pkg matplotlib --version 3.8.0
  python -m tidemark.debug --debug_level full --pkg matplotlib --version 3.8.0 --precision fp16
  python -m tidemark.debug --debug_level custom --config lora.json --device cuda:1
  python -m tidemark.debug --debug_level comparison --variations '{"r8": {"r": 8}, "r64": {"r": 64}}'
"""


class Job:
    """A level's arguments, and where its report goes."""

    def __init__(self, config: LoraConfig, given: argparse.Namespace):
        from .train_with_memory_debug import labels_of, log_folder
        self.config, self.given = config, given
        self.labels = labels_of(given.pkg, given.version, given.knowledge_type, config.precision)
        self.folder = log_folder(given.log_dir, given.pkg, given.version)

    def settle(self) -> None:
        """The device and the precision, before any stage."""
        self.config = settled(self.config)

    def write(self, report: Dict[str, Any]) -> None:
        from .train_with_memory_debug import write_report
        write_report(self.folder, self.given.debug_level,
                     {"debug_level": self.given.debug_level, **self.labels, "precision_used": self.config.precision,
                      "config": self.config.to_dict(), "run": tidemark.run, **report})


def _print(english: str, chinese: str, value: Any) -> None:
    print(words(english, chinese), value)


# ---- the levels

def model_only(job: Job) -> None:
    from .quick_memory_debug import analyze_model
    from .train_with_memory_debug import figure_text
    job.settle()
    analysis = analyze_model(build_model(job.config), "lora_model")
    _print("model, MB:", "模型内存占用:", figure_text(analysis["memory_mb"], words("", " MB")))
    _print("trainable share:", "参数效率:", figure_text(analysis["param_efficiency"], "%"))
    job.write({"creation_analysis": analysis})


def full(job: Job) -> None:
    from .train_with_memory_debug import debug_lora_training, figure_text
    given = job.given
    _, results = debug_lora_training(job.config, None, job.labels["precision"], given.pkg, given.version,
                                     given.knowledge_type, given.log_dir)
    created, trained = results["creation_analysis"], results["training_analysis"]
    _print("model as made, MB:", "模型创建内存占用:", figure_text(created["summary"]["total_memory_mb"]))
    _print("after training, MB:", "训练后内存占用:", figure_text(trained["summary"]["total_memory_mb"]))
    _print("at the peak, MB:", "峰值内存占用:", figure_text(results["peak_mb"]))
    issues = [issue["message"] for issue in results["memory_issues"]]
    more = [words(f"and {len(issues) - SHOWN} more", f"另有 {len(issues) - SHOWN} 个")] if len(issues) > SHOWN else []
    _print("issues:", "检测到的内存问题:", "".join(f"\n  {line}" for line in issues[:SHOWN] + more) or words("none", "无"))


class _Stages:
    """A step of training, cut into functions that a profiler can call one by one."""

    def __init__(self, job: Job):
        self.job = job
        self.loss: Any = None

    def make_model(self) -> None:
        self.model = build_model(self.job.config)

    def load_data(self) -> None:
        config, device = self.job.config, pick_device(self.job.config.device)
        batch = as_batch(next(iter(make_data(config, self.model))))
        self.batch: Batch = {name: tensor[:config.physical_batch_size].to(device) for name, tensor in batch.items()}

    def make_optimizer(self) -> None:
        self.optimizer = make_optimizer(self.model, self.job.config)

    def forward(self) -> None:
        self.loss = self.model(**self.batch).loss

    def backward(self) -> None:
        self.loss.backward()

    def step(self) -> None:
        self.optimizer.step()


def custom(job: Job) -> None:
    from .gradient_checks import check_gradients
    from .training_stages import TrainingProfiler
    job.settle()
    profiler, stages = TrainingProfiler(), _Stages(job)
    tidemark.step()
    for name, function in (("model_creation", stages.make_model), ("data_loading", stages.load_data),
                           ("optimizer_setup", stages.make_optimizer), ("forward", stages.forward),
                           ("backward", stages.backward)):
        profiler.profile_stage(name, function)
    gradients = check_gradients(stages.model)
    profiler.profile_stage("optimizer_step", stages.step)
    report = profiler.generate_training_report()
    _print("the stage that leaves most:", "内存占用最大的阶段:", report["largest_stage"] or words("not measured", "未测量"))
    job.write({"stages": report, "gradient_analysis": gradients})


def comparison(job: Job) -> None:
    from .train_with_memory_debug import debug_memory_with_different_configs
    results = debug_memory_with_different_configs(job.config, job.given.variations or VARIATIONS)
    best, found = min(results.items(), key=lambda item: item[1]["memory_mb"])
    if math.isnan(found["memory_mb"]):
        print(words("least memory: not measured", "最优配置: 未测量"))
    elif found["error"] is None:
        print(words(f"least memory: {best}, {found['memory_mb']:.2f} MB",
                    f"最优配置: {best}, 内存占用: {found['memory_mb']:.2f} MB"))
    else:
        print(words("none of them fits", "没有可用的配置"))
    job.write({"results": results})


class Level(NamedTuple):
    """What --debug_level names."""
    run: Callable[[Job], None]
    text: str


LEVELS = {
    "model_only": Level(model_only, "make the model and look at it: each parameter, large ones, NaN and Inf"),
    "full": Level(full, "train: the model before and after, gradients, memory step by step, what is wrong"),
    "custom": Level(custom, "stage by stage (model, data, optimizer, forward, backward, step): what each leaves"),
    "comparison": Level(comparison, "each of some configurations, built and trained for a step: which needs least"),
}


# ---- the command

def _variations(text: str) -> Mapping[str, Mapping[str, Any]]:
    """JSON, or the name of a file with it."""
    try:
        if not text.lstrip().startswith("{"):
            with open(text, encoding="utf-8") as file:
                text = file.read()
        found = json.loads(text)
    except (OSError, ValueError) as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None
    if not isinstance(found, dict) or not found or not all(isinstance(entry, dict) for entry in found.values()):
        raise argparse.ArgumentTypeError('wanted: {"name": {"r": 8}, ...}')
    return found


def _parser(program: str) -> argparse.ArgumentParser:
    levels = "\n".join(f"  {name:<12} {level.text}" for name, level in LEVELS.items())
    parser = Parser(
        prog=program, usage="%(prog)s [--debug_level LEVEL] [--pkg NAME] [--version V] [options]",
        description=f"What a LoRA training takes.\n\nlevels:\n{levels}\n\n"
                    "Without a model or a config: a small Llama with random weights, rank 8.", epilog=EXAMPLES)
    parser.add_argument("--debug_level", choices=LEVELS, default="full", help="see above (full)")
    parser.add_argument("--pkg", help="label: kept in the report and in its path")
    parser.add_argument("--version", help="label, likewise")
    parser.add_argument("--knowledge_type", help="label, kept in the report")
    parser.add_argument("--log_dir", default="logs/memory_debug", help="folder of reports and the log (logs/memory_debug)")
    parser.add_argument("--variations", type=_variations, metavar="JSON",
                        help="for comparison: text or a file, {\"name\": {\"r\": 8}, ...} (ranks 8, 16, 32)")
    add_arguments(parser.add_argument_group("training"))
    return parser


def main(arguments: Optional[List[str]] = None, program: str = "python -m tidemark.debug") -> int:
    """program: what the user has called, for --help and errors."""
    parser = _parser(program)
    given = parser.parse_args(arguments)
    if _figures.torch_or_none() is None:
        sys.exit("tidemark.debug: torch is not installed: pip install torch")
    try:
        job = Job(checked_config(given), given)
        changed_configs(job.config, given.variations or {})
    except (OSError, TypeError, ValueError) as reason:
        parser.error(str(reason))
    has_own = given.debug_level == "full"
    log_file = None if has_own or _figures.is_off() else log_in(job.folder, "memory_debug")
    try:
        LEVELS[given.debug_level].run(job)
    except (OSError, RuntimeError) as reason:
        if not isinstance(reason, OSError) and not is_expected(reason):
            raise
        print(f"tidemark.debug: {reason}", file=sys.stderr)
        return 1
    finally:
        if log_file is not None:
            log_file.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
