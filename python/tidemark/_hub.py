# SPDX-License-Identifier: MIT
"""Where a sweep's model comes from, found out once before its first configuration: a folder, the hub, or nowhere,
in which case a model of that shape with random weights is made (_lora_model.py).

The hub is asked once, with a time limit, and what is needed of it is fetched once; configurations are then run
with HF_HUB_OFFLINE=1, so that none of them waits for it.
"""
import errno
import importlib.util
import json
import os
import socket
import ssl
from typing import Any, Dict, Iterator, NamedTuple, Optional

from ._lora_model import INSTALL, ModelError, has_weights, is_folder, known_shape, raise_if_refused

HUB_TIMEOUT_S = 10
WEIGHTS = ("*.json", "*.safetensors", "*.model", "*.txt")
#: Names of what requests, httpx, urllib3 and huggingface_hub raise when nobody answers.
NO_ANSWER = ("ConnectionError", "Timeout", "TimeoutException", "NetworkError", "ProxyError", "HTTPError",
             "LocalEntryNotFoundError", "OfflineModeIsEnabled")
OWN_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
LONGEST_REASON = 200
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
        return _without_hub(name, "HF_HUB_OFFLINE is set")
    return _of_hub(name, token)


def _without_hub(name: str, reason: str) -> Source:
    if _is_cached(name):
        return Source(f"{name}, of the hub's cache ({reason})", {"HF_HUB_OFFLINE": "1"})
    return _random(name, f"{reason}, and the model is not in its cache")


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
        if not _is_unreachable(reason):
            raise ModelError(f"{name}: could not be fetched from the hub: {_said(reason, token)}; set HF_HUB_OFFLINE=1 "
                             "to do without it, or name a folder") from None
        return _without_hub(name, f"the hub cannot be reached: {_said(reason, token)}")
    return Source(f"{name}, from the hub", {"HF_HUB_OFFLINE": "1"})


def _chain(reason: Optional[BaseException]) -> Iterator[BaseException]:
    """From what was raised to what it came from."""
    while reason is not None:
        yield reason
        reason = reason.__cause__ or reason.__context__


def _is_unreachable(reason: BaseException) -> bool:
    """No answer came, rather than that something here failed, such as a full disk."""
    if any(isinstance(one, OSError) and one.errno in OWN_FAULTS and not isinstance(one, ssl.SSLError)
           for one in _chain(reason)):  # of TLS numbers mean something else
        return False
    return any(isinstance(one, (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)) or
               any(kind.__name__ in NO_ANSWER for kind in type(one).__mro__) for one in _chain(reason))


def _said(reason: BaseException, token: Optional[str]) -> str:
    """The innermost that the system itself said, in one short line: what libraries make of it fills a screen."""
    system = [one for one in _chain(reason) if isinstance(one, OSError) and one.strerror]
    text = system[-1].strerror if system else f"{type(reason).__name__}: {reason}"
    text = " ".join(str(text).split())
    return (text.replace(token, "[token]") if token else text)[:LONGEST_REASON]


def _is_cached(name: str) -> bool:
    """All of it, so that it can be loaded."""
    import huggingface_hub
    found: Any = huggingface_hub.try_to_load_from_cache(name, "config.json")
    if not isinstance(found, str):
        return False
    folder = os.path.dirname(found)
    index = os.path.join(folder, "model.safetensors.index.json")
    if not os.path.exists(index):
        return has_weights(folder)
    try:
        with open(index, encoding="utf-8") as file:
            parts = set(json.load(file)["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return all(os.path.exists(os.path.join(folder, part)) for part in parts)


def n_parameters(shape: Dict[str, Any]) -> int:
    """Of a Llama of this shape, without adapters."""
    hidden, inner, layers = shape["hidden_size"], shape["intermediate_size"], shape["num_hidden_layers"]
    key_value = hidden // shape["num_attention_heads"] * shape["num_key_value_heads"]
    layer = 2 * hidden * hidden + 2 * hidden * key_value + 3 * hidden * inner + 2 * hidden
    embeddings = shape["vocab_size"] * hidden * (1 if shape.get("tie_word_embeddings") else 2)
    return layers * layer + embeddings + hidden
