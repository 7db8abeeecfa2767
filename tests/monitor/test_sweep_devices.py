# SPDX-License-Identifier: MIT
"""`tidemark sweep --devices`: one configuration on each card at once, and each sees its card alone."""
import json

# Waits until as many have begun as there are cards: that only ends when they run at once.
TRAIN = """touch began.$TIDEMARK_A
[ $TIDEMARK_A -gt 2 ] || while [ ! -e began.1 ] || [ ! -e began.2 ]; do sleep 0.01; done
echo $TIDEMARK_A $CUDA_VISIBLE_DEVICES"""


def logs(folder, n):
    return [(folder / "s" / "logs" / f"000{i}.log").read_text(encoding="ascii").splitlines()[-1].split()
            for i in range(1, n + 1)]


def test_one_on_each(machine):
    machine.cards(["uuid GPU-aa"], ["uuid GPU-bb"], ["uuid GPU-cc"])
    done = machine.run("sweep", "--no-pictures", "-o", "s", "--devices", "0,2", "--timeout", "30s", "-p", "a=1,2,3", "--",
                       "sh", "-c", TRAIN)
    assert done.returncode == 0, done.stderr
    assert "several at once" in done.stderr
    seen = logs(machine.folder, 3)
    assert [words[0] for words in seen] == ["1", "2", "3"]
    assert {seen[0][1], seen[1][1]} == {"GPU-aa", "GPU-cc"} and seen[2][1] in ("GPU-aa", "GPU-cc")
    with open(machine.folder / "s" / "sweep.jsonl", encoding="utf-8") as lines:
        assert json.loads(next(lines))["options"] == ["--timeout=30s", "--devices=0,2"]
    again = machine.run("sweep", "--resume", "s")
    assert again.returncode == 0 and "have ended already" in again.stderr


def test_no_such_device(machine):
    machine.cards(["uuid GPU-aa"])
    done = machine.run("sweep", "--devices", "1", "-p", "a=1", "--", "true")
    assert done.returncode == 2 and done.stderr.startswith("tidemark: --devices: ")
    done = machine.run("sweep", "--devices", "0", "--jobs", "2", "-p", "a=1", "--", "true")
    assert done.returncode == 2 and "--jobs is for sweeps without it" in done.stderr
    assert not (machine.folder / "s").exists()


def test_no_card(machine):
    done = machine.run("sweep", "--devices", "all", "-p", "a=1", "--", "true")
    assert done.returncode == 2 and "--jobs N" in done.stderr
