# SPDX-License-Identifier: MIT
"""Where a sweep's model comes from, found out once before its first configuration: a folder, the hub, or nowhere,
in which case a model of that shape with random weights is made (_lora_model.py).

The hub is asked once, with a time limit, and what is needed of it is fetched once; configurations are then run
with HF_HUB_OFFLINE=1, so that none of them waits for it.
"""
import importlib.util
import os
from typing import Any, Dict, NamedTuple, Optional

from ._lora_model import INSTALL, has_weights, is_folder, known_shape, raise_if_refused, shape_of

HUB_TIMEOUT_S = 10
WEIGHTS = ("*.json", "*.safetensors", "*.model", "*.txt")
PLACEHOLDERS = ("YOUR_HF_TOKEN", "YOUR_TOKEN", "<token>", "TOKEN")


class Source(NamedTuple):
    """What is said of it, and the environment of the configurations."""
    said: str
    environment: Dict[str, str]


def is_token(text: Optional[str]) -> bool:
    """Something was given, and it is not what documentation has in its place."""
    return bool(text) and text not in PLACEHOLDERS


def source_of(name: str, token: Optional[str]) -> Source:
    """ModelError where it cannot be had at all, or the hub says no."""
    if is_folder(name):
        return Source(f"{name}, a folder" + ("" if has_weights(name) else "; no weights are in it: random ones"), {})
    for package in ("transformers", "huggingface_hub"):
        if importlib.util.find_spec(package) is None:
            return _random(name, f"{package} is not installed ({INSTALL})")
    if os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0"):
        return Source(f"{name}, of the hub's cache (HF_HUB_OFFLINE is set), else random weights of its shape", {})
    return _of_hub(name, token)


def _random(name: str, reason: str) -> Source:
    known_shape(name, reason)
    return Source(f"{name}: {reason}; a Llama of its shape with random weights stands in. Memory is the same, losses "
                  "mean nothing", {"HF_HUB_OFFLINE": "1"})


def _of_hub(name: str, token: Optional[str]) -> Source:
    import huggingface_hub
    try:
        huggingface_hub.HfApi().model_info(name, token=token, timeout=HUB_TIMEOUT_S)
        huggingface_hub.snapshot_download(name, token=token, allow_patterns=list(WEIGHTS))
    except Exception as reason:  # which library's it is depends on their versions
        raise_if_refused(name, reason, token, "--token")
        if shape_of(name) is None and _is_cached(name):
            return Source(f"{name}, of the hub's cache (the hub cannot be reached)", {"HF_HUB_OFFLINE": "1"})
        return _random(name, "the hub cannot be reached")
    return Source(f"{name}, from the hub", {"HF_HUB_OFFLINE": "1"})


def _is_cached(name: str) -> bool:
    import huggingface_hub
    found: Any = huggingface_hub.try_to_load_from_cache(name, "config.json")
    return isinstance(found, str)


def n_parameters(shape: Dict[str, Any]) -> int:
    """Of a Llama of this shape, without adapters."""
    hidden, inner, layers = shape["hidden_size"], shape["intermediate_size"], shape["num_hidden_layers"]
    key_value = hidden // shape["num_attention_heads"] * shape["num_key_value_heads"]
    layer = 2 * hidden * hidden + 2 * hidden * key_value + 3 * hidden * inner + 2 * hidden
    embeddings = shape["vocab_size"] * hidden * (1 if shape.get("tie_word_embeddings") else 2)
    return layers * layer + embeddings + hidden
