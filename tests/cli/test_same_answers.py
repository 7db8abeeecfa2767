# SPDX-License-Identifier: MIT
"""Two views of one run give the same answer."""
import json
import os
import subprocess

from test_golden import ROOT, shell

# Keeps 1 MiB a step, runs out of memory in step 40, lets go of everything, as a Python program does
# when the exception unwinds, and goes on for a while. Only the OOM tells that from a program that
# had gathered results and was done with them.
UNWOUND = r"""
#include <stdint.h>
#include <unistd.h>
#include "tidemark/tidemark.h"

#define MIB ((uint64_t)1 << 20)

static void *at(uint64_t mib)
{
    return (void *)(uintptr_t)((1000 + mib) * MIB);
}

int main(void)
{
    tidemark_alloc(TIDEMARK_HOST, at(200), MIB);
    tidemark_tag(TIDEMARK_HOST, at(200), TIDEMARK_PARAMETER, "weight");
    for (uint64_t step = 0; step < 40; step++) {
        tidemark_alloc(TIDEMARK_HOST, at(step), MIB);
        tidemark_alloc(TIDEMARK_HOST, at(100), 3 * MIB);
        tidemark_free(TIDEMARK_HOST, at(100));
        tidemark_step((int64_t)step);
    }
    tidemark_oom(TIDEMARK_HOST, 3 * MIB, 42 * MIB);
    for (uint64_t step = 0; step < 40; step++)
        tidemark_free(TIDEMARK_HOST, at(step));
    usleep(300000);
    tidemark_free(TIDEMARK_HOST, at(200));
    return 0;
}
"""


def test_leak_and_report_after_an_oom(tmp_path):
    (tmp_path / "unwound.c").write_text(UNWOUND)
    subprocess.run(["cc", "-I", os.path.join(ROOT, "include"), "-o", "unwound", "unwound.c"], cwd=tmp_path,
                   check=True)
    assert shell("tidemark run -q -o a.tmk -- ./unwound", tmp_path).returncode == 0
    alone = json.loads(shell("tidemark leak a.tmk --json", tmp_path).stdout)
    (process,) = json.loads(shell("tidemark report a.tmk --json", tmp_path).stdout)["processes"]
    (leak,) = alone["leaks"]
    (reported,) = process["leaks"]
    assert (leak["bytes_per_step"], leak["line"]) == (1 << 20, 18)
    same = ("file", "line", "function", "category", "bytes_per_step", "blocks_per_step", "first_step")
    assert {key: reported[key] for key in same} == {key: leak[key] for key in same}
    assert "unwound.c:18" in shell("tidemark report a.tmk", tmp_path).stdout
