# SPDX-License-Identifier: MIT
"""Two views of one run give the same answer."""
import json
import os
import re
import shutil
import subprocess

import pytest

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


# Keeps more all the time, without steps, then lets go of it and goes on.
LET_GO = r"""
#include <stdint.h>
#include <unistd.h>
#include "tidemark/tidemark.h"
int main(void)
{
    for (uint64_t i = 1; i <= 100; i++) {
        tidemark_alloc(TIDEMARK_HOST, (void *)(uintptr_t)(i << 24), (uint64_t)1 << 20);
        tidemark_alloc(TIDEMARK_HOST, (void *)(uintptr_t)(i << 40), (uint64_t)3 << 20);
        tidemark_free(TIDEMARK_HOST, (void *)(uintptr_t)(i << 40));
        usleep(5000);
    }
    for (uint64_t i = 1; i <= 100; i++)
        tidemark_free(TIDEMARK_HOST, (void *)(uintptr_t)(i << 24));
    for (uint64_t i = 1; i <= 40; i++) {
        tidemark_alloc(TIDEMARK_HOST, (void *)(uintptr_t)(i << 40), (uint64_t)3 << 20);
        tidemark_free(TIDEMARK_HOST, (void *)(uintptr_t)(i << 40));
        usleep(5000);
    }
    return 0;
}
"""


def test_leak_that_was_let_go_without_steps(tmp_path):
    (tmp_path / "letgo.c").write_text(LET_GO)
    subprocess.run(["cc", "-I", os.path.join(ROOT, "include"), "-o", "letgo", "letgo.c"], cwd=tmp_path, check=True)
    summary = " ".join(shell("tidemark run -o a.tmk -- ./letgo", tmp_path).stderr.split())
    (process,) = json.loads(shell("tidemark report a.tmk --json", tmp_path).stdout)["processes"]
    assert re.fullmatch(r"memory kept after a minute GREW by [\d.]+ GiB at letgo.c:8", process["leak_text"])
    assert process["leak_text"] in summary


# Keeps a fiftieth of the host's memory a step, and ends before it is full. Before a size: "join" puts
# what it has kept into one block at the end, as torch.cat() does with results.
GROWING = r"""
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include "tidemark/tidemark.h"

int main(int argc, char **argv)
{
    uint64_t size = strtoull(argv[argc - 1], NULL, 10) / 50;
    for (uint64_t step = 0; step < 44; step++) {
        tidemark_alloc(TIDEMARK_HOST, (void *)(uintptr_t)(size * (step + 1)), size);
        usleep(10000);
        tidemark_step((int64_t)step);
    }
    if (argc > 2)
        tidemark_alloc(TIDEMARK_HOST, (void *)(uintptr_t)(size * 100), size * 44);
    return 0;
}
"""

# By the headings of `report`: where its JSON (the whole, and the chosen process) has the same.
SECTIONS = {
    "PROCESSES": lambda whole, chosen: len(whole["processes"]) > 1,
    "OUT OF MEMORY": lambda whole, chosen: chosen["ooms"],
    "WHY IT RAN OUT": lambda whole, chosen: whole["explain"]["ooms"],
    "WHAT WOULD HAVE HELPED": lambda whole, chosen: whole["explain"]["ooms"][0]["fixes"],
    "WHAT WAS ALLOCATED THE LAST TIME": lambda whole, chosen: chosen["ooms"][-1]["by_category"],
    "WHAT WAS ALLOCATED THEN": lambda whole, chosen: chosen["ooms"][-1]["by_category"],
    "PEAK": lambda whole, chosen: chosen["peak"]["by_line"],
    "LEAKS": lambda whole, chosen: chosen["leaks"],
    "GROWTH THAT IS NOT JUDGED A LEAK": lambda whole, chosen: chosen["not_judged"],
    "DEVICE MEMORY": lambda whole, chosen: chosen["accounting"],
    "CACHED MEMORY": lambda whole, chosen: chosen["fragmentation"],
    "MEMORY OVER TIME": lambda whole, chosen: chosen["timeline"],
    "STEPS": lambda whole, chosen: chosen["steps"]["rows"],
    "FORECAST": lambda whole, chosen: chosen["forecast"]["advice"],
    "LINES THAT ALLOCATE MOST": lambda whole, chosen: chosen["sites"],
    "STILL ALIVE AT THE END": lambda whole, chosen: chosen["live_sites"],
    "MARKS": lambda whole, chosen: chosen["marks"],
    "HOW COMPLETE THIS IS": lambda whole, chosen: "doubts" in chosen["quality"],
}


def report_both(run, folder):
    """Headings, text with its lines joined, and JSON of a run's report."""
    text = shell(f"tidemark report {run} --full", folder).stdout
    whole = json.loads(shell(f"tidemark report {run} --json", folder).stdout)
    headings = re.findall(r"^[A-Z][A-Z ]+[A-Z](?= \(|[,:]|$)", text, re.MULTILINE)
    for heading in headings:
        assert SECTIONS[heading](whole, whole["processes"][whole["chosen"]]), (run, heading)
    return headings, " ".join(text.split()), whole


def test_json_of_a_report_has_all_its_sections(tmp_path):
    seen = set()
    for name in ("leak", "fragmentation", "oom_growth"):
        shutil.copy(os.path.join(ROOT, "tests", "data", "ooms", f"{name}.trace"), tmp_path)
        headings, text, whole = report_both(f"{name}.trace", tmp_path)
        explained = whole["explain"]
        alone = json.loads(shell(f"tidemark explain {name}.trace --json", tmp_path).stdout)
        assert dict(explained, ranks=whole["ranks"]) == alone  # a report has the ranks at its top
        first = explained["ooms"][0]
        assert "WHY IT RAN OUT" in headings and f": {first['cause']} " in text
        for fix in first["fixes"][:3]:
            title, _, details = fix["text"].partition(". ")
            assert title in text and details in text
        rows = shell(f"tidemark report {name}.trace --format csv", tmp_path).stdout.splitlines()
        assert f"explain.ooms,0,cause,{first['cause']}" in rows
        seen.update(headings)
    (tmp_path / "growing.c").write_text(GROWING)
    subprocess.run(["cc", "-I", os.path.join(ROOT, "include"), "-o", "growing", "growing.c"], cwd=tmp_path,
                   check=True)
    shell("tidemark run -q -o two.tmk -- sh -c './growing 50000; ./growing 60000'", tmp_path)
    headings_of_two, _, whole = report_both("two.tmk", tmp_path)
    memory = whole["processes"][0]["forecast"]["capacity"]
    assert shell(f"tidemark run -q -o growing.tmk -- ./growing {memory}", tmp_path).returncode == 0
    headings, _, whole = report_both("growing.tmk", tmp_path)
    assert "FORECAST" in headings and "LEAKS" in headings and whole["explain"] is None
    assert shell("tidemark run -q -o joined.tmk -- ./growing join 500000000", tmp_path).returncode == 0
    headings_of_joined, _, whole = report_both("joined.tmk", tmp_path)
    assert [doubt["reason"] for doubt in whole["processes"][0]["not_judged"]] == ["joined"]
    for run, cause in (("growing.tmk", "leak"), ("joined.tmk", "growth")):  # as `leak` judges: so does the table forecast
        (process,) = json.loads(shell(f"tidemark report {run} --json", tmp_path).stdout)["processes"]
        assert process["forecast"]["cause"] == cause
        assert shell(f"tidemark query {run} 'SELECT cause FROM forecast' --format csv", tmp_path).stdout.split() == ["cause", cause]
    assert seen.union(headings, headings_of_two, headings_of_joined) == set(SECTIONS) - {"WHAT WAS ALLOCATED THE LAST TIME"}


# The verdict: how each run is recorded, the word for it, how its sentence begins, and the next command.
VERDICTS = {
    "healthy": ("tinytrain --steps 12 --quiet", "Healthy: memory kept after a step is steady; the peak was 7.0 MiB on cpu in step 1",
                "peak"),
    "leaks": ("tinytrain --steps 20 --leak 64KiB --quiet",
              "Leak: memory kept after a step GROWS by 64.0 KiB at tinytrain.c:", "leak"),
    "ran_out": ("tinytrain --spike 5 --capacity 12MiB --quiet",
                "Out of memory on cpu in step 5: the request for 184.0 KiB at tinytrain_model.c:", "explain"),
    "killed": ("sh -c 'tinytrain --steps 1000000 --layers 1 --dim 8 --heads 1 --seq 8 --batch 1 --quiet & sleep 0.5; kill -9 $!; "
               "wait'", "Killed after ", "peak"),
    "too_short": ("tinytrain --steps 3 --quiet", "Too short to judge: 2 steps ended, and a verdict on leaks takes 10; the peak was ",
                  "peak"),
    "ranks": ("sh -c 'RANK=0 WORLD_SIZE=2 tinytrain --steps 20 --leak 64KiB --quiet; RANK=1 WORLD_SIZE=2 tinytrain --quiet --steps 20 "
              "--batch 16'", "Leak: memory kept after a step GROWS by 64.0 KiB at tinytrain.c:", "leak"),
}


def joined(text):
    return " ".join(text.split())


@pytest.mark.parametrize("name", VERDICTS)
def test_one_verdict(name, tmp_path):
    """The summary of run, report in each format, leak and explain say it in the same words, and name the same next command."""
    command, begin, verb = VERDICTS[name]
    summary = joined(shell(f"tidemark run -o a.tmk -- {command}", tmp_path).stderr)
    health = json.loads(shell("tidemark report a.tmk --json", tmp_path).stdout)["health"]
    assert health["verdict"] == ("leaks" if name == "ranks" else name)
    assert health["text"].startswith(begin) and health["next"] == f"tidemark {verb} a.tmk"
    text, page = health["text"], joined(shell("tidemark report a.tmk", tmp_path).stdout)
    assert f"verdict {text} " in summary and summary.endswith(f" next: {health['next']}")
    assert f" {text}. " in page and f" next: {health['next']} " in page
    plain = shell("tidemark report a.tmk --format md", tmp_path).stdout.replace("\\", "")
    assert f"\n{text}.\n" in plain and f"\nnext: {health['next']}\n" in plain
    leak = joined(shell("tidemark leak a.tmk", tmp_path).stdout)
    if health["verdict"] == "leaks":
        assert text.endswith(" of rank 0") == (name == "ranks")
        assert leak.startswith(text.replace("Leak", "leak", 1))
    else:
        assert leak.startswith("not enough steps" if name == "too_short" else "clean: ")
    explained = joined(shell("tidemark explain a.tmk", tmp_path).stdout)
    assert explained.startswith(f"{text}. ") == (name == "ran_out")
    assert shell(health["next"], tmp_path).stdout
