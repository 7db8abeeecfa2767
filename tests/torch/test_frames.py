# SPDX-License-Identifier: MIT
"""Python stacks, read without the GIL, on every CPython that can be found: file, function and line
of every frame must be what the interpreter's own traceback says."""
import json
import subprocess
from pathlib import Path

import pytest
from torch_kit import TIDEMARK, environment, frames, pythons, query

TARGET = Path(__file__).parent / "frames_target.py"


def run_target(python, tmp_path, rings, *args, name="a.tmk"):
    run = tmp_path / name
    done = subprocess.run(
        [TIDEMARK, "run", "--quiet", "-o", str(run), "--", python, str(TARGET), *args],
        env=environment(TIDEMARK_RING_DIR=str(rings)), capture_output=True, text=True, timeout=120,
        check=False)
    assert done.returncode == 0, done.stderr
    return run, json.loads(done.stdout)


@pytest.mark.parametrize("mode", ["every_site", "many_keys", "wander"])
@pytest.mark.parametrize("python", pythons())
def test_every_frame(python, mode, tmp_path, rings):
    """Sizes 1, 2, 3 ... say which call site it was; the target says what its traceback was there."""
    run, truth = run_target(python, tmp_path, rings, mode)
    sizes = {int(number): int(size) for number, size in query(run, "SELECT id, size FROM allocations")}
    seen = {sizes[number]: stack for number, stack in frames(run, "1").items()}
    assert len(truth["stacks"]) > 15
    for size, stack in truth["stacks"].items():
        expected = [tuple(frame) for frame in stack]
        got = seen[int(size)]
        if not truth["has_qualname"]:  # before 3.11 code objects know their plain name only
            expected = [(file, line, function.rsplit(".", 1)[-1]) for file, line, function in expected]
        assert got == expected, f"call site {size}"
    assert query(run, "SELECT count(*) FROM marks") == [["0"]]


@pytest.mark.parametrize("python", pythons())
def test_reused_code_addresses(python, tmp_path, rings):
    """Functions that are made, called and thrown away, 2,000 of them: none is taken for another."""
    run, truth = run_target(python, tmp_path, rings, "reuse")
    seen = {int(size): function for size, function in query(
        run, "SELECT a.size, f.function FROM allocations a JOIN frames f ON f.stack_id = a.stack_id "
             "WHERE f.depth = 0")}
    assert len(seen) == 2000
    assert seen == {int(size): name for size, name in truth["functions"].items()}


@pytest.mark.parametrize("python", pythons(known=False))
def test_unknown_version(python, tmp_path, rings):
    """Blocks without Python stacks, and the trace says why."""
    run, _ = run_target(python, tmp_path, rings, "reuse")
    assert query(run, "SELECT count(*) FROM allocations") == [["2000"]]
    assert query(run, "SELECT event, info FROM marks") == [
        ["no Python stacks", "this version of Python is not known (3.9 to 3.14 are)"]]
    assert {stack[0][2] for stack in frames(run, "1").values()} == {f"[thread {Path(python).name}]"}


@pytest.mark.parametrize("python", pythons())
def test_code_made_anew(python, tmp_path, rings):
    """What is the same code is one frame, however often it is made: the tables do not fill up."""
    run, _ = run_target(python, tmp_path, rings, "anew")
    assert query(run, "SELECT count(*), sum(stack_id IS NULL) FROM allocations WHERE size = 21") == \
        [["30000", "0"]]
    assert query(run, "SELECT count(*) FROM stacks") == [["1"]]
    assert query(run, "SELECT function FROM frames ORDER BY depth") == [["same"], ["anew"], ["<module>"]]


def test_deep_recursion_is_cut_and_said(tmp_path, rings):
    run, _ = run_target(pythons()[0], tmp_path, rings, "deep")
    (stack,) = frames(run, "size = 7").values()
    assert len(stack) == 129
    assert stack[-1] == ("", 0, "[outer frames cut]")
    assert {frame[2] for frame in stack[2:-1]} == {"deep"}


def test_thread_without_python(tmp_path, rings, in_thread):
    """A thread that Python knows nothing of is called by its name."""
    run, _ = run_target(pythons()[0], tmp_path, rings, "native", in_thread)
    (stack,) = frames(run, "size = 9").values()
    assert stack == [("", 0, "[thread of-c-alone]")]


@pytest.mark.parametrize("name", ["libtorch_cpu.so", "libtorch_cpu-1a2b3c.so", "libmytorch.so"])
def test_autograd_threads(name, tmp_path, rings):
    """A block that autograd's thread asks for has the stack of whoever called backward(), whatever
    torch's file is called."""
    library = tmp_path / name
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", str(library),
                    str(Path(__file__).parent / "in_thread.c")], check=True)
    run, _ = run_target(pythons()[0], tmp_path, rings, "backward", str(library))
    (stack,) = frames(run, "size = 13").values()
    assert [frame[2] for frame in stack] == ["backward", "<module>"]
    assert "helper.run_backward() == 255" in TARGET.read_text().splitlines()[stack[0][1] - 1]
    (stack,) = frames(run, "size = 15").values()
    assert stack == [("", 0, "[thread another]")]


def test_sub_interpreter(tmp_path, rings):
    """Frames of a sub-interpreter are not read; the program goes on."""
    candidates = [path for path in pythons() if "3.12" in path or "3.13" in path]
    if not candidates:
        pytest.skip("no Python with _xxsubinterpreters here")
    run, truth = run_target(candidates[0], tmp_path, rings, "subinterpreter")
    assert truth["ran"] == "yes"
    for stack in frames(run, "size = 11").values():
        assert all("inside" not in frame[2] for frame in stack)
