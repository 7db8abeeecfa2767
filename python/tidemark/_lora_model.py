# SPDX-License-Identifier: MIT
"""The model of a LoRA training: that of transformers and peft where a model is named, else our own."""
import contextlib
import glob
import importlib
import importlib.util
import json
import logging
import os
from typing import Any, Dict, Optional

from ._lora_config import LoraConfig
from ._words import say, words

_LLAMA_3 = {"num_key_value_heads": 8, "vocab_size": 128256, "rope_theta": 500000.0}

#: Shapes of models on the hub, for where it cannot be reached: by the beginning of their names.
SHAPES: Dict[str, Dict[str, Any]] = {
    "meta-llama/Llama-3.2-1B": {**_LLAMA_3, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
                                "num_attention_heads": 32, "tie_word_embeddings": True},
    "meta-llama/Llama-3.2-3B": {**_LLAMA_3, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28,
                                "num_attention_heads": 24, "tie_word_embeddings": True},
    "meta-llama/Llama-3.1-8B": {**_LLAMA_3, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                                "num_attention_heads": 32},
    "meta-llama/Llama-3.1-70B": {**_LLAMA_3, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
                                 "num_attention_heads": 64},
    "meta-llama/Llama-2-7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                              "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000},
    "TinyLlama/TinyLlama-1.1B": {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
                                 "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000},
}
SHAPE_KEYS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
              "vocab_size", "rms_norm_eps", "rope_theta", "tie_word_embeddings")
INSTALL = "pip install transformers peft"


class ModelError(RuntimeError):
    """A model that cannot be had, or has no place for adapters; the message says what to do."""


def build(config: LoraConfig, device: Any, dtype: Any) -> Any:
    """On the device, with adapters, in train mode."""
    model = _named(config, device, dtype) if config.model_name is not None else None
    if model is None:
        model = _built_in(config, device, dtype)
    model = _with_adapters(model, config)
    return model.train()


def import_libraries(config: LoraConfig) -> None:
    """Those by which build() makes this model."""
    names = ("transformers", "peft") if config.model_name is not None and _is_installed("transformers") else ()
    for name in names:
        if _is_installed(name):
            importlib.import_module(name)
    importlib.import_module("._llama", __package__)


def shape_used(model: Any, config: LoraConfig) -> Dict[str, Any]:
    """The sizes of the model that is trained. Those of a named one are its own, whatever the config says; what it does
    not tell is None."""
    own = getattr(getattr(model, "module", model), "config", None)  # inside FSDP or DDP
    return {key: getattr(config if config.model_name is None else own, key, None) for key in SHAPE_KEYS}


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _random_weights(what: str, chinese: str) -> None:
    say(logging.WARNING, words(f"{what}; weights are random", f"{chinese}; 使用随机权重"))


# ---- our own

def _built_in(config: LoraConfig, device: Any, dtype: Any) -> Any:
    from ._llama import LlamaForCausalLM
    if config.model_name is None:
        say(logging.INFO, words("model: a small Llama with random weights (none was named)",
                                "模型: 内置小型 Llama, 随机权重 (未指定模型)"))
    return LlamaForCausalLM(config, device=device, dtype=dtype)


def shape_of(name: str) -> Optional[Dict[str, Any]]:
    """Sizes of a model: by the config.json of a folder, or of a name that is known here; None: not known."""
    file = os.path.join(name, "config.json")
    if os.path.isfile(file):
        with open(file, encoding="utf-8") as opened:
            try:
                return _shape_in(json.load(opened), file)
            except ValueError as reason:
                raise ModelError(f"{file}: not JSON: {reason}") from None
    return next((dict(shape) for known, shape in SHAPES.items() if name.startswith(known)), None)


def _shape_in(found: Any, file: str) -> Dict[str, Any]:
    found = found if isinstance(found, dict) else {}
    missing = [key for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                               "vocab_size") if not isinstance(found.get(key), int)]
    head_size = found.get("head_dim") or 0
    if missing or (head_size and head_size * found["num_attention_heads"] != found["hidden_size"]):
        raise ModelError(f"{file}: not the shape of a Llama ({', '.join(missing) or 'head_dim'}); for other "
                                f"models: {INSTALL}")
    shape = {key: found[key] for key in SHAPE_KEYS if found.get(key) is not None}
    shape.setdefault("num_key_value_heads", found["num_attention_heads"])
    return shape


def _of_shape(config: LoraConfig, device: Any, dtype: Any, reason: str, chinese: str) -> Any:
    """A model as large as the one that was named."""
    shape = known_shape(config.model_name, reason)
    _random_weights(f"{config.model_name}: {reason}; a Llama of its shape stands in",
                    f"{config.model_name}: {chinese}; 以相同结构的 Llama 代替")
    if not _is_installed("transformers"):
        try:
            return _built_in(config.with_(shape), device, dtype)
        except ValueError as wrong:
            raise ModelError(f"{config.model_name}: {wrong}") from None
    import transformers
    return _unfilled(transformers.LlamaConfig(**shape), config, device, dtype)


# ---- the hub, and folders

def is_folder(name: str) -> bool:
    """ModelError: it looks like one, and is not there."""
    if os.path.isdir(name):
        return True
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"{name}: there is no such folder")
    return False


def has_weights(folder: str) -> bool:
    return any(glob.glob(os.path.join(folder, pattern)) for pattern in ("*.safetensors", "pytorch_model*.bin"))


def known_shape(name: str, reason: str) -> Dict[str, Any]:
    """Of a model that cannot be had for this reason; ModelError: that is not known either."""
    shape = shape_of(name)
    if shape is None:
        raise ModelError(f"{name}: {reason}, and its shape is not known here; name a folder with its config.json, or "
                         f"one of {', '.join(SHAPES)}")
    return shape


def _status(reason: Optional[BaseException]) -> Optional[int]:
    """What the hub answered; None: it did not."""
    while reason is not None:
        status = getattr(getattr(reason, "response", None), "status_code", None)
        if status is not None:
            return int(status)
        reason = reason.__cause__ or reason.__context__
    return None


def raise_if_refused(name: str, reason: BaseException, token: Optional[str], where: str) -> None:
    """ModelError: the hub was there and said no. A token would be given `where`."""
    status = _status(reason)
    if status in (401, 403) and token is None:
        raise ModelError(f"{name}: gated, or not there: accept its terms on https://huggingface.co/{name}, then give "
                         f"{where} (https://huggingface.co/settings/tokens)" +
                         ("; or set HF_HUB_OFFLINE=1 for its shape with random weights" if shape_of(name) else "")) \
            from None
    if status in (401, 403):
        raise ModelError(f"{name}: the hub refuses the token: check that it is valid "
                         "(https://huggingface.co/settings/tokens) and that its account has accepted the terms on "
                         f"https://huggingface.co/{name}; it is given by {where}") from None
    if status == 404:
        raise ModelError(f"{name}: there is no such model on the hub") from None
    if status is not None:
        raise ModelError(f"{name}: the hub answers with status {status}; try again later, or name a folder") from None


# ---- transformers

def _named(config: LoraConfig, device: Any, dtype: Any) -> Any:
    name = config.model_name
    is_local = is_folder(name)
    if not _is_installed("transformers"):
        return _of_shape(config, device, dtype, f"transformers is not installed ({INSTALL})",
                         f"未安装 transformers ({INSTALL})")
    import transformers
    if is_local and not has_weights(name):
        _random_weights(f"{name} has no weights in it", f"{name} 中没有权重文件")
        return _unfilled(transformers.AutoConfig.from_pretrained(name), config, device, dtype)
    try:
        return _loaded(config, device, dtype)
    except OSError as reason:
        if is_local:
            raise
        raise_if_refused(name, reason, os.environ.get("HF_TOKEN"), "HF_TOKEN")
        return _of_shape(config, device, dtype, "the hub cannot be reached", "无法访问模型中心")


def _of_dtype(dtype: Any) -> Dict[str, Any]:
    """As transformers wants to be told; otherwise it would be what the model's own config says."""
    import transformers
    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    return {"dtype" if version >= (4, 56) else "torch_dtype": dtype}


def _unfilled(shape: Any, config: LoraConfig, device: Any, dtype: Any) -> Any:
    """With random weights, made on the device."""
    import torch
    import transformers
    where = device if hasattr(torch, "set_default_device") else contextlib.nullcontext()  # from torch 2 on
    with where:
        model = transformers.AutoModelForCausalLM.from_config(shape, **_of_dtype(dtype))
    return _for_training(model.to(device), config)


def _loaded(config: LoraConfig, device: Any, dtype: Any) -> Any:
    import transformers
    say(logging.INFO, words("loading the model ", "加载模型: ") + config.model_name)
    model = transformers.AutoModelForCausalLM.from_pretrained(config.model_name, **_of_dtype(dtype))
    return _for_training(model.to(device), config)


def _for_training(model: Any, config: LoraConfig) -> Any:
    model.config.use_cache = False
    if config.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


# ---- adapters

def _with_adapters(model: Any, config: LoraConfig) -> Any:
    is_ours = type(model).__module__ == __package__ + "._llama"
    if not is_ours and _is_installed("peft"):
        import peft
        adapters = peft.LoraConfig(r=config.r, lora_alpha=config.alpha, lora_dropout=config.dropout, bias="none",
                                   task_type="CAUSAL_LM", target_modules=list(config.target_modules))
        try:
            return peft.get_peft_model(model, adapters)
        except ValueError as reason:  # no such layers
            raise ModelError(str(reason)) from None
    from ._llama import add_lora
    if not add_lora(model, config.r, config.alpha, config.dropout, config.target_modules):
        raise ModelError(f"the model has no linear layer named {' or '.join(config.target_modules)}; "
                         "set target_modules")
    return model
