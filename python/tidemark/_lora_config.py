# SPDX-License-Identifier: MIT
"""What a LoRA training is given: LoraConfig, from settings of any kind, a JSON file, or arguments of a command."""
import argparse
import dataclasses
import difflib
import json
import math
import numbers
import operator
import os
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ._settings import settings_of
from ._words import words

PRECISIONS = ("fp32", "fp16", "bf16")

#: Other names that people give to the same.
ALIASES = {"lora_rank": "r", "lora_r": "r", "rank": "r", "lora_alpha": "alpha", "lora_dropout": "dropout",
           "lr": "learning_rate", "model": "model_name", "model_name_or_path": "model_name", "base_model": "model_name",
           "max_length": "seq_length", "max_seq_length": "seq_length", "seq_len": "seq_length",
           "physical_batch_size": "max_physical_batch_size", "lora_target_modules": "target_modules"}


@dataclasses.dataclass
class LoraConfig:
    """A training. Sizes of the model count where no model is named.

    >>> LoraConfig.of({"r": 8, "alpha": 16}).r
    8
    """
    model_name: Optional[str] = None  # a folder or a name on the hub; None: the small one that is built in
    hidden_size: int = 256
    intermediate_size: int = 688
    num_hidden_layers: int = 4
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    vocab_size: int = 2048
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    tie_word_embeddings: bool = False
    r: int = 8
    alpha: float = 16
    dropout: float = 0.0
    target_modules: Tuple[str, ...] = ("q_proj", "v_proj")
    precision: str = "fp32"  # of the frozen weights and of what is computed; adapters are fp32
    device: Optional[str] = None  # None: the GPU of this rank, or the CPU where there is none
    seq_length: int = 128
    batch_size: int = 8
    max_physical_batch_size: Optional[int] = None  # None: the whole batch at once
    num_steps: Optional[int] = None  # None: one pass over the dataloader that is given; of random tokens 5
    learning_rate: float = 1e-4
    weight_decay: float = 0.0
    gradient_checkpointing: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            setattr(self, name, _plain_number(value))
        if isinstance(self.target_modules, str):
            self.target_modules = tuple(self.target_modules.split(","))
        self.target_modules = tuple(self.target_modules)
        self._check()

    def _check(self) -> None:
        whole = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                 "vocab_size", "r", "seq_length", "batch_size")
        whole += tuple(name for name in ("max_physical_batch_size", "num_steps") if getattr(self, name) is not None)
        for name in whole:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is to be a whole number from 1 on, not {value!r}")
        for name in ("alpha", "dropout", "learning_rate", "weight_decay", "rms_norm_eps", "rope_theta"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                raise ValueError(f"{name} is to be a number from 0 on, not {value!r}")
        if self.dropout >= 1:
            raise ValueError(f"dropout is to be less than 1, not {self.dropout!r}")
        if self.seq_length < 2:
            raise ValueError("seq_length is to be at least 2: each token is to say the next one")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision is one of {', '.join(PRECISIONS)}, not {self.precision!r}")
        if self.physical_batch_size > self.batch_size:
            raise ValueError(f"max_physical_batch_size ({self.physical_batch_size}) is larger than batch_size "
                             f"({self.batch_size})")
        if self.hidden_size % (2 * self.num_attention_heads):
            raise ValueError(f"hidden_size ({self.hidden_size}) is to be an even multiple of num_attention_heads "
                             f"({self.num_attention_heads})")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(f"num_attention_heads ({self.num_attention_heads}) is to be a multiple of "
                             f"num_key_value_heads ({self.num_key_value_heads})")

    @property
    def physical_batch_size(self) -> int:
        """Samples that are computed at once."""
        return self.max_physical_batch_size or self.batch_size

    def with_(self, changes: Any) -> "LoraConfig":
        """The same but for these; a name that is not known is an error.

        >>> LoraConfig(r=8).with_({"lora_rank": 16}).r
        16
        """
        return dataclasses.replace(self, **_known(settings_of(changes)))

    def to_dict(self) -> Dict[str, Any]:
        """For JSON."""
        return {**dataclasses.asdict(self), "target_modules": list(self.target_modules)}

    @classmethod
    def of(cls, given: Union["LoraConfig", Mapping[str, Any], str, os.PathLike, None, Any]) -> "LoraConfig":
        """From another, a JSON file's path, or settings of any kind (_settings.py). A name that is not known is an error
        that names the nearest one; None is the default, as for arguments of a command that were not given.

        >>> LoraConfig.of("config.json").batch_size
        8
        """
        if isinstance(given, cls):
            return given
        if given is None:
            return cls()
        file = f"{os.fspath(given)}: " if isinstance(given, (str, os.PathLike)) else ""
        settings = _read(given) if file else settings_of(given)
        try:
            known = _known(settings)
        except ValueError as reason:
            raise ValueError(f"config: {file}{reason}") from None
        return cls(**{name: value for name, value in known.items() if value is not None})


def _plain_number(value: Any) -> Any:
    """numpy's numbers as Python's, which JSON can write; anything else as it is."""
    if isinstance(value, (int, float)) or not isinstance(value, numbers.Real):
        return value
    return operator.index(value) if isinstance(value, numbers.Integral) else float(value)


def changed_configs(base: LoraConfig, variations: Mapping[str, Any]) -> Dict[str, LoraConfig]:
    """The base with each of these changes, by name; ValueError and TypeError say in which of them something is wrong.

    >>> changed_configs(LoraConfig(r=8), {"large": {"r": 64}})["large"].r
    64
    """
    configs = {}
    for name, changes in settings_of(variations).items():
        try:
            configs[name] = base.with_(changes)
        except (TypeError, ValueError) as reason:
            raise type(reason)(words(f"variation {name!r}: ", f"变体 {name!r}: ") + str(reason)) from None
    return configs


def field_names() -> List[str]:
    return [field.name for field in dataclasses.fields(LoraConfig)]


def _known(settings: Mapping[Any, Any]) -> Dict[str, Any]:
    """By our names; ValueError names those that there are not, and one that is there twice."""
    fields, known, given = set(field_names()), {}, {}
    unknown = [name for name in settings if ALIASES.get(name, name) not in fields]
    if unknown:
        raise ValueError(words("not known: ", "未识别的项: ") + "; ".join(map(_hint, unknown)))
    for name, value in settings.items():
        field = ALIASES.get(name, name)
        if field in known and known[field] != value:
            raise ValueError(words(f"{given[field]} and {name} are the same, and have different values: ",
                                   f"{given[field]} 与 {name} 含义相同, 但取值不同: ") + f"{known[field]!r}, {value!r}")
        known[field], given[field] = value, name
    return known


def _hint(name: Any) -> str:
    """The nearest name that is known, or all of them."""
    near = difflib.get_close_matches(str(name), field_names() + list(ALIASES), 1)
    if near:
        return f"{name!r}" + words(f" (did you mean {near[0]}?)", f" (是否为 {near[0]}?)")
    return f"{name!r}" + words(" (known are: ", " (可用的项: ") + ", ".join(field_names()) + ")"


def _read(path: Union[str, os.PathLike]) -> Mapping[str, Any]:
    with open(path, encoding="utf-8") as file:
        try:
            found = json.load(file)
        except ValueError as reason:
            raise ValueError(f"{path}: not JSON: {reason}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: an object is wanted, such as {{\"r\": 8, \"alpha\": 16}}")
    return found


# ---- arguments of a command

def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One for each thing of a training; what is not given stays as the config file or the default has it."""
    def add(name: str, kind: Any, text: str, **more: Any) -> None:
        parser.add_argument(*name.split(), type=kind, default=None, help=text, **more)

    add("--config", str, "JSON file, such as {\"r\": 8, \"alpha\": 16}; arguments override it", metavar="FILE")
    add("--model --model_name", str, "a folder or a name on the hub (a small Llama with random weights)",
        dest="model_name", metavar="NAME")
    add("--precision", str, "fp32, fp16 or bf16 (fp32)", choices=PRECISIONS)
    add("--device", str, "cpu, cuda, cuda:1 ... (the GPU of this rank, else the CPU)")
    for name, text in (("seq_length", "tokens a sample (128)"), ("batch_size", "samples a step (8)"),
                       ("max_physical_batch_size", "samples computed at once (all of the batch)"),
                       ("num_steps", "steps (5)"), ("seed", "of the random numbers (0)"),
                       ("hidden_size", "of the built-in model (256)"), ("intermediate_size", "likewise (688)"),
                       ("num_hidden_layers", "likewise (4)"), ("num_attention_heads", "likewise (8)"),
                       ("num_key_value_heads", "likewise (4)"), ("vocab_size", "likewise (2048)")):
        add("--" + name, int, text, metavar="N")
    add("--lora_rank", int, "rank of the adapters (8)", dest="r", metavar="N")
    add("--lora_alpha", float, "their scale (16)", dest="alpha", metavar="X")
    add("--lora_dropout", float, "their dropout (0)", dest="dropout", metavar="X")
    add("--target_modules", str, "layers that get one (q_proj,v_proj)", metavar="NAMES")
    add("--learning_rate", float, "AdamW's (0.0001)", metavar="X")
    parser.add_argument("--gradient_checkpointing", action="store_true", default=None,
                        help="compute the layers again in backward instead of keeping them")


def config_of(arguments: argparse.Namespace) -> LoraConfig:
    """Of a command's arguments: those that were given, over the config file, over the defaults."""
    given = {name: value for name, value in vars(arguments).items() if name in field_names() and value is not None}
    return LoraConfig.of(arguments.config).with_(given)


class Parser(argparse.ArgumentParser):
    """--seq-lengths is --seq_lengths. Of words that it does not know only names of options are shown, with the nearest
    that there is: what follows one may be a token."""

    def __init__(self, **more: Any):
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **more)

    def parse_args(self, args: Any = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        given, rest = self.parse_known_args(list(map(_normal, sys.argv[1:] if args is None else args)), namespace)
        if rest:
            options = [word.partition("=")[0] for word in rest if word.startswith("-")]
            self.error("not known: " + ", ".join(map(self._option_hint, options)) if options else
                       "there are words that belong to no option")
        return given

    def _option_hint(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._option_string_actions, 1)
        return name + (f" (did you mean {near[0]}?)" if near else "")


def _normal(word: str) -> str:
    name, equals, value = word.partition("=")
    return name[:2] + name[2:].replace("-", "_") + equals + value if word.startswith("--") else word
