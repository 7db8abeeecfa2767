# SPDX-License-Identifier: MIT
"""Every public name of the package has type hints and a docstring with an example; those that can run do, and show
what stands below them, but for numbers."""
import json

from seeds_kit import run_python

CHECKS = r'''
import doctest, importlib, inspect, json, re, sys
import tidemark

ANY_NUMBER = re.compile(r"[-+]?\d+(?:[.]\d+)?(?:e[-+]?\d+)?")
NEEDS_MORE = ("tidemark.train_with_memory_debug", "tidemark.gradient_checks", "tidemark._fleet")  # their own tests


class SameShape(doctest.OutputChecker):
    def check_output(self, want, got, flags):
        return super().check_output(ANY_NUMBER.sub("0", want), ANY_NUMBER.sub("0", got), flags)


def is_ours(thing):
    return getattr(thing, "__module__", "").startswith("tidemark")


def public_things():
    """(name, function or class, class that it is a method of or None)."""
    for name in tidemark.__all__:
        thing = getattr(tidemark, name)
        if not callable(thing):
            continue
        yield name, thing, None
        for member, method in inspect.getmembers(thing) if inspect.isclass(thing) else ():
            if not member.startswith("_") and inspect.isfunction(method) and is_ours(method):
                yield f"{name}.{member}", method, thing


def faults(name, thing):
    if ">>> " not in (thing.__doc__ or ""):
        yield f"{name}: no example"
    if inspect.isclass(thing) and issubclass(thing, (tuple, Exception)) or type(thing) is type(tidemark.RiskLevel):
        return  # its fields have their types in the class
    function = thing.__init__ if inspect.isclass(thing) else thing
    signature = inspect.signature(inspect.unwrap(function))
    for parameter in list(signature.parameters.values()):
        if parameter.annotation is parameter.empty and parameter.name != "self":
            yield f"{name}: no type of {parameter.name}"
    if signature.return_annotation is signature.empty and not inspect.isclass(thing):
        yield f"{name}: no type of what it returns"


found = [fault for name, thing, _ in public_things() for fault in faults(name, thing)]
print(json.dumps(found))
'''

PRELUDE = r'''
import logging, os, torch
logging.getLogger("tidemark").addHandler(logging.NullHandler())
model, batch = torch.nn.Linear(16, 16), torch.ones(4, 16)
names = {"model": model, "batch": batch, "loader": [batch], "dataloader": [batch], "train": lambda: None,
         "create_model": lambda: torch.nn.Linear(4, 4), "train_model": lambda model, dataloader=None: model, "x": batch,
         "before": tidemark.memory_snapshot("before"), "after": tidemark.memory_snapshot("after"),
         "save_checkpoint": lambda: None}
debugger = tidemark.MemoryDebugger("logs", threshold=99.9, sampling_interval=0.02)
debugger.start_monitoring()
debugger.create_memory_checkpoint("start")
debugger.create_memory_checkpoint("after_problem")
detector = tidemark.OOMDetector(99.9)
monitor = tidemark.MemoryProfiler(0.02)
timeline = tidemark.GPUMemoryProfiler("logs", console=False)
from tidemark import training_stages
stages = training_stages.TrainingProfiler()
stages.profile_stage("model_creation", names["create_model"])
of_class = {"MemoryProfiler": {"profiler": monitor, "monitor": monitor}, "GPUMemoryProfiler": {"profiler": timeline},
            "MemoryDebugger": {"debugger": debugger, "monitor": debugger, "detector": debugger},
            "OOMDetector": {"detector": detector, "monitor": detector}, "TrainingProfiler": {"profiler": stages}}

counts = {}
runner = doctest.DocTestRunner(SameShape(), verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
parser = doctest.DocTestParser()
things = list(public_things()) + [("TrainingProfiler." + name, method, training_stages.TrainingProfiler)
                                  for name, method in vars(training_stages.TrainingProfiler).items()
                                  if inspect.isfunction(method) and not name.startswith("_")]
monitor.start_monitoring()
for name, thing, owner in sorted(things, key=lambda item: "stop" in item[0] or "cleanup" in item[0]):
    module = sys.modules[thing.__module__]
    if thing.__module__ in NEEDS_MORE or thing.__module__.startswith(NEEDS_MORE):
        continue
    globs = {**vars(tidemark), **vars(module), **names, **of_class.get(owner.__name__ if owner else "", {})}
    test = parser.get_doctest(inspect.getdoc(thing), globs, name, None, 0)
    runner.run(test, clear_globs=False)
    for value in globs.values():
        if isinstance(value, tidemark.OOMDetector) and value not in (debugger, detector):
            value.stop_monitoring()
with open("counts", "w") as file:
    print(runner.failures, runner.tries, file=file)
'''


def test_docstrings(tmp_path, rings):
    done = run_python(CHECKS + PRELUDE, tmp_path, rings)
    faults, *failures = done.stdout.splitlines()
    assert json.loads(faults) == []
    failed, tried = map(int, (tmp_path / "counts").read_text().split())
    assert failed == 0, "\n".join(failures)
    assert tried > 50
