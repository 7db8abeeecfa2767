# SPDX-License-Identifier: MIT
"""Python stacks, read without the GIL, on every CPython that can be found: file, function and line
of every frame must be what the interpreter's own traceback says."""
import json
import re
import subprocess
from pathlib import Path

import pytest
from torch_kit import TIDEMARK, environment, frames, pythons, query

TARGET = Path(__file__).parent / "frames_target.py"


def run_target(python, tmp_path, rings, *args, name="a.tmk"):
    run = tmp_path / name
    done = subprocess.run(
        [TIDEMARK, "run", "--quiet", "-o", str(run), "--", python, str(TARGET), *args],
        env=environment(TIDEMARK_RING_DIR=str(rings)), capture_output=True, text=True, timeout=240,
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


def innermost(run):
    """{size of a block: function that asked for it}"""
    return {int(size): function for size, function in query(
        run, "SELECT a.size, f.function FROM allocations a JOIN frames f ON f.stack_id = a.stack_id "
             "WHERE f.depth = 0")}


@pytest.mark.parametrize("mode, n", [("reuse", 2000), ("reuse_seldom", 6), ("reuse_watched", 2000),
                                     ("reuse_unwatched", 2000)])
@pytest.mark.parametrize("python", pythons())
def test_reused_code_addresses(python, mode, n, tmp_path, rings):
    """Functions that are made, called and thrown away, 2,000 of them: none is taken for another. From 3.12 on Python
    tells when one goes, while that is seldom."""
    run, truth = run_target(python, tmp_path, rings, mode)
    seen = innermost(run)
    seen.pop(5000, None)  # what comes first, to be watched
    assert len(seen) == n
    assert seen == {int(size): name for size, name in truth["functions"].items()}
    assert query(run, "SELECT count(*) FROM marks") == [["0"]]


@pytest.mark.parametrize("python", pythons())
def test_last_function_ends(python, tmp_path, rings):
    """Then there is no stack but the thread's name, and nothing is amiss."""
    run, _ = run_target(python, tmp_path, rings, "ending")
    found = {int(size): function for size, function in query(
        run, "SELECT a.size, f.function FROM allocations a JOIN frames f ON f.stack_id = a.stack_id "
             "WHERE a.size < 20 AND f.depth = 0")}
    assert set(found) == {11, 12, 13}
    assert all(name in ("last", "ending.<locals>.last") or name.startswith("[thread ") for name in found.values()), found
    assert query(run, "SELECT count(*) FROM marks") == [["0"]]


EMBED = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    (void)argc;
    void *python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    for (int round = 1; python && round <= 3; round++) {
        char program[2000];
        snprintf(program, sizeof program,
                 "import ctypes\n"
                 "hook = ctypes.CDLL(None)._ZN3c1025ProfiledCPUMemoryReporter3NewEPvm\n"
                 "hook.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]\n"
                 "for i in range(%d, %d):\n"
                 "    exec(f'def f{i}():\\n    hook(None, {4096 * i}, {i})\\n')\n"
                 "    for _ in range(3):\n"
                 "        globals()[f'f{i}']()\n", 100 * round, 100 * round + 20);
        ((void (*)(void))dlsym(python, "Py_Initialize"))();
        if (((int (*)(const char *))dlsym(python, "PyRun_SimpleString"))(program) != 0)
            return 1;
        ((int (*)(void))dlsym(python, "Py_FinalizeEx"))();
    }
    return !python;
}
"""


@pytest.mark.parametrize("python", pythons())
def test_interpreters_in_turn(python, tmp_path, rings):
    """A program that ends Python and starts it again: codes of the one are not taken for the other's."""
    minor = re.search(r"python3[.](\d+)", python)[1]
    folders = [Path(python).parents[1] / "lib", *Path("/usr/lib").glob("*-linux-gnu")]
    libraries = [path for path in (folder / f"libpython3.{minor}.so.1.0" for folder in folders) if path.exists()]
    if not libraries:
        pytest.skip(f"Python 3.{minor} has no library to embed")
    (tmp_path / "embed.c").write_text(EMBED, encoding="utf-8")
    subprocess.run(["cc", "-o", "embed", "embed.c", "-ldl"], cwd=tmp_path, check=True)
    name = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"
    (tmp_path / "hook.c").write_text(f'void f(void) __asm__("{name}");\nvoid f(void) {{}}\n', encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "hook.so", "hook.c"], cwd=tmp_path, check=True)
    run, command = tmp_path / "a.tmk", [str(tmp_path / "embed"), str(libraries[0])]

    def start(before=(), **variables):
        return subprocess.run([*before, *command], env=environment(TIDEMARK_RING_DIR=str(rings), **variables),
                              capture_output=True, text=True, timeout=240, check=False)

    alone = start(LD_PRELOAD=str(tmp_path / "hook.so"))
    if alone.returncode != 0:
        pytest.skip(f"Python 3.{minor} with ctypes cannot be started again: {alone.stderr.strip()}")
    done = start([TIDEMARK, "run", "--quiet", "-o", str(run), "--"])
    assert (done.returncode, done.stderr) == (0, "")
    assert innermost(run) == {i: f"f{i}" for start in (100, 200, 300) for i in range(start, start + 20)}


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
