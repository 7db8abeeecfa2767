# SPDX-License-Identifier: MIT
"""Configs of every kind that people have; names that are not known; the scripts' command lines. None needs torch."""
import subprocess

import pytest
from seeds_kit import run_python
from torch_kit import PYTHON, REPO, environment

KINDS = """
import argparse, collections, dataclasses, json, sys, types, typing
from pathlib import Path
from tidemark._lora_config import LoraConfig, changed_configs

class Base:
    r = 4
    _mine = 1
    def method(self):
        return 1
    @staticmethod
    def made(): pass
    @classmethod
    def of(cls): pass

class Attributes(Base):
    alpha: float = 8
    seq_length: int
    @property
    def batch_size(self):
        return 2 * self.r

class InInit(Base):
    def __init__(self):
        self.lora_alpha, self.batch_size = 8, 8

class Slots:
    __slots__ = ("r", "alpha", "batch_size", "seed")
    def __init__(self):
        self.r, self.alpha, self.batch_size = 4, 8, 8

@dataclasses.dataclass
class Data:
    r: int = 4
    alpha: float = 8
    batch_size: int = dataclasses.field(default_factory=lambda: 8)

class Fields(typing.NamedTuple):
    r: int = 4
    alpha: float = 8
    batch_size: int = 8

class OfPydantic:
    model_config = {"frozen": True}
    def model_dump(self):
        return {"r": 4, "alpha": 8, "batch_size": 8}

class OfClass:
    r, alpha, batch_size = 4, 8, 8

parser = argparse.ArgumentParser()
for name, default in (("--r", 4), ("--alpha", 8.0), ("--batch_size", 8), ("--device", None), ("--seed", None)):
    parser.add_argument(name, default=default)
module = types.ModuleType("settings")
exec("import os\\nfrom pathlib import Path\\ndef load(): pass\\nr, lora_alpha, batch_size = 4, 8, 8\\n", module.__dict__)
Path("lora.json").write_text(json.dumps({"r": 4, "alpha": 8, "batch_size": 8}))
plain = {"r": 4, "alpha": 8, "batch_size": 8}
kinds = {"dict": plain, "class attributes": Attributes(), "in __init__": InInit(), "a class": OfClass, "slots": Slots(),
         "dataclass": Data(), "a dataclass's class": Data, "NamedTuple": Fields(), "its class": Fields,
         "namedtuple": collections.namedtuple("Pair", list(plain))(**plain), "argparse": parser.parse_args([]),
         "SimpleNamespace": types.SimpleNamespace(**plain), "mappingproxy": types.MappingProxyType(plain),
         "OrderedDict": collections.OrderedDict(plain), "pydantic": OfPydantic(), "module": module, "file": "lora.json",
         "path": Path("lora.json"), "LoraConfig": LoraConfig(**plain)}
for kind, given in kinds.items():
    assert LoraConfig.of(given) == LoraConfig(r=4, alpha=8, batch_size=8), kind
    if kind not in ("file", "path", "argparse"):
        varied = changed_configs(LoraConfig(seq_length=32), {"a": given})["a"]
        assert (varied.r, varied.alpha, varied.batch_size) == (4, 8, 8), kind
assert LoraConfig.of(None) == LoraConfig.of({}) == LoraConfig.of(argparse.Namespace()) == LoraConfig()

def refused(call, kind=ValueError):
    try:
        call()
    except kind as reason:
        return str(reason)
    raise SystemExit("not raised")

class Wrong(Base):
    aplha = 16

assert refused(lambda: LoraConfig.of(Wrong())) == "config: not known: 'aplha' (did you mean alpha?)"
assert refused(lambda: LoraConfig.of({"rnk": 8, "seq_lenght": 9})) == (
    "config: not known: 'rnk' (did you mean rank?); 'seq_lenght' (did you mean seq_length?)")
said = refused(lambda: LoraConfig.of(types.SimpleNamespace(r=4, zzz=1)))
assert said.startswith("config: not known: 'zzz' (known are: model_name, hidden_size, ") and said.endswith("seed)"), said
Path("wrong.json").write_text('{"batchsize": 8}')
assert refused(lambda: LoraConfig.of("wrong.json")) == (
    "config: wrong.json: not known: 'batchsize' (did you mean batch_size?)")
assert refused(lambda: LoraConfig.of({3: 8})).startswith("config: not known: 3 (known are: ")
assert refused(lambda: LoraConfig.of({"r": 8, "lora_rank": 16})) == (
    "config: r and lora_rank are the same, and have different values: 8, 16")
assert LoraConfig.of({"r": 8, "rank": 8}).r == 8
for wrong in ([("r", 8)], 8, print, lambda: None, {"r"}):
    assert refused(lambda: LoraConfig.of(wrong), TypeError).startswith("a config is a dict, "), wrong
assert refused(lambda: LoraConfig.of(type("Empty", (), {"__init__": lambda self: None})), TypeError) == (
    "the class Empty has no attributes with settings; give an object of it")
class Dynamic:  # attributes that nobody can list
    def __getattr__(self, name):
        return 8
    def __repr__(self):
        return "Dynamic()"
assert refused(lambda: LoraConfig.of(Dynamic()), TypeError) == (
    "Dynamic() has no attributes with settings; give a dict of them")
import numpy
of_numpy = LoraConfig.of({"r": numpy.arange(8, 9)[0], "alpha": numpy.float32(0.5), "batch_size": numpy.int32(4)})
assert of_numpy == LoraConfig(r=8, alpha=0.5, batch_size=4) and json.loads(json.dumps(of_numpy.to_dict()))["r"] == 8
assert refused(lambda: LoraConfig.of({"r": 0})) == "r is to be a whole number from 1 on, not 0"

from tidemark import debug_memory_with_different_configs
assert refused(lambda: debug_memory_with_different_configs({}, {"small_r": {"r": 8}, "large_r": {"lora_rnk": 8}})) == (
    "variation 'large_r': not known: 'lora_rnk' (did you mean lora_rank?)")
assert refused(lambda: debug_memory_with_different_configs({}, {"a": [8]}), TypeError).startswith("variation 'a': a config is")
assert refused(lambda: debug_memory_with_different_configs({}, {"a": {"r": -1}})) == (
    "variation 'a': r is to be a whole number from 1 on, not -1")
assert "torch" not in sys.modules
"""


def test_kinds(tmp_path, rings):
    """Each says the same; what is not known is named, in a config and in a variation."""
    run_python(KINDS, tmp_path, rings, TIDEMARK="0")


@pytest.mark.parametrize("script, words, said", [
    ("debug_memory_usage.py", "--debug_levle full --pkg a", "debug_memory_usage.py: error: not known: --debug_levle "
     "(did you mean --debug_level?)"),
    ("debug_memory_usage.py", "--debug_level half", "debug_memory_usage.py: error: argument --debug_level: invalid choice"),
    ("debug_memory_usage.py", "model_only", "debug_memory_usage.py: error: there are words that belong to no option"),
    ("debug_memory_usage.py", "--precision fp8", "debug_memory_usage.py: error: argument --precision: invalid choice"),
    ("gpu_memory_profiler.py", "--token X --seq_length 128", "error: not known: --seq_length (did you mean --seq_lengths?)"),
    ("detailed_memory_profiler.py", "--lora_rank 8", "error: not known: --lora_rank (did you mean --lora_ranks?)"),
    ("gpu_memory_profiler.py", "logs", "error: there are words that belong to no option"),
    ("example_usage.py", "--token X", "example_usage.py: error: unrecognized arguments: --token"),
    ("lora_memory.py", "--debug_level full", "lora_memory.py: error: unrecognized arguments: --debug_level"),
])
def test_scripts_refuse(tmp_path, script, words, said):
    """What they do not know, by its name; no folder is made of it."""
    env = environment(PYTHONPATH=str(REPO / "python"), TIDEMARK="0", LC_ALL="C.UTF-8")
    done = subprocess.run([PYTHON, str(REPO / "examples" / script), *words.split()], cwd=tmp_path, env=env,
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[-1], done.stderr
    assert list(tmp_path.iterdir()) == []
