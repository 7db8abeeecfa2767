# SPDX-License-Identifier: MIT
"""Native stacks from end to end: a C program with a known chain of calls, watched, and its stacks
read back with functions and lines; a forked child's too."""
import csv
import io
import re
import subprocess

import pytest

from fault_kit import REPO, program

SOURCE = """
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tidemark/tidemark.h>
static char block[64];
__attribute__((noinline)) static void innermost(void)
{
    tidemark_alloc(TIDEMARK_HOST, block, 64); /* site */
    __asm__ volatile("");
}
__attribute__((noinline)) static void middle(void)
{
    innermost(); /* middle */
    __asm__ volatile("");
}
__attribute__((noinline)) static void outer(void)
{
    middle(); /* outer */
    __asm__ volatile("");
}
int main(void)
{
    outer(); /* main */
    if (fork() == 0) {
        outer(); /* child */
        return 0;
    }
    return wait(NULL) < 0;
}
"""


def line_of(mark):
    return next(i for i, line in enumerate(SOURCE.split("\n"), 1) if f"/* {mark} */" in line)


@pytest.fixture(name="rows")
def recorded(watch, tmp_path):
    """Frames of the run by process: {pid: [(depth, file, line, function)]}."""
    source, binary = tmp_path / "native.c", tmp_path / "native"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-g", "-O2", "-fomit-frame-pointer", "-fPIE", "-pie", "-Wl,--build-id",
                    "-I", REPO / "include", source, "-o", binary], check=True)
    done = watch("env", "TIDEMARK_NATIVE=1", binary)
    assert done.returncode == 0, done.stderr

    def rows(**environment):
        env = dict(watch.environment(preload=False), **environment)
        out = subprocess.run([program("tidemark"), "query", watch.run, "--format", "csv",
                              "SELECT pid, depth, file, line, function FROM frames "
                              "ORDER BY pid, depth"],
                             env=env, check=True, capture_output=True, text=True).stdout
        found = {}
        for pid, *frame in list(csv.reader(io.StringIO(out)))[1:]:
            found.setdefault(pid, []).append(frame)
        return found
    return rows


def test_lines(rows):
    found = rows()
    assert len(found) == 2
    ends = set()
    for frames in found.values():
        assert [frame[0] for frame in frames] == [str(i) for i in range(len(frames))]
        assert [(int(line), function) for _, _, line, function in frames[:3]] == [
            (line_of("site"), "innermost"), (line_of("middle"), "middle"),
            (line_of("outer"), "outer")]
        assert all(frame[1].endswith("/native.c") for frame in frames[:4])
        assert frames[3][3] == "main"
        ends.add(int(frames[3][2]))
        assert re.fullmatch(r"_start\+0x[0-9a-f]+", frames[-1][3])
    assert ends == {line_of("main"), line_of("child")}


def test_without_symbols(rows):
    for frames in rows(TIDEMARK_NO_SYMBOLS="1").values():
        assert frames[0][3] == "innermost"  # recorded by name
        assert {frame[3] for frame in frames[1:]} == {""}
        assert frames[1][1].endswith("/native") and frames[1][2] == ""
