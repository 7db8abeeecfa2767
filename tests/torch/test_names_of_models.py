# SPDX-License-Identifier: MIT
"""Names of models by what is trained and by the variables that hold them (owners/holders.py)."""
import pytest
from owners_kit import script, watched
from torch_kit import query


@pytest.fixture(scope="module")
def named(tmp_path_factory, counter):
    out, run, _ = watched(tmp_path_factory.mktemp("named"), counter, script("holders.py"))
    return run, out, dict(line.split() for line in out.splitlines() if " " in line)


def names(named, case, column="name"):
    run, _, pids = named
    return [row[0] for row in query(run, f"SELECT {column} FROM parameters WHERE pid = {pids[case]}")]


@pytest.mark.parametrize("case, models", [
    ("adversaries", ["G.0", "D.0"]), ("many", ["models.0", "models.1", "heads.cls", "heads.box"]),
    ("same", ["both.0", "both.1"]), ("child_of_that_name", ["head", "head#2"]), ("shared", ["actor", "critic"]),
    ("beside_a_proxy", ["first", "second"]), ("not_kept", ["model", "other"])])
def test_several_models(named, case, models):
    """Each has the name of the variable, the list or the dict that holds it; no two have the same."""
    assert sorted(names(named, case)) == sorted(f"{model}.{part}" for model in models for part in ("weight", "bias"))


@pytest.mark.parametrize("case, other", [("distilled", "teacher"), ("averaged", "ema")])
def test_the_one_that_is_trained(named, case, other):
    """It has the plain names, whichever is called first."""
    assert sorted(names(named, case)) == sorted(["weight", "bias", f"{other}.weight", f"{other}.bias"])


def test_called_while_it_is_made(named):
    """Parts that a model's constructor calls have one name each, the model's."""
    assert names(named, "made") == ["body.0.weight", "body.0.bias", "head.bias",
                                    "head.parametrizations.weight.original", "head.parametrizations.weight.0._u",
                                    "head.parametrizations.weight.0._v"]


def test_tied(named):
    """A row for each name, the same block, and one parameter in sums."""
    run, _, pids = named
    rows = query(run, f"SELECT name, tied, bytes, block_id FROM parameters WHERE pid = {pids['tied']}")
    assert [row[:3] for row in rows] == [["embed.weight", "0", "128"], ["head.weight", "1", "128"]]
    assert rows[0][3] == rows[1][3] != ""
    assert query(run, f"SELECT module, parameter_bytes FROM modules WHERE pid = {pids['tied']} AND parameter_bytes > 0"
                 ) == [["embed", "128"]]


def test_nothing_is_kept(named):
    """Looking into a function's variables keeps none of them alive."""
    lines = named[1].splitlines()
    assert lines[lines.index("gone") + 1] == "after"
