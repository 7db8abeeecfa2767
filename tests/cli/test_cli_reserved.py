# SPDX-License-Identifier: MIT
"""What commands say of reserved bytes, held against the events themselves."""
import json
import subprocess
from pathlib import Path

import pytest
from test_cli_truth import ask
from test_golden import BUILD


def make(folder, seed):
    """A trace of every kind of record; the program that makes it is built with the tests."""
    for place in (Path(BUILD), Path(BUILD) / "gcc"):
        maker = place / "make_trace_of_all"
        if maker.exists():
            subprocess.run([maker, folder / "made.trace", str(seed), "20000"], check=True)
            return
    pytest.fail(f"make_trace_of_all is not in {BUILD}: build with -Dtests=enabled", pytrace=False)


def number(query, folder):
    """The one number that a query gives."""
    return int(ask(f'tidemark query made.trace "{query}" --format csv', folder).splitlines()[1])


def size_text(count):
    """As tidemark prints sizes."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            number = count / (1 << shift)
            digits = 2 if shift >= 30 else 1
            return f"{number:.{digits}f} {unit}"
    return f"{count} B"


@pytest.mark.parametrize("seed", [1, 5])
def test_reserved(tmp_path, seed):
    make(tmp_path, seed)
    peak = json.loads(ask("tidemark peak made.trace --json", tmp_path))
    query = (
        "SELECT size FROM events WHERE kind = 'reserved' AND device = '{}' AND time_ns <= {}"
        " ORDER BY rowid DESC LIMIT 1"
    ).format(peak["device"], peak["time_ns"])
    assert peak["reserved"] == number(query, tmp_path)

    report = json.loads(ask("tidemark report made.trace --format json", tmp_path))
    assert report["processes"][0]["peak"]["reserved"] == peak["reserved"]
    text = ask("tidemark report made.trace", tmp_path).partition("\nPEAK\n")[2]
    assert text.startswith(f"  {size_text(peak['allocated'])} allocated and {size_text(peak['reserved'])} reserved on ")

    where = "WHERE device = 'cuda:0'"
    most = number(f"SELECT max(size) FROM events {where} AND kind = 'reserved'", tmp_path)
    assert number(f"SELECT max_reserved FROM devices {where}", tmp_path) == most
    assert number(f"SELECT max(peak_reserved) FROM steps {where}", tmp_path) == most
    assert number(f"SELECT max(max_reserved) FROM timeline(50) {where}", tmp_path) == most
