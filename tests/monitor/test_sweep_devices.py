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
        assert json.loads(next(lines))["options"] == ["--devices=0,2", "--timeout=30s"]  # as --help has them
    again = machine.run("sweep", "--resume", "s")
    assert again.returncode == 0 and "have ended already" in again.stderr


def seen_by(machine, visible, devices):
    """What its configurations saw of the cards, with CUDA_VISIBLE_DEVICES set; or what was said."""
    done = machine.run("sweep", "--no-pictures", "-o", f"s-{visible}", "--devices", devices, "-p", "a=1..6", "--",
                       "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 0.05", CUDA_VISIBLE_DEVICES=visible)
    if done.returncode != 0:
        assert done.returncode == 2
        return done.stderr
    logs_of = (machine.folder / f"s-{visible}" / "logs").iterdir()
    return {log.read_text(encoding="ascii").splitlines()[-1] for log in logs_of}


def test_only_those_of_the_job(machine):
    """A cluster's CUDA_VISIBLE_DEVICES is the limit: by number, by id, by the beginning of an id."""
    machine.cards(["uuid GPU-aa1"], ["uuid GPU-bb2"], ["uuid GPU-cc3"], ["uuid GPU-dd4"])
    assert seen_by(machine, "2,3", "all") == {"GPU-cc3", "GPU-dd4"}
    assert seen_by(machine, "GPU-bb2", "all") == {"GPU-bb2"}
    assert seen_by(machine, "GPU-d,7,0", "all") == {"GPU-dd4"}
    assert seen_by(machine, "3,0", "3") == {"GPU-dd4"}
    assert "--devices: 0 is not among those of CUDA_VISIBLE_DEVICES=1,2;" in seen_by(machine, "1,2", "0,1")
    assert "not among those of CUDA_VISIBLE_DEVICES=-1;" in seen_by(machine, "-1", "all")


def test_parts_of_a_card(machine):
    """Of a card that is divided a job may have one part; 'all' is that one then."""
    machine.cards(["uuid GPU-aa1"], ["uuid GPU-bb2", "migmode 1", "mig 8589934592 Half", "mig 8589934592 Half"])
    ids = [device["id"] for device in machine.json("top", "--once", "--json")["devices"] if device["id"]]
    assert len(ids) == 4 and ids[:2] == ["GPU-aa1", "GPU-bb2"] and ids[2].startswith("MIG-")
    assert seen_by(machine, ids[3], "all") == {ids[3]}
    assert seen_by(machine, "1", "1:0") == {ids[2]}
    assert "--devices: 1:0 is not among those of" in seen_by(machine, "0," + ids[3], "1:0")


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
