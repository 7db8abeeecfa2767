# SPDX-License-Identifier: MIT
"""A program that reports a training through the library, as torch would: whose each block is.

The program is Python without torch; it calls the library's functions. Autograd's worker is a thread
of its own. Figures by hand.
"""
import json
import sys

import pytest
from test_golden import shell

PROGRAM = """
import ctypes, threading

lib = ctypes.CDLL(None)
STAGE, MODULE = 1, 2
PARAMETER, GRADIENT, STATE, INPUT = 1, 2, 3, 5
CUDA = 0x100


class Site(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("function", ctypes.c_char_p),
                ("line", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


def alloc(address, size, file=b"train.py", function=b"main"):
    site = Site(file, function, 1, 0)
    lib.tidemark_record_alloc(CUDA, ctypes.c_void_p(address), ctypes.c_uint64(size),
                              ctypes.byref(site))


def free(*addresses):
    for address in addresses:
        lib.tidemark_record_free(CUDA, ctypes.c_void_p(address))


def tag(address, category, name):
    lib.tidemark_record_tag(CUDA, ctypes.c_void_p(address), category, name)


class within:
    def __init__(self, kind, name):
        self.kind, self.name = kind, name

    def __enter__(self):
        lib.tidemark_record_push(self.kind, self.name)

    def __exit__(self, *_):
        lib.tidemark_record_pop(self.kind)


def step(number):
    lib.tidemark_record_step(ctypes.c_int64(number))
    alloc(0x5000, 10, b"/x/torch/utils/data/dataloader.py", b"__next__")
    with within(STAGE, b"forward"):
        with within(MODULE, b"blocks.0.attn"):
            alloc(0x6000, 2000)
            alloc(0x6100, 200)
            free(0x6100)
        with within(MODULE, b"blocks.0.mlp"):
            alloc(0x6200, 3000)
    with within(STAGE, b"backward"):
        worker = threading.Thread(target=backward)
        worker.start()
        worker.join()
        free(0x7000, 0x6200)
    free(0x5000)
    tag(0x7100, GRADIENT, b"blocks.0.mlp.weight")
    with within(STAGE, b"optimizer"), within(MODULE, b"AdamW"):
        if number == 0:
            alloc(0x8000, 400)
        alloc(0x8100, 40)
        free(0x8100)
    free(0x7100)


def backward():
    with within(STAGE, b"backward"):
        with within(MODULE, b"blocks.0.mlp"):
            alloc(0x7000, 500)
            alloc(0x7100, 100)
        with within(MODULE, b"blocks.0.attn"):
            free(0x6000)


alloc(0x1000, 1000, b"/x/torch/nn/modules/module.py", b"Module.to")
tag(0x1000, PARAMETER, b"blocks.0.mlp.weight")
for number in range(3):
    step(number)
with within(STAGE, b"eval"), within(MODULE, b"blocks.0.attn"):
    alloc(0x9000, 7)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("owners")
    (place / "program.py").write_text(PROGRAM)
    done = shell(f"tidemark run -q -o a.tmk -- {sys.executable} program.py", place)
    assert done.returncode == 0, done.stderr
    return place


def by(folder, key, at="step:1"):
    said = json.loads(shell(f"tidemark peak a.tmk --by {key} --at {at} --json", folder).stdout)
    return said["allocated"], {row["key"]: (row["bytes"], row["blocks"]) for row in said["by"]}


def test_peak(folder):
    """The peak of step 1 is in its backward: parameter, state, batch, activations, new blocks."""
    assert by(folder, "category") == (7010, {
        "parameter": (1000, 1), "optimizer_state": (400, 1), "input": (10, 1),
        "activation": (5000, 2), "autograd_detail": (500, 1), "gradient": (100, 1)})
    assert by(folder, "component") == (7010, {
        "attention": (2000, 1), "mlp": (3600, 3), "other": (1410, 3)})
    assert by(folder, "module") == (7010, {
        None: (1010, 2), "blocks.0.attn": (2000, 1), "blocks.0.mlp": (3600, 3),
        "AdamW": (400, 1)})
    assert by(folder, "stage") == (7010, {
        "model_load": (1000, 1), "data": (10, 1), "forward": (5000, 2), "backward": (600, 2),
        "optimizer": (400, 1)})
    assert by(folder, "step") == (7010, {None: (1000, 1), "0": (400, 1), "1": (5610, 5)})
    assert by(folder, "tensor") == (7010, {
        None: (5910, 5), "blocks.0.mlp.weight": (1100, 2)})


def test_tables(folder):
    def rows(sql):
        done = shell(f'tidemark query a.tmk "{sql}" --format csv', folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[1:]

    assert rows("SELECT category, count(*), sum(size) FROM allocations GROUP BY 1 ORDER BY 1") == [
        "activation,7,15007", "autograd_detail,3,1500", "gradient,3,300", "input,3,30",
        "optimizer_state,1,400", "parameter,1,1000", "temporary,6,720"]
    assert rows("SELECT step, micro_steps, peak_allocated FROM steps") == [
        ",0,1000", "0,1,6610", "1,1,7010", "2,1,7010"]
    assert rows("SELECT name, count(DISTINCT thread) FROM ranges WHERE kind = 'stage' GROUP BY 1"
                " ORDER BY 1") == ["backward,4", "eval,1", "forward,1", "optimizer,1"]
    assert rows("SELECT module, component, forward_bytes, backward_bytes FROM modules"
                " ORDER BY 1") == ["AdamW,other,0,0", "blocks.0.attn,attention,6607,0",
                                   "blocks.0.mlp,mlp,9000,1800"]
    assert rows("SELECT stage, count(*) FROM python.torch_trace GROUP BY 1 ORDER BY 1") == [
        "post backward,6", "post forward,7", "post step,3", "pre backward,6", "pre forward,7",
        "pre step,3"]


def test_report(folder):
    page = shell("tidemark report a.tmk --full", folder).stdout
    for title in ("category", "your line", "module", "component", "stage", "allocated in step", "name"):
        assert f"\n  {title} " in page, title
    peak = json.loads(shell("tidemark report a.tmk --json", folder).stdout)["processes"][0]["peak"]
    assert peak["allocated"] == 7010 and peak["step"] == 1
    assert [row["key"] for row in peak["by_component"]] == ["mlp", "attention", "other"]
    assert [row["bytes"] for row in peak["by_step"]] == [5610, 1000, 400]
    assert peak["by_tensor"][1] == {"key": "blocks.0.mlp.weight", "bytes": 1100, "blocks": 2}


def test_own_components(folder):
    """A file of rules written after the run; what makes no sense in it is said and left out."""
    (folder / "rules").write_text("block name:[0-9]*\nmixer name:attn in:*\nmixer name:mlp\n")
    said = shell("TIDEMARK_COMPONENTS=rules tidemark peak a.tmk --by component", folder)
    assert said.stderr == ""
    keys = [line.split()[0] for line in said.stdout.splitlines()[2:]]
    assert keys == ["mixer", "attention", "other"]  # in: needs a class that is known
    (folder / "rules").write_text("mixer name:mlp\nnonsense\n")
    said = shell("TIDEMARK_COMPONENTS=rules tidemark peak a.tmk --by component", folder)
    assert said.stderr == ("tidemark: components: rules: line 2 is not 'COMPONENT name:PATTERN' or"
                           " the like; going on without that\n")
    assert "mixer" in said.stdout
    said = shell("TIDEMARK_COMPONENTS=none tidemark peak a.tmk --by component", folder)
    assert said.stderr == ("tidemark: components: cannot read none: no such file or folder;"
                           " going on without that\n")
    assert said.returncode == 0
