# SPDX-License-Identifier: MIT
"""What inference keeps from call to call is kv_cache, to the byte (owners/caches.py)."""
import pytest
from owners_kit import script, watched
from torch_kit import check, query


@pytest.fixture(scope="module")
def caches(tmp_path_factory, counter):
    out, run, _ = watched(tmp_path_factory.mktemp("caches"), counter, script("caches.py"))
    check(run)
    return run, {case: (pid, int(held)) for case, pid, held in map(str.split, out.splitlines())}


@pytest.mark.parametrize("case", ["grown", "placed", "sessions", "own", "given", "none"])
def test_bytes_at_the_end(caches, case):
    run, cases = caches
    pid, held = cases[case]
    assert query(run, "SELECT coalesce(sum(size), 0) FROM allocations WHERE category = 'kv_cache' AND "
                      f"free_ns IS NULL AND pid = {pid}") == [[str(held)]]


def test_grown_copies_that_went(caches):
    """Six tokens, two layers, keys and values: all 24 were caches, not only the last ones."""
    run, cases = caches
    assert query(run, "SELECT tensor, count(*), sum(size) FROM allocations WHERE category = 'kv_cache' AND "
                      f"pid = {cases['grown'][0]} GROUP BY 1") in (
        [["cache", "24", str(4 * 128 * (1 + 2 + 3 + 4 + 5 + 6))]],)
