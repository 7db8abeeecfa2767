# SPDX-License-Identifier: MIT
"""tidemark: what fills the memory of a training.

    import tidemark              # records from here on; under `tidemark run` it already does

    for batch in loader:
        tidemark.step()
        with tidemark.stage("forward"):
            loss = model(batch)

`import tidemark` works under `tidemark run`, after `tidemark attach`, and alone; alone it begins to
record into a run folder of its own (`tidemark.run` says which; TIDEMARK_RUN names it;
TIDEMARK_OFF=1 keeps it from recording; TIDEMARK=0 makes all of the package a no-op). At exit a line
on stderr says where the run is (TIDEMARK_QUIET=1: none). Whatever goes wrong with recording, the
program goes on.
"""
import contextlib
import importlib
import itertools
import os
import warnings
from typing import Any, Iterator, Optional

from . import _at_exit, _library

#: Names of the seeds' tools and of the cluster's view, and the module of each: imported when first asked for.
_TOOLS = {
    "GPUMemoryProfiler": "gpu_memory_profiler",
    **dict.fromkeys(("memory_snapshot", "compare_snapshots", "analyze_model", "monitor_function",
                     "check_memory_status", "cleanup_memory", "generate_report"), "quick_memory_debug"),
    **dict.fromkeys(("MemoryProfiler", "OOMDetector", "OOMPrediction", "RiskLevel"), "monitors"),
    **dict.fromkeys(("MemoryDebugger", "create_memory_debugger"), "memory_debugger"),
    "memory_profiled_training": "training_stages",
    "check_gradients": "gradient_checks",
    **dict.fromkeys(("debug_lora_training", "debug_memory_with_different_configs"), "train_with_memory_debug"),
    **dict.fromkeys(("Fleet", "fleet"), "_fleet"),
}

__all__ = ["is_watched", "mark", "run", "stage", "step", "watch", *_TOOLS]

#: The run folder, where it is known: by TIDEMARK_RUN, or because we made it.
run = os.environ.get("TIDEMARK_RUN") or None

_lib = None
_steps = itertools.count()


def _start() -> None:
    global _lib, run
    if os.environ.get("TIDEMARK") == "0" or _library.is_the_program(__name__):
        return  # not wanted; or this is the program, which is not watched itself
    is_watched_already = _library.loaded() is not None
    _lib = _library.open_library()
    if is_watched_already and _lib.tidemark_record_on() or os.environ.get("TIDEMARK_OFF", "") not in ("", "0"):
        return
    parents = _library.parents_run()
    is_ours = not (run or parents)
    folder = os.path.abspath(run or parents or _library.make_run_folder())
    if not parents:
        _at_exit.AtExit(folder, is_ours)
    if not _lib.tidemark_record_on():
        _library.begin(_lib, folder)
    _library.tell_children(folder)
    run = folder


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _library.version()
    if name not in _TOOLS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    tool = getattr(importlib.import_module("." + _TOOLS[name], __name__), name)
    globals()[name] = tool
    return tool


def is_watched() -> bool:
    """True while this process is being recorded.

    >>> is_watched()
    True
    """
    return bool(_lib is not None and _lib.tidemark_record_on())


def _text(value: Any) -> Optional[bytes]:
    """Bytes of whatever it is: nothing that a moment is marked with may end a training."""
    if value is None:
        return None
    try:
        text = str(value)
    except Exception:  # its own
        text = f"<{type(value).__name__}>"
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair of surrogates
        return text.encode("utf-8", "backslashreplace")


def step(number: Optional[int] = None) -> None:
    """A training step begins. Without a number they count from 0.

    >>> for batch in loader:
    ...     step()
    ...     train()
    """
    if _lib is not None:
        _lib.tidemark_record_step(next(_steps) if number is None else int(number))


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """A stage: forward, backward, optimizer, data, or a name of your own. For `with`, or as a
    decorator.

    >>> with stage("forward"):
    ...     output = model(batch)
    """
    if _lib is not None:
        _lib.tidemark_record_push(_library.STAGE, _text(name))
    try:
        yield
    finally:
        if _lib is not None:
            _lib.tidemark_record_pop(_library.STAGE)


def mark(event: str, info: Optional[str] = None) -> None:
    """Something happened now: a name and, if you like, a sentence.

    >>> mark("checkpoint", "epoch 3")
    """
    if _lib is not None:
        _lib.tidemark_record_mark(_text(event), _text(info))


def watch(*objects: Any) -> Any:
    """Modules and optimizers that are not found by themselves: those of a program that calls
    neither. Modules get their names, their parameters and buffers theirs, optimizers' state and
    steps are followed. May be called again. Returns its first argument.

    >>> watch(model) is model
    True
    """
    for thing in objects:
        if not hasattr(thing, "named_parameters") and not hasattr(thing, "param_groups"):
            raise TypeError(f"tidemark.watch: a module or an optimizer is wanted, not {thing!r}")
        if _lib is not None:
            _lib.watch(thing)
    return objects[0] if objects else None


try:
    _start()
except Exception as reason:  # whatever it is: the program goes on
    _so = "" if isinstance(reason, _library.OtherVersion) else " does not record"
    warnings.warn(f"tidemark{_so}: {reason}", RuntimeWarning, stacklevel=2)
