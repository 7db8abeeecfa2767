# SPDX-License-Identifier: MIT
"""leak RUN on programs written the way people write bugs: every verdict, line and rate (score_leaks.py).

missed/ has what earlier judges got wrong. fresh/ and harder/ were written before the judge that they are
asked of now, and scored once before anything was changed for them (docs/measurements.md)."""
import json
import subprocess
from pathlib import Path

import pytest
import score_leaks
from torch_kit import BUILD, PYTHON, TIDEMARK, environment

ALL = {path.stem: path for path in sorted(score_leaks.FOLDER.glob("*/*_*.py"))}
# What the judge does not find, and what it says instead.
NOT_FOUND = {
    "leak_text_cache": ["result"],  # outputs of each call, as results are gathered
    "leak_best_states": [],  # keeps less and less often, and in the last third nothing
    "leak_queue_behind": [],  # a queue of which older and older batches are taken
}
# A second line of theirs keeps less than the threshold, so its part is not in the sum.
PART_OF_RATE = {"leak_multi_task_logits"}


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """By program: its trace. The worker of leak_loader_worker_cache has one of its own."""
    folder = tmp_path_factory.mktemp("programs")
    run, pids = folder / "a.tmk", folder / "pids"
    done = subprocess.run([TIDEMARK, "run", "-q", "-o", str(run), "--", PYTHON,
                           str(Path(__file__).parent / "leaks" / "all_leaks.py"), *map(str, ALL.values())],
                          env=environment(PROGRAM_PIDS=str(pids), TIDEMARK_RING_DIR=str(folder)), capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    of_pid = {int(path.name.split(".")[2]): path for path in run.iterdir()}
    found = {}
    for line in pids.read_text(encoding="utf-8").splitlines():
        pid, program = line.split(" ", 1)
        found[Path(program).stem] = of_pid.pop(int(pid))
    (found["worker"],) = of_pid.values()
    return found


def test_programs():
    assert len([name for name in ALL if name.startswith("leak_")]) == 53
    assert len([name for name in ALL if name.startswith("clean_")]) == 30


@pytest.mark.parametrize("name", ALL)
def test_program(traces, name):
    """The worker leaks by time, so no rate is known of it."""
    row = score_leaks.score(BUILD, ALL[name], traces["worker" if name == "leak_loader_worker_cache" else name])
    if name in NOT_FOUND:
        assert (row["kind"], row["not_judged"]) == ("FN", NOT_FOUND[name])
        return
    assert row["kind"] == ("TP" if name.startswith("leak_") else "TN"), row
    assert row["rate_right"] in (None, name not in PART_OF_RATE), row
    assert row["line_right"] is not False, row


def say(command, trace, *options):
    """What a command prints, its lines joined."""
    done = subprocess.run([TIDEMARK, command, str(trace), *options], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("name,words", [
    ("leak_checkpoints_in_memory", ["| return {\"model\": copy.deepcopy(model.state_dict()),", "made in copy.py:", "called from leak_checkpoints_in_memory.py:",
                                    "271.9 KiB every 8th step"]),
    ("leak_in_train_function", ["made in steps 0, 1, 2, ...; all 100 of them are still alive at the end of step 99"]),
    ("leak_accelerating_cubic", ["1.1 MiB (1 block) a step now, faster and faster"]),
    ("leak_mixed_with_sawtooth", ["1000.0 KiB every 25th step", "made in steps 0, 25, 50, ...; all 12 of them"]),
    ("leak_memory_bank_in_forward", ["one block, made anew and larger ", "the model's inputs did not grow"]),
    ("clean_class_table", ["in 23 rises; not judged a leak: it grows slower and slower"]),
    ("clean_single_generation", ["not judged a leak: one block is made anew and larger each time, and the model's inputs grow too"]),
    ("clean_embedding_extraction", ["it is the output of each call of the model"]),
    ("clean_loading_only", ["the process has no steps and keeps most of what it allocates, as when it loads data"]),
])
def test_words(traces, name, words):
    text = say("leak", traces[name])
    for part in words:
        assert part in text, text


@pytest.mark.parametrize("name,verdict", [
    ("leak_accelerating_cubic", "memory kept after a step GROWS by 1.1 MiB, faster and faster, at leak_accelerating_cubic.py:14"),
    ("leak_in_train_function", "memory kept after a step GROWS by 268.5 KiB at leak_in_train_function.py:27"),
    ("clean_class_table", "rises; not judged a leak: it grows slower and slower, as a cache does that fills"),
])
def test_one_verdict(traces, name, verdict):
    """The report says the same in its text and in its JSON; where there is a leak, its section is there to look at."""
    text = say("report", traces[name], "--full")
    document = json.loads(subprocess.run([TIDEMARK, "report", "--json", str(traces[name])], capture_output=True, text=True,
                                         check=True).stdout)
    told = document["processes"][document["chosen"]]["leak_text"]
    assert verdict in told and verdict in text
    assert (": see LEAKS, above." in text) == name.startswith("leak_") == (" LEAKS " in text)
