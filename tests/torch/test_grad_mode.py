# SPDX-License-Identifier: MIT
"""In which grad mode each block was made, against torch's own answer (owners/modes.py)."""
import subprocess

import pytest
from owners_kit import script, watched
from torch_kit import check, query

INNERMOST = ("SELECT a.size, coalesce((SELECT replace(r.name, 'enable_grad', 'on') FROM ranges r WHERE r.kind = 'mode' "
             "AND r.start_ns <= a.alloc_ns AND coalesce(r.end_ns, a.alloc_ns + 1) > a.alloc_ns "
             "ORDER BY r.depth DESC LIMIT 1), 'on') FROM allocations a "
             "WHERE a.size >= 100064 AND a.size < 200000 ORDER BY a.size")


@pytest.fixture(scope="module")
def modes(tmp_path_factory, counter):
    out, run, _ = watched(tmp_path_factory.mktemp("modes"), counter, script("modes.py"))
    return run, [line.split() for line in out.splitlines()]


def test_every_block_has_its_mode(modes):
    run, said = modes
    assert len(said) > 40 and {mode for _, mode in said} == {"on", "no_grad", "inference_mode"}
    assert query(run, INNERMOST) == said


def test_modes_disturb_no_other_range(modes):
    """What a model's call and a step consist of is the same, however modes change inside."""
    run, _ = modes
    assert query(run, "SELECT stage, count(*) FROM ranges WHERE kind = 'module' AND name = '0' AND module = '0' "
                      "GROUP BY 1 ORDER BY 1") == [["backward", "5"], ["eval", "3"], ["forward", "6"]]
    assert query(run, "SELECT count(*) FROM ranges WHERE kind = 'mode' AND stage IN ('optimizer', 'backward')") == [["0"]]
    check(run)


def test_the_second_reader_agrees(modes):
    run, _ = modes
    for trace in run.glob("*.trace"):
        subprocess.run(["/usr/bin/python3", "tests/format_reader.py", "--check", trace], check=True)
