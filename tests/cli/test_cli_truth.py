# SPDX-License-Identifier: MIT
"""A program that counts for itself: what the commands say must be its own numbers, exactly."""
import csv
import io
import json

import pytest
from test_golden import shell

WORKLOADS = {
    "plain": "--steps 6",
    "threads": "--steps 6 --threads 4 --batch 16",
    "leak": "--steps 6 --leak 100KiB",
    "spike": "--steps 6 --spike 3",
    "oom": "--steps 6 --spike 3 --capacity 12MiB",
    "small": "--steps 2000 --layers 1 --dim 8 --heads 1 --seq 8 --batch 1",
}


def ask(line, folder):
    done = shell(line, folder)
    assert done.stdout, f"{line}\n{done.stderr}"
    return done.stdout


def by_key(rows):
    return {row["key"]: row["bytes"] for row in rows}


@pytest.mark.parametrize("flags", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_counts(flags, tmp_path):
    said = ask(f"tidemark run -q -o a.tmk -- tinytrain --quiet --count {flags}", tmp_path)
    truth = json.loads(said.splitlines()[-1])

    peak = json.loads(ask("tidemark peak a.tmk --json", tmp_path))
    assert peak["allocated"] == truth["peak_bytes"]
    assert by_key(peak["by"]) == truth["peak_by_category"]
    assert peak["device"] == "cpu" and peak["reserved"] is None and peak["kept"] is None

    for key in ("module", "component", "stage", "step", "stack", "tensor"):
        rows = json.loads(ask(f"tidemark peak a.tmk --by {key} --json", tmp_path))["by"]
        assert sum(row["bytes"] for row in rows) == truth["peak_bytes"], key

    process = json.loads(ask("tidemark report a.tmk --json", tmp_path))["processes"][0]
    assert process["allocations"] == truth["allocations"]
    assert process["frees"] == truth["frees"]
    assert process["live_blocks"] == truth["allocations"] - truth["frees"]
    assert process["peak"]["allocated"] == truth["peak_bytes"]
    assert by_key(process["peak"]["by_category"]) == truth["peak_by_category"]
    assert sum(site["allocations"] for site in process["sites"]) == truth["allocations"]
    assert max(part["max_allocated"] for part in process["timeline"]) == truth["peak_bytes"]
    assert process["quality"]["complete"] is True

    check = json.loads(ask("tidemark check a.tmk --json", tmp_path))["traces"][0]
    assert check["ok"] and check["allocations"] == truth["allocations"]


def test_json_and_csv_agree(tmp_path):
    """The CSV has every value of the JSON, at its place."""
    ask("tidemark run -q -o a.tmk -- tinytrain --quiet --count --steps 3 --capacity 8MiB", tmp_path)
    tree = json.loads(ask("tidemark report a.tmk --format json", tmp_path))
    rows = list(csv.DictReader(io.StringIO(ask("tidemark report a.tmk --format csv", tmp_path))))

    def walk(value, names, numbers, key):
        if isinstance(value, dict):
            for inner, part in value.items():
                yield from walk(part, names + ([key] if key else []), numbers, inner)
        elif isinstance(value, list):
            for i, part in enumerate(value):
                for row in walk(part, names + [key], numbers + [str(i)], None):
                    yield row
        else:
            text = "" if value is None else str(value).lower() if isinstance(value, bool) \
                else str(value)
            yield {"section": ".".join(names), "item": ".".join(numbers), "key": key, "value": text}

    wanted = list(walk(tree, [], [], None))
    assert len(wanted) > 500
    assert rows == wanted
