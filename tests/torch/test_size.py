# SPDX-License-Identifier: MIT
"""What an event costs in the file. In a short run the header and the definitions weigh most: they
too must fit into the bound."""
import subprocess

import pytest
from torch_kit import PYTHON, TIDEMARK, WORKLOADS, check, environment, query

BOUND = 8  # bytes of the file for each of its events
PROGRAMS = {
    "leak_graph": ["--device", "cpu"],
    "encoder": ["--device", "cpu", "--steps", "4", "--dim", "64", "--batch", "4", "--seq", "32"],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_bytes_an_event(program, tmp_path):
    run = tmp_path / "a.tmk"
    subprocess.run([TIDEMARK, "run", "--quiet", "-o", str(run), "--", PYTHON,
                    str(WORKLOADS / (program + ".py")), *PROGRAMS[program]],
                   env=environment(), capture_output=True, timeout=120, check=True)
    check(run)
    [[n_events]] = query(run, "SELECT count(*) FROM events")
    [trace] = run.glob("*.trace")
    assert 1000 < int(n_events) < 30_000
    assert trace.stat().st_size / int(n_events) < BOUND
