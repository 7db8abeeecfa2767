# SPDX-License-Identifier: MIT
"""The settings that a config holds, whatever kind of object it is.

People keep them in a dict, a class (class attributes), an object, a dataclass, a namedtuple, a SimpleNamespace, the
arguments of a command, a module, or an object of a library that can make a dict of itself. Every public attribute that
is no method counts, inherited ones and properties too, so that a misspelled one is found and not left out.
"""
import argparse
import dataclasses
import types
from typing import Any, Dict, Iterator, Mapping

WANTED = ("a dict, a class or an object with settings as attributes, a dataclass, a namedtuple, a namespace of argparse, "
          "or the path of a JSON file")
METHODS = (types.FunctionType, types.BuiltinFunctionType, classmethod, staticmethod)
#: Of a module's names: what it imports and defines, besides its settings.
OF_MODULE = (*METHODS, type, types.ModuleType)
NAMESPACES = (types.SimpleNamespace, argparse.Namespace)  # which may be empty, as a dict may
AS_DICT = ("_asdict", "model_dump", "to_dict", "dict")  # of namedtuples, pydantic, transformers, pydantic 1


def settings_of(given: Any) -> Dict[Any, Any]:
    """Their names and values; TypeError where it is nothing of the kind.

    >>> settings_of(types.SimpleNamespace(r=8, alpha=16))
    {'r': 8, 'alpha': 16}
    """
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, type) and (dataclasses.is_dataclass(given) or hasattr(given, "_fields")):
        given = given()  # TypeError names the fields that have no default
    for method in () if isinstance(given, type) else AS_DICT:
        if callable(getattr(given, method, None)):
            return dict(getattr(given, method)())
    if not isinstance(given, (type, types.ModuleType)) and type(given).__module__ == "builtins":
        raise TypeError(f"a config is {WANTED}, not {given!r}")
    found = {name: getattr(given, name) for name in dict.fromkeys(_names(given)) if not name.startswith("_")}
    if isinstance(given, type) and not found:
        raise TypeError(f"the class {given.__qualname__} has no attributes with settings; give an object of it")
    if not found and not isinstance(given, NAMESPACES):
        raise TypeError(f"{given!r} has no attributes with settings; give a dict of them")
    return found


def _names(given: Any) -> Iterator[str]:
    """Of its settings, those of its classes first."""
    is_class, is_module = isinstance(given, type), isinstance(given, types.ModuleType)
    for kind in () if is_module else reversed((given if is_class else type(given)).__mro__[:-1]):
        for name, value in vars(kind).items():
            is_setting = not isinstance(value, METHODS) and not (is_class and hasattr(value, "__get__"))
            if is_setting and hasattr(given, name):  # a slot may be empty
                yield name
    for name, value in () if is_class else getattr(given, "__dict__", {}).items():
        if not (is_module and isinstance(value, OF_MODULE)):
            yield name
