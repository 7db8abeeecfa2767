# SPDX-License-Identifier: MIT
"""Where the memory of a LoRA training goes: its model, its stages, its steps, and which rank to choose.

    python3 examples/lora_memory.py [LOG_DIR]

Runs on the GPU if there is one, else on the CPU. Needs torch; with a model's name in CONFIG ("model_name") also
transformers and peft. The same from a shell: python3 examples/debug_memory_usage.py --help
"""
import argparse
import math
import tempfile
from typing import Any, Dict, Optional

import tidemark
from tidemark import (analyze_model, check_gradients, debug_lora_training, debug_memory_with_different_configs,
                      memory_profiled_training)
from tidemark.lora_training import LoraConfig, build_model, make_data, make_optimizer, train

CONFIG: Dict[str, Any] = {"r": 8, "alpha": 16, "seq_length": 64, "batch_size": 4, "max_physical_batch_size": 2,
                          "num_steps": 3, "num_hidden_layers": 2}
VARIATIONS = {"small_r": {"r": 8, "alpha": 16}, "medium_r": {"r": 16, "alpha": 32}, "large_r": {"r": 32, "alpha": 64}}


def shown(value: Optional[float], form: str = ".2f", unit: str = " MB") -> str:
    """With TIDEMARK=0 nothing is measured."""
    return "not measured" if value is None or math.isnan(value) else format(value, form) + unit


def model_only() -> None:
    """What the model takes, and its largest layer."""
    analysis = analyze_model(build_model(LoraConfig.of(CONFIG)), "lora_model")
    print(f"model: {shown(analysis['memory_mb'])}; trainable: {shown(analysis['param_efficiency'], unit='%')}")
    for name, layer in sorted(analysis["layer_groups"].items(), key=lambda item: -item[1]["bytes"])[:1]:
        print(f"most in {name}: {shown(layer['memory_mb'])}")


def stage_by_stage() -> None:
    """A training of your own, in stages of your own."""
    config = LoraConfig.of(CONFIG)
    with memory_profiled_training() as profiler:
        model = profiler.profile_stage("model_creation", build_model, config)
        data = profiler.profile_stage("data_loading", make_data, config, model)
        optimizer = profiler.profile_stage("optimizer_setup", make_optimizer, model, config)
        profiler.profile_stage("training", train, model, data, optimizer, config)
        report = profiler.generate_training_report()
    gradients = check_gradients(model)
    print(f"most is left by: {report['largest_stage'] or 'not measured'}, "
          f"most is allocated at once in: {report['peak_stage'] or 'not measured'}; "
          f"norm of all gradients: {shown(gradients['total_norm'], '.2e', '')}")


def whole_training(log_dir: str) -> None:
    """The model before and after, gradients, what is wrong; all of it in a report."""
    _, results = debug_lora_training(CONFIG, None, "fp32", pkg="matplotlib", version="3.8.0", knowledge_type="code",
                                     log_dir=log_dir)
    made, held = (results[key]["summary"]["total_memory_mb"] for key in ("creation_analysis", "training_analysis"))
    issues = "; ".join(issue["message"] for issue in results["memory_issues"]) or "none"
    print(f"made: {shown(made)}, after training: {shown(held)}, at the peak: {shown(results['peak_mb'])}")
    print("issues:", issues)
    print("report:", results["report_file"] or "none")


def which_rank() -> None:
    """Each is built and trained for a step."""
    results = debug_memory_with_different_configs(CONFIG, VARIATIONS)
    best = min(results.items(), key=lambda item: item[1]["memory_mb"])
    print(f"least memory: {best[0]}, {shown(best[1]['memory_mb'])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log_dir", nargs="?", metavar="LOG_DIR", help="folder of reports (a temporary one)")
    log_dir = parser.parse_args().log_dir or tempfile.mkdtemp(prefix="debug-")
    model_only()
    stage_by_stage()
    whole_training(log_dir)
    which_rank()
    if tidemark.is_watched():
        print(f"all of it is recorded: tidemark peak {tidemark.run} --by component")


main()
