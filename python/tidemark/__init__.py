# SPDX-License-Identifier: MIT
"""tidemark: what fills the memory of a training.

    import tidemark              # records from here on; under `tidemark run` it already does

    for batch in loader:
        tidemark.step()
        with tidemark.stage("forward"):
            loss = model(batch)

`import tidemark` works under `tidemark run`, after `tidemark attach`, and alone; alone it begins to
record into a run folder of its own (`tidemark.run` says which; TIDEMARK_RUN names it;
TIDEMARK_OFF=1 keeps it from recording). Whatever goes wrong with recording, the program goes on.
"""
import contextlib
import itertools
import os
import warnings

from . import _library

__all__ = ["is_watched", "mark", "run", "stage", "step", "watch"]

#: The run folder, where it is known: by TIDEMARK_RUN, or because we made it.
run = os.environ.get("TIDEMARK_RUN") or None

_lib = None
_steps = itertools.count()


def _start():
    global _lib, run
    if _library.module_looked_for() == __name__:
        return  # `python -m tidemark` is the program, which is not watched itself
    _lib = _library.open_library()
    if _lib.tidemark_record_on() or os.environ.get("TIDEMARK_OFF", "") not in ("", "0"):
        return
    folder = os.path.abspath(run or _library.run_folder())
    _library.begin(_lib, folder)
    run = folder


def is_watched():
    """True while this process is being recorded."""
    return bool(_lib is not None and _lib.tidemark_record_on())


def _text(value):
    return None if value is None else str(value).encode("utf-8", "surrogateescape")


def step(number=None):
    """A training step begins. Without a number they count from 0."""
    if _lib is not None:
        _lib.tidemark_record_step(next(_steps) if number is None else int(number))


@contextlib.contextmanager
def stage(name):
    """A stage: forward, backward, optimizer, data, or a name of your own. For `with`, or as a
    decorator."""
    if _lib is not None:
        _lib.tidemark_record_push(_library.STAGE, _text(name))
    try:
        yield
    finally:
        if _lib is not None:
            _lib.tidemark_record_pop(_library.STAGE)


def mark(event, info=None):
    """Something happened now: a name and, if you like, a sentence."""
    if _lib is not None:
        _lib.tidemark_record_mark(_text(event), _text(info))


def _device(tensor):
    device_type = _library.DEVICE_TYPES.get(tensor.device.type)
    if device_type is None:
        return None
    return device_type << 8 | (tensor.device.index or 0) if device_type else 0


def _tag(tensor, category, name):
    device = _device(tensor)
    try:
        storage = getattr(tensor, "untyped_storage", None) or tensor.storage
        address = storage().data_ptr()
    except (RuntimeError, ValueError, NotImplementedError):  # lazy, sparse, fake: no memory of its own
        return
    if device is not None and address:
        _lib.tidemark_record_tag(device, address, category, _text(name))


def _tag_module(module):
    for name, parameter in module.named_parameters():
        _tag(parameter, _library.PARAMETER, name)
    for name, buffer in module.named_buffers():
        _tag(buffer, _library.BUFFER, name)


def _tag_optimizer(optimizer, names):
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            if hasattr(value, "data_ptr"):
                _tag(value, _library.OPTIMIZER_STATE, f"{names.get(id(parameter), '?')}.{key}")


def watch(*objects):
    """Say what blocks are: the parameters and buffers of modules, by their names, and the state of
    optimizers. May be called again, when there are new ones. Returns its first argument."""
    if _lib is not None:
        modules = [thing for thing in objects if hasattr(thing, "named_parameters")]
        names = {id(parameter): name
                 for module in modules for name, parameter in module.named_parameters()}
        for thing in objects:
            if hasattr(thing, "named_parameters"):
                _tag_module(thing)
            elif hasattr(thing, "param_groups") and hasattr(thing, "state"):
                _tag_optimizer(thing, names)
            else:
                raise TypeError(f"tidemark.watch: a module or an optimizer is wanted, not {thing!r}")
    return objects[0] if objects else None


try:
    _start()
except Exception as reason:  # whatever it is: the program goes on
    warnings.warn(f"tidemark does not record: {reason}", RuntimeWarning, stacklevel=2)
