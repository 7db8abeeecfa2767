# SPDX-License-Identifier: MIT
"""How the memory of a LoRA training grows, configuration by configuration: S4's command over `tidemark sweep`.

    python -m tidemark.sweep --seq_lengths 128 256 512 --batch_sizes 8 16 32 \\
        --max_physical_batch_sizes 1 2 4 --lora_ranks 8 16 --results_dir ./memory_results --num_steps 5
    python -m tidemark.sweep --detailed --seq_lengths 128 256 --batch_sizes 8 16 \\
        --max_physical_batch_sizes 1 2 --results_dir ./detailed_results --num_steps 3

This finds out what can be run here (the model, the device, the token), says so, and becomes `tidemark sweep`, which
runs `python -m tidemark.sweep_training` once a configuration and writes the results.
"""
import argparse
import importlib.util
import json
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional

from . import _hub, _library
from ._cards import Device, device_of
from ._lora_config import PRECISIONS, LoraConfig, Parser
from ._lora_model import ModelError, shape_of
from .sweep_training import SweepError, add_training_arguments, bytes_of, privacy_of, whole

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
#: What S4's two commands have in its documentation.
SIZES = {"seq_lengths": ([128, 256, 512], [128, 256]), "batch_sizes": ([8, 16, 32], [8, 16]),
         "max_physical_batch_sizes": ([1, 2, 4], [1, 2]), "lora_ranks": ([8, 16], [8]),
         "results_dir": ("./memory_results", "./detailed_results"), "num_steps": (5, 3)}
DP_SGD = {"off": "no DP-SGD", "opacus": "DP-SGD by opacus", "builtin": "DP-SGD by the built-in engine"}
REDACT = ["--redact", "env:HF_TOKEN"]
#: A list of ours, and the parameter that it is of.
PARAMETERS = {"seq_lengths": "seq_length", "batch_sizes": "batch_size",
              "max_physical_batch_sizes": "max_physical_batch_size", "lora_ranks": "lora_rank"}
SHAPE = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
         "vocab_size")
EXAMPLES = """examples:
  python -m tidemark.sweep --seq_lengths 128 256 512 --batch_sizes 8 16 32 \\
      --max_physical_batch_sizes 1 2 4 --lora_ranks 8 16 --results_dir ./memory_results --num_steps 5
      memory_profile_results.json, memory_profile_summary.csv, memory_*.png, index.html in ./memory_results
  python -m tidemark.sweep --detailed --seq_lengths 128 256 --batch_sizes 8 16 --max_physical_batch_sizes 1 2
      module by module and operation by operation: detailed_*, operation_level_breakdown.png too
  python -m tidemark.sweep --model_name ./my-llama --ranks 4 --privacy off --capacity 24GiB
      a model of your own, without DP-SGD, each configuration over four GPUs
  python -m tidemark.sweep --results_dir ./memory_results --resume
      go on after an interruption
"""


# ---- arguments

def _time(text: str) -> str:
    """A number by itself is seconds."""
    return text + "s" if text.replace(".", "", 1).isdigit() else text


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m tidemark.sweep", usage="python -m tidemark.sweep [options]", epilog=EXAMPLES,
        description="Train each configuration of a grid for a few steps, survive those that do not fit, and show where "
                    "the memory goes and how it grows. Any other program: tidemark sweep --help.")
    what = parser.add_argument_group("what is swept")
    for name, text in (("seq_lengths", "tokens a sample (128 256 512)"), ("batch_sizes", "samples a step (8 16 32)"),
                       ("max_physical_batch_sizes", "samples computed at once (1 2 4); more than the batch is skipped"),
                       ("lora_ranks", "rank of the adapters (8 16)")):
        what.add_argument("--" + name, nargs="+", type=whole, default=None, metavar="N", help=text)
    what.add_argument("--num_steps", type=whole, default=None, metavar="N",
                      help="steps of each configuration (5)")
    what.add_argument("--repeats", type=whole, default=None, metavar="N", help="run each that often (1)")
    what.add_argument("--detailed", action="store_true", help="by module and operation too: "
                      "detailed_memory_results.json, detailed_memory_analysis.png, operation_level_breakdown.png")
    _add_model(parser)
    _add_running(parser)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("the training")
    model.add_argument("--model_name", default=None, metavar="NAME",
                       help=f"a name on the hub or a folder ({MODEL})")
    model.add_argument("--token", default=None, metavar="TOKEN",
                       help="of the hub, for gated models; also read from HF_TOKEN. It is kept out of all files")
    model.add_argument("--precision", choices=PRECISIONS, default=None,
                       help="of the frozen weights (bf16 on a GPU, fp32 on the CPU)")
    model.add_argument("--target_modules", default=None, metavar="NAMES", help="layers with adapters (q_proj,v_proj)")
    model.add_argument("--gradient_checkpointing", action="store_true", help="compute layers again in backward")
    add_training_arguments(model)
    shape = parser.add_argument_group("a Llama of your own with random weights, instead of --model_name")
    default = LoraConfig()
    for name in SHAPE:
        shape.add_argument("--" + name, type=whole, default=None, metavar="N", help=f"({getattr(default, name)})")


def _add_running(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running it")
    running.add_argument("--results_dir", default=None, metavar="FOLDER",
                         help="./memory_results, with --detailed ./detailed_results")
    running.add_argument("--devices", default=None, metavar="LIST",
                         help="one configuration on each of these GPUs at once: 0,1 or all")
    running.add_argument("--jobs", type=whole, default=None, metavar="N",
                         help="configurations at once on the same device (1)")
    running.add_argument("--timeout", type=_time, default=None, metavar="TIME",
                         help="end a configuration that takes longer: 300s, 10min")
    running.add_argument("--resume", action="store_true",
                         help="go on with the sweep in the results' folder, whatever else is given here")
    running.add_argument("--retry_failed", action="store_true", help="what failed or timed out there once more")
    running.add_argument("--skip_hopeless", action="store_true",
                         help="do not try what the fit so far says cannot fit")
    running.add_argument("--no_pictures", action="store_true", help="files and tables only")
    running.add_argument("--dry_run", action="store_true", help="list the configurations in order, run none")
    running.add_argument("--capacity", type=bytes_of, default=None, metavar="SIZE",
                         help="say what would fit on such a GPU: 24GiB (this device's)")


# ---- what can be run here

def _tell(text: str) -> None:
    print(f"tidemark: sweep: {text}", file=sys.stderr, flush=True)


def _gib(size: float) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def _own_shape(given: argparse.Namespace) -> Dict[str, int]:
    return {name: getattr(given, name) for name in SHAPE if getattr(given, name) is not None}


class Weights(NamedTuple):
    """Bytes of the frozen weights."""
    all: int
    of_rank: int  # on its device

    def said(self) -> str:
        return _gib(self.all) + ("" if self.of_rank == self.all else f" ({_gib(self.of_rank)} a rank)")


def _weights(name: str, precision: str, given: argparse.Namespace, device: Device) -> Optional[Weights]:
    """None: the shape is not known."""
    shape = shape_of(name)
    if shape is None:
        return None
    size = _hub.n_parameters(shape) * (4 if precision == "fp32" else 2)
    is_spread = device.is_gpu and given.ranks > 1 and given.parallel == "fsdp"
    return Weights(size, size // given.ranks if is_spread else size)


def _check_host(name: str, need: Weights, device: Device, given: argparse.Namespace) -> None:
    """With FSDP each rank makes the whole model on the CPU and hands its device a part of it."""
    if need.of_rank != need.all and device.host_total is not None and need.all * given.ranks > device.host_total:
        raise SweepError(f"{name}: with FSDP each of {given.ranks} ranks makes the model in the host's memory first, "
                         f"{given.ranks} times {_gib(need.all)}, and there is {_gib(device.host_total)}; take fewer "
                         "--ranks or a smaller model")


def _model(given: argparse.Namespace, device: Device, precision: str, token: Optional[str]) -> Dict[str, Any]:
    """The training's arguments for its model, and what its environment must have; says which model it is."""
    own = _own_shape(given)
    if own:
        if given.model_name is not None:
            raise SweepError(f"--{next(iter(own))} is for a model of your own, instead of --model_name; give one or "
                             "the other")
        LoraConfig(**own)
        return {"said": "a Llama of the given shape, with random weights", "title": "a Llama of its own shape",
                "arguments": own, "environment": {}}
    name = given.model_name or MODEL
    need = _weights(name, precision, given, device)
    is_too_large = need is not None and device.total is not None and need.of_rank > 0.95 * device.total
    if given.model_name is None and (is_too_large or not device.is_gpu):
        where = f"{device.name} has {_gib(device.total)}" if device.is_gpu else "there is no GPU here"
        small = {field: getattr(LoraConfig(), field) for field in SHAPE}
        return {"said": f"{MODEL} has weights of {need.said()} and {where}: a small Llama of the same form stands in "
                        f"({_hub.n_parameters(small) / 1e6:.1f} million parameters, hidden size "
                        f"{small['hidden_size']}, {small['num_hidden_layers']} layers, random weights). "
                        "--model_name insists",
                "title": "a small Llama", "arguments": small, "environment": {}}
    if is_too_large:
        raise SweepError(f"{name}: its weights alone take {need.said()} in {precision}, and {device.name} has "
                         f"{_gib(device.total)}; take a smaller model, --precision bf16, or more --ranks with FSDP")
    if need is not None:
        _check_host(name, need, device, given)
    source = _hub.source_of(name, token)
    return {"said": source.said + ("" if device.is_gpu else ". On the CPU this can take long"),
            "title": name, "arguments": {"model_name": name}, "environment": source.environment}


def _settled(given: argparse.Namespace) -> None:
    """What was not given, as S4's documentation has it."""
    for name, (base, detailed) in SIZES.items():
        if getattr(given, name) is None:
            setattr(given, name, detailed if given.detailed else base)
    for name in PARAMETERS:
        setattr(given, name, sorted(set(getattr(given, name))))


def _check(given: argparse.Namespace) -> None:
    smallest, largest = given.max_physical_batch_sizes[0], given.batch_sizes[-1]
    if smallest > largest:
        raise SweepError(f"every max_physical_batch_size is larger than every batch_size ({smallest} > {largest}): "
                         "nothing is left to run")
    if given.seq_lengths[0] < 2:
        raise SweepError("--seq_lengths: at least 2, as each token is to say the next one")
    given.privacy = privacy_of(given.privacy, given.parallel if given.ranks > 1 else None)
    if importlib.util.find_spec("torch") is None:
        raise SweepError("torch is not installed: pip install torch (tidemark sweep runs any other program)")


def _check_device(given: argparse.Namespace, device: Device) -> None:
    if given.limit_memory is not None and not device.is_gpu:
        raise SweepError("--limit_memory is for GPUs, and there is none here")
    n = device.n_gpus
    if given.devices is not None and n == 0:
        raise SweepError("--devices: there is no GPU here; for several at once on the CPU: --jobs N")
    if given.ranks > 1 and device.is_gpu and given.ranks > n:
        raise SweepError(f"--ranks {given.ranks}: each rank needs a GPU of its own, and there "
                         f"{'is one' if n == 1 else f'are {n}'}")


# ---- the sweep

def _training(given: argparse.Namespace, model: Dict[str, Any], precision: str) -> List[str]:
    """The command of a configuration."""
    words = [sys.executable, "-m", "tidemark.sweep_training"]
    for parameter in PARAMETERS.values():
        words += [f"--{parameter}", "{" + parameter + "}"]
    options = {"num_steps": given.num_steps, **model["arguments"], "precision": precision, "privacy": given.privacy,
               "max_grad_norm": given.max_grad_norm, "noise_multiplier": given.noise_multiplier,
               "target_modules": given.target_modules, "limit_memory": given.limit_memory}
    if given.ranks > 1:
        options.update(ranks=given.ranks, parallel=given.parallel)
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return words + (["--gradient_checkpointing"] if given.gradient_checkpointing else [])


def command(program: str, given: argparse.Namespace, training: List[str], title: str) -> List[str]:
    """`tidemark sweep ...` for these arguments."""
    words = [program, "sweep"]
    for name, parameter in PARAMETERS.items():
        words += ["--param", f"{parameter}={','.join(map(str, getattr(given, name)))}"]
    words += ["--where", "max_physical_batch_size<=batch_size", "-o", given.results_dir, *REDACT, "--title", title]
    options = {"repeats": given.repeats, "jobs": given.jobs, "timeout": given.timeout,
               "devices": given.devices if given.ranks == 1 else None,  # else they are all one configuration's
               "capacity": given.capacity or given.limit_memory}
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    for name in ("detailed", "skip_hopeless", "retry_failed", "no_pictures", "dry_run"):
        if getattr(given, name):
            words.append("--" + name.replace("_", "-"))
    return [*words, "--", *training]


def _environment(token: Optional[str], more: Dict[str, str]) -> Dict[str, str]:
    """The token goes by the environment alone, which nobody writes down."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if package not in paths:
        paths.append(package)
    environment = {**os.environ, **more, "PYTHONPATH": os.pathsep.join(paths)}
    if token is not None:
        environment["HF_TOKEN"] = token
    return environment


def _cards_of_ranks(given: argparse.Namespace, device: Device) -> Dict[str, str]:
    """By their ids, so that 0,1 are the same cards as without --ranks, in whatever order CUDA counts."""
    return {device.variable: device.visible} if given.ranks > 1 and given.devices is not None else {}


# ---- a sweep that is there already

def _options(words: List[str]) -> Dict[str, str]:
    """Of a configuration's command, by their names; the interpreter and the module are 'command'."""
    start = next((i for i, word in enumerate(words) if word.startswith("--")), len(words))
    found, name = {"command": " ".join(words[:start])}, ""
    for word in words[start:]:
        if word.startswith("--"):
            name = word
            found[name] = "on"
        else:
            found[name] = word
    return found


def _told(header: Dict[str, Any]) -> Dict[str, str]:
    """What makes a sweep this one, by the names of this command's options."""
    lists = {parameter: "--" + name for name, parameter in PARAMETERS.items()}
    told = {lists.get(param["name"], param["name"]): " ".join(param["values"]) for param in header["params"]}
    return {**told, **_options(header["command"]), "--repeats": str(header["repeats"])}


def _check_same(given: argparse.Namespace, training: List[str]) -> None:
    """What a folder has already is gone on with if it is the same sweep; else what differs is said. A journal that
    cannot be read is the program's to complain about."""
    try:
        with open(os.path.join(given.results_dir, "sweep.jsonl"), encoding="utf-8") as file:
            then = _told(json.loads(file.readline()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    now = _told({"params": [{"name": parameter, "values": list(map(str, getattr(given, name)))}
                            for name, parameter in PARAMETERS.items()],
                 "command": training, "repeats": given.repeats or 1})
    differs = [f"{name} was {then.get(name, 'not given')}, is {now.get(name, 'not given')}"
               for name in {**then, **now} if then.get(name) != now.get(name)]
    if differs:
        raise SweepError(f"{given.results_dir} belongs to another sweep: {'; '.join(differs)}. Give another --results_dir, "
                         "or go on with that one by --resume")


def _skipped(given: argparse.Namespace) -> None:
    pairs = [f"{physical} > {batch}" for batch in given.batch_sizes for physical in given.max_physical_batch_sizes
             if physical > batch]
    if pairs:
        _tell(f"skipped, as max_physical_batch_size > batch_size: {', '.join(pairs)}")


def _become(program: str, words: List[str], environment: Dict[str, str]) -> int:
    sys.stdout.flush()
    os.execve(program, words, environment)
    return 1  # not reached


def _go_on(program: str, given: argparse.Namespace, token: Optional[str]) -> int:
    """All is in the journal. What it needs of the hub was fetched before it began."""
    words = [program, "sweep", "--resume", given.results_dir, *REDACT]
    return _become(program, words + (["--retry-failed"] if given.retry_failed else []),
                   _environment(token, {"HF_HUB_OFFLINE": "1"}))


def main(arguments: Optional[List[str]] = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    program = _library.program()
    if program is None:
        sys.exit("tidemark: the program is not found; build it (./dev build) or put it on the PATH")
    _settled(given)
    token = given.token if _hub.is_token(given.token) else None
    if given.token is not None and token is None:
        _tell("the token is the documentation's placeholder; going on without one")
    if given.resume:
        return _go_on(program, given, token)
    try:
        _check(given)
        device = device_of(program, given.devices)
        _check_device(given, device)
        precision = given.precision or ("bf16" if device.is_gpu else "fp32")
        model = _model(given, device, precision, token or os.environ.get("HF_TOKEN"))
        training = _training(given, model, precision)
        _check_same(given, training)
    except (SweepError, ModelError, ValueError) as reason:
        parser.error(str(reason))
    _tell(f"model: {model['said']}")
    _tell(DP_SGD[given.privacy])
    _skipped(given)
    title = f"LoRA of {model['title']}, {precision}, " + DP_SGD[given.privacy]
    return _become(program, command(program, given, training, title),
                   _environment(token, {**model["environment"], **_cards_of_ranks(given, device)}))


if __name__ == "__main__":
    sys.exit(main())
