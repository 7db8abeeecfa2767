# SPDX-License-Identifier: MIT
"""`tidemark sweep`: configurations that fail are outcomes, a sweep that is killed goes on as if it had
not been, and no process is left behind."""
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from pictures import check_panels, overlaps, texts_of
from test_cli_run import wait_until
from test_golden import BUILD, ROOT, SMALL, environment, shell

TIDEMARK = os.path.join(BUILD, "tidemark")
TINY = "tinytrain --steps 2 --dim 16 --heads 1 --quiet"

# Trains, but: batch 4 with seq 8 ends with status 3, batch 2 with seq 16 of a signal; in both it
# says why. Where the file `kill` is, it goes and the sweep is killed with this configuration.
TRAIN = """#!/bin/sh
if [ "$TIDEMARK_CELL" = 11 ] && rm kill 2>/dev/null; then
    sleep 1000 &
    setsid sleep 1000 &
    kill -9 "$(ps -o ppid= -p $PPID)"
    sleep 1000
fi
case $1.$2 in
8.4) echo "no such thing" >&2; exit 3 ;;
16.2) echo "this went wrong" >&2; kill -SEGV $$ ;;
esac
exec tinytrain --steps 2 --dim 16 --heads 1 --quiet --capacity 400KiB --seq "$1" --batch "$2" \
    --layers "$TIDEMARK_LAYERS"
"""
FILES = set("""memory_profile_results.json memory_profile_summary.csv memory_analysis_overview.png
    memory_heatmap.png detailed_memory_results.json detailed_memory_analysis.png
    operation_level_breakdown.png index.html""".split())
GRID = "-p seq=8,16,32 -p batch=1,2,4 -p layers=1,2 -- ./train.sh {seq} {batch}"


def journal(folder):
    with open(folder / "sweep.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def cells(folder):
    """By number, without what differs from run to run."""
    found = {}
    for cell in journal(folder)[1:]:
        for name in ("ns", "ranks"):
            cell[name] = len(cell[name]) if name == "ranks" else None
        for stage in cell["stages"]:
            stage["ns"] = None
        found[cell["cell"]] = cell
    return found


def sleepers(folder):
    """Processes that a configuration has started there and that should have been ended."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            here = os.readlink(f"/proc/{process}/cwd") == str(folder)
            with open(f"/proc/{process}/comm", encoding="ascii") as comm:
                found += [process] if here and comm.read() == "sleep\n" else []
        except OSError:
            pass  # it has ended, or is not ours
    return found


@pytest.fixture(name="folder")
def folder_fixture(tmp_path):
    script = tmp_path / "train.sh"
    script.write_text(TRAIN, encoding="ascii")
    script.chmod(0o755)
    return tmp_path


def sweep(line, folder, status=0, plain="--no-pictures", **more):
    done = subprocess.run(["bash", "-c", f"exec {TIDEMARK} sweep {plain} {line}"], cwd=folder, text=True,
                          capture_output=True, timeout=240, check=False, stdin=subprocess.DEVNULL,
                          env={**environment(), **more})
    assert done.returncode == status, done.stderr
    return done


def check_pictures(folder, cut):
    """In each graph there is something to be seen; and in their twins of texts, what should be said."""
    def path(name):
        return folder / "cut" / f"{name}.png"
    # seq by batch, batch by seq, and layers, in the last row alone
    assert check_panels(path("memory_analysis_overview"), 2, 2, 0.001, empty=[(1, 1)]) == (2560, 1510)
    assert check_panels(path("memory_heatmap"), 2, 1, 0.1) == (2560, 654)
    for name in ("detailed_memory_analysis", "operation_level_breakdown"):
        width, height = check_panels(path(name), 2, 1, 0.05)
        assert width == 2560 and 700 < height < 1400
    for i in (i for i in cut if cut[i]["run"]):
        assert check_panels(path(f"memory_timeline_config_{i + 1}"), 1, 1, 0.1, every=8) == (2000, 960)
    said = {
        "overview": "seq=8 seq=16 seq=32 batch=1 batch=2 batch=4 1 2 4 8 16 32".split() + ["seq, with layers=1", "KiB"],
        "heatmap": "OOM failed seq batch layers=1 layers=2 1 2 4 8 16 32 KiB".split(),
        "components": ["seq=32 batch=4 layers=1", "by component, KiB", "by category, KiB", "attention", "mlp",
                       "parameter", "activation"],
        "operations": ["seq=8 batch=1 layers=2", "forward", "backward", "most allocated in each stage, KiB"]}
    for kind, expected in said.items():
        shell(f"tidemark plot cut --kind {kind} -o twin.svg", folder)
        found = texts_of(folder / "twin.svg")
        assert set(expected) <= set(found), (kind, set(expected) - set(found), found)
        assert not overlaps(folder / "twin.svg"), kind
        assert sum(": train.sh {seq} {batch}" in text for text in found) == 1, found
        if kind == "heatmap":
            assert found.count("OOM") == 1 and found.count("failed") == 4


def test_killed_and_resumed(folder):
    """Three by three by two, with failures, killed once: the same as one that was not."""
    sweep(f"-o whole {GRID}", folder, status=1)
    (folder / "kill").touch()
    killed = sweep(f"-o cut {GRID}", folder, status=-signal.SIGKILL)
    assert "[12/18]" in killed.stderr and "[13/18]" not in killed.stderr
    wait_until("the end of what ran", lambda: not sleepers(folder))
    assert len(journal(folder / "cut")) == 13
    with open(folder / "cut" / "sweep.jsonl", "a", encoding="utf-8") as torn:
        torn.write('{"cell": 10, "outco')
    resumed = sweep("--resume cut --detailed", folder, status=1, plain="")
    assert "going on with the sweep in" in resumed.stderr and "12 of 18" in resumed.stderr
    assert "[12/18]" not in resumed.stderr and "[13/18]" in resumed.stderr
    whole, cut = cells(folder / "whole"), cells(folder / "cut")
    assert whole == cut and sorted(cut) == list(range(18))
    outcomes = [cut[i]["outcome"] for i in range(18)]
    assert outcomes == ["done"] * 4 + ["failed"] * 2 + ["done"] * 2 + ["failed"] * 2 + [
        "done"] * 7 + ["oom"]
    assert cut[4]["exit_status"] == 3
    assert cut[4]["message"] == "ended with status 3: no such thing"
    assert cut[8]["exit_status"] == 139
    assert cut[8]["message"].startswith("was ended by signal 11 (")
    assert cut[8]["message"].endswith("; it last said: this went wrong")
    assert cut[17]["message"].startswith("ran out of memory in step 0 (")
    assert cut[17]["capacity"] == 400 << 10
    for cell in cut.values():
        for by in ("categories", "components", "at_stage"):
            assert sum(cell[by].values()) == (cell["peak_allocated"] or 0)
        for by in ("components", "at_stage"):  # `unknown` is what they were filled up with
            assert "unknown" not in cell[by]
        assert (cell["peak_allocated"] is None) == (cell["outcome"] == "failed")
    assert [stage["name"] for stage in cut[0]["stages"]] == [
        "data", "model_load", "forward", "backward", "optimizer"]
    made = set(os.listdir(folder / "cut")) - {"logs", "runs", "sweep.jsonl"}
    assert made == FILES | {f"memory_timeline_config_{i + 1}.png" for i in cut if cut[i]["run"]}
    assert all((folder / "cut" / name).stat().st_size > 100 for name in made)
    check_pictures(folder, cut)
    assert sweep("--resume cut", folder, status=1).stderr.startswith(
        f"tidemark: all 18 configurations in {folder}/cut have ended already")


def test_a_run_is_as_tidemark_run_makes_it(folder):
    sweep(f"-o s -p seq=8,16 -- {TINY} --seq {{seq}}", folder)
    cell = cells(folder / "s")[1]
    peak = json.loads(shell("tidemark peak --json s/runs/0002.tmk", folder).stdout)
    assert cell["run"] == "runs/0002.tmk" and cell["device"] == "cpu"
    assert cell["peak_allocated"] == peak["allocated"] and cell["peak_step"] == peak["step"]
    assert cell["categories"] == {row["key"]: row["bytes"] for row in peak["by"]}
    assert (folder / "s" / "logs" / "0002.log").read_text(encoding="utf-8").startswith(
        f"# seq=16\n# {TINY} --seq 16\n")


def test_detail_given_up(folder):
    """A peak whose blocks --max-size gave up has its size, and no shares that were of another."""
    sweep(f"-o s -p steps=12000 --max-size 4MiB -- tinytrain --steps {{steps}} --spike 3 {SMALL}", folder)
    cell = cells(folder / "s")[0]
    most = shell("tidemark query --format csv s/runs/0001.tmk 'SELECT max(peak_allocated) m, count(step) n "
                 "FROM steps'", folder).stdout.split()
    assert most == ["m,n", f"{cell['peak_allocated']},{cell['n_steps']}"]
    assert cell["categories"] == cell["components"] == cell["at_stage"] == {}


def test_recording_that_stopped(folder):
    """A peak that was not seen to its end is not known; it is neither told nor fitted."""
    line = f"-o s -p limit=8,300,unlimited -- sh -c 'ulimit -f {{limit}}; exec {TINY} --seq 16 --steps 300'"
    done = sweep(line, folder)
    found = cells(folder / "s")
    for i in (0, 1):
        assert found[i]["outcome"] == "done" and found[i]["peak_allocated"] is None
        assert re.match(r"recording stopped after .*: the process's file-size limit \(ulimit -f\) was reached; the "
                        r"peak is not known", found[i]["message"])
        assert found[i]["categories"] == {} and found[i]["stages"] == []
    assert found[1]["message"].endswith(" were seen)") and found[1]["run"] == "runs/0002.tmk"
    assert found[2]["peak_allocated"] > 0 and found[2]["message"] is None
    assert "the peak is not known" in done.stderr and "Of 2 that ended well the peak is not" in done.stdout
    (folder / "s" / "index.html").unlink()
    (folder / "s" / "index.html").mkdir()
    failed = sweep("--resume s", folder, 1)
    assert "not all files could be written" in failed.stderr and "begin with index.html" not in failed.stderr


def test_nothing_reported(folder):
    """Programs that end well and allocate nothing that is seen: that is said, and what to do."""
    done = sweep("-o s -p a=1,2 -- true", folder)
    assert "Nothing was measured: 2 ended well, but no peak is known. The first: reported\n" in done.stdout
    assert "tidemark doctor" in done.stdout


def test_messages_drive_no_terminal(folder):
    line = "-o s -p n=大きい,b -- sh -c 'printf \"x\\033]0;title\\007 \\302\\233m\"; exit 3'"
    done = sweep(line, folder, 1)
    assert cells(folder / "s")[0]["message"] == "ended with status 3: x ]0;title    m"
    for text in (done.stderr, (folder / "s" / "memory_profile_summary.csv").read_text(encoding="utf-8")):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert "[1/2] n=大きい  failed" in done.stderr and "[2/2] n=b       failed" in done.stderr


def test_long_names_and_traces_that_are_elsewhere(folder):
    """Lines that would be cut before they differ have values alone; a sweep without its traces has no timelines."""
    done = sweep("-o s -p sequence_length=8,16 -p max_physical_batch_size=1,2 -p number_of_hidden_layers=1,2 -- "
                 "tinytrain --steps 2 --quiet --seq {sequence_length} --batch {max_physical_batch_size} "
                 "--layers {number_of_hidden_layers}", folder)
    assert ("\nLines have sequence_length, max_physical_batch_size, number_of_hidden_layers; outcome, peak, time:\n"
            "[1/8] 8, 1, 1   done ") in done.stderr
    assert [line[:50] for line in done.stdout.split("\n")[1:4]] == [
        "                         max_  number_of_",
        "                    physical_     hidden_",
        "  sequence_length  batch_size      layers  outcome"]
    for number in range(1, 8):
        shutil.rmtree(folder / "s" / "runs" / f"{number:04d}.tmk")
    again = sweep("--resume s", folder, plain="")
    assert again.stderr.splitlines()[1:-1] == [
        f"tidemark: 7 configurations have no trace in {folder}/s (the first: runs/0001.tmk): no timeline of these"]
    made = os.listdir(folder / "s")
    assert [name for name in made if name.startswith("memory_timeline")] == ["memory_timeline_config_8.png"]


def test_memory_that_the_trace_does_not_show(folder):
    """A program that is not watched ran out: its last words tell."""
    sweep("-o s -p a=1,2 -- sh -c 'ulimit -v 500000; [ {a} = 1 ] || python3 -c \"bytearray(1 << 40)\"'",
          folder)
    found = cells(folder / "s")
    assert [found[i]["outcome"] for i in (0, 1)] == ["done", "oom"]
    assert found[0]["message"] == "reported no allocation"
    assert found[1]["message"] == "ended with status 1: MemoryError"


# Is refused memory, then does so many steps and blocks, and ends.
REFUSED = """import ctypes, sys
steps, blocks, status = map(int, sys.argv[1:])
lib, at = ctypes.CDLL(None), ctypes.c_void_p(4096)
lib.tidemark_record_alloc(0, at, ctypes.c_uint64(1000), None)
lib.tidemark_record_oom(0, ctypes.c_uint64(5000), ctypes.c_uint64(4000), None)
for i in range(steps):
    lib.tidemark_record_step(ctypes.c_int64(i))
for i in range(blocks):
    lib.tidemark_record_free(0, at)
    lib.tidemark_record_alloc(0, at, ctypes.c_uint64(1000), None)
sys.exit("MemoryError: said in passing\\nthe disk is full" if status else 0)
"""


def test_refused_and_went_on(folder):
    """Memory that a program did without is not what it failed of; what ran out is tried again when asked."""
    (folder / "refused.py").write_text(REFUSED, encoding="ascii")
    sweep("-o s -p how='0 0 0,0 0 1,1 0 0,1 0 1,0 2000 0,0 2000 1' -- sh -c 'python3 refused.py {how}'", folder, 1)
    found = cells(folder / "s")
    assert [found[i]["outcome"] for i in range(6)] == ["oom", "oom", "done", "failed", "done", "failed"]
    assert found[2]["message"].startswith("went on after it ran out of memory")
    assert found[3]["message"] == "ended with status 1: the disk is full"
    again = sweep("--resume s --retry-oom", folder, 1)
    assert "4 of 6 configurations have ended" in again.stderr and len(journal(folder / "s")) == 1 + 6 + 2


def test_last_words(folder):
    """The last six lines of what failed, whatever they begin with, and not the log's own head."""
    done = sweep("-o s -p n=0,1,2,8 -- sh -c 'for i in $(seq {n}); do echo \"# $i\"; done; exit 1'", folder, 1)
    shown = {}
    for line in done.stderr.splitlines():
        if line.startswith("["):
            shown[line.split()[1]] = now = []
        elif line.startswith("  "):
            now.append(line.strip())
    assert shown == {"n=0": ["ended with status 1"], "n=1": ["ended with status 1: # 1"],
                     "n=2": ["ended with status 1: # 2", "| # 1", "| # 2"],
                     "n=8": ["ended with status 1: # 8"] + [f"| # {i}" for i in range(3, 9)]}


def test_interrupted(folder):
    process = subprocess.Popen([TIDEMARK, "sweep", "-o", "a sweep", "-j", "2", "-p", "a=1,2,3", "--", "sh",
                                "-c", "touch began.{a}; [ {a} = 1 ] || sleep 1000"],
                               cwd=folder, env=environment(), text=True, stderr=subprocess.PIPE)
    wait_until("three to begin", lambda: all((folder / f"began.{a}").exists() for a in "123"))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 128 + signal.SIGINT
    assert said.splitlines()[-1] == (
        "tidemark: stopped; 1 of 3 configurations have ended. To go on: "
        f"tidemark sweep --resume '{folder}/a sweep'")
    assert not sleepers(folder) and list(cells(folder / "a sweep")) == [0]


def test_ranks(folder):
    ranks = ("RANK=0 WORLD_SIZE=2 {t} --batch {{b}} & RANK=1 WORLD_SIZE=2 {t} --batch 1{{b}}; wait"
             ).format(t=TINY)
    sweep(f"-o s -p b=1,2 -- sh -c '{ranks}'", folder)
    for cell in journal(folder / "s")[1:]:
        assert [rank["rank"] for rank in cell["ranks"]] == [0, 1]
        peaks = [rank["peak_allocated"] for rank in cell["ranks"]]
        assert peaks[0] < peaks[1] == cell["peak_allocated"]


def test_timeout_and_retry(folder):
    line = "-o s -p a=1,2 --keep-traces failed -- sh -c"
    first = sweep(f"--timeout 300ms {line} 'echo at work; [ {{a}} = 1 ] || sleep 1000'", folder, 1)
    assert "took longer than --timeout, 300.00 ms" in first.stderr and "| at work" in first.stderr
    assert not sleepers(folder)
    assert [cells(folder / "s")[i]["outcome"] for i in (0, 1)] == ["done", "timeout"]
    other = sweep(f"{line} 'true {{a}}'", folder, 2)
    assert "belongs to another sweep: the command differs" in other.stderr
    assert "    now:  sh -c true {a}\n" in other.stderr
    assert "have ended already" in sweep("--resume s", folder, 1).stderr
    gentle = "trap 'sleep 0.2; echo asked; exit 1' TERM; while :; do sleep 0.05; done"
    sweep(f'-o t --timeout 200ms -p a=1 -- sh -c "{gentle}"', folder, 1)
    assert "asked" in (folder / "t" / "logs" / "0001.log").read_text(encoding="ascii")
    again = sweep("--resume s --retry-failed --timeout 100ms", folder, 1)
    assert "--timeout, 100.00 ms" in again.stderr and "[1/2]" not in again.stderr


def test_hopeless(folder):
    """The smaller ones say what the larger ones would need; those are not tried."""
    done = sweep(f"-o s -p batch=1..64*2 --capacity 500KiB --skip-hopeless -- {TINY} --seq 16 "
                 "--batch {batch}", folder)
    outcomes = {cell["params"]["batch"]: cell["outcome"] for cell in cells(folder / "s").values()}
    assert outcomes["1"] == outcomes["8"] == "done"
    assert outcomes["64"] == "hopeless"
    assert "not tried: by what was measured it needs at least" in done.stderr
    done = sweep("-o t -p a=1 --skip-hopeless -- true", folder)
    assert "the memory of no device is known; give --capacity too" in done.stderr


def test_secrets(folder):
    secret = "hf_s3cr3t"
    line = f"-o s --redact env:TOKEN -p a=1 -- sh -c 'echo it is {secret}; exit {{a}}' x {secret}"
    sweep(line, folder, 1, TOKEN=secret)
    sweep(line, folder, 1, TOKEN=secret)
    refused = sweep("--resume s", folder, 2)
    assert "the command has a secret" in refused.stderr
    for name in ("sweep.jsonl", "logs/0001.log"):
        text = (folder / "s" / name).read_text(encoding="utf-8")
        ours = text if name == "sweep.jsonl" else "".join(
            line for line in text.splitlines(True) if line.startswith("#"))
        assert secret not in ours and "***" in ours


def test_secrets_in_pieces(folder):
    """Whatever needs quotes, and one within another; where it cannot be hidden it is refused."""
    secret = "it's-secret"
    line = f"""--redact abc --redact abcdef --redact "{secret}" -p a=1"""
    sweep(f"""-o s {line} -- sh -c 'exit {{a}}' x=abcdef "{secret}" y=abc""", folder, 1)
    head = (folder / "s" / "logs" / "0001.log").read_text(encoding="utf-8").splitlines()[1]
    assert head == "# sh -c 'exit 1' 'x=***' '***' 'y=***'"
    assert "def" not in (folder / "s" / "sweep.jsonl").read_text(encoding="utf-8")
    refused = sweep("-o t --redact abc -p a=1,xabc -- true", folder, 2)
    assert "--redact: a value of --param has a word" in refused.stderr and not (folder / "t").exists()
    assert "--redact: --where has" in sweep("-o t --redact abc -p a=1 --where \"a != 'abc'\" -- true", folder, 2).stderr


def test_resumed_elsewhere(folder):
    """The command runs where the sweep was begun; three stars in it are no secret."""
    (folder / "elsewhere").mkdir()
    sweep("-o s -p a=1,2 -- sh -c '[ -e train.sh ] && echo \"***\" && [ {a} = 1 ]'", folder, 1)
    for line in ("--resume ../s --retry-failed", "-o ../s --retry-failed -p a=1,2 -- sh -c "
                 "'[ -e train.sh ] && echo \"***\" && [ {a} = 1 ]'"):
        again = sweep(line, folder / "elsewhere", 1)
        assert f"the command is run in {folder}, where the sweep was begun" in again.stderr
        assert "ended with status 1: ***" in again.stderr
    shell("mv s t; mkdir gone; cd gone; tidemark sweep --no-pictures -o ../u -p a=1 -- false; cd ..; rmdir gone", folder)
    gone = sweep("--resume u --retry-failed", folder, 1)
    assert f"the sweep was begun in {folder}/gone, from where its command is run: No such file" in gone.stderr


def test_folders(folder):
    """One killed as it began is new; somebody else's is left alone."""
    for number, torn in enumerate(["", '{"tidemark_sweep": 1, "tit']):
        for part in ("runs", "logs"):
            (folder / f"s {number}" / part).mkdir(parents=True)
        (folder / f"s {number}" / "sweep.jsonl").write_text(torn, encoding="ascii")
        assert sweep(f"--resume 's {number}'", folder, 2).stderr.endswith(
            f"killed as it began; give its command again with -o '{folder}/s {number}'\n")
        sweep(f"-o 's {number}' -p a=1 -- true", folder)
        assert len(journal(folder / f"s {number}")) == 2
        assert (f"or go on with that one by: tidemark sweep --resume '{folder}/s {number}'\n"
                in sweep(f"-o 's {number}' -p a=1 -- false", folder, 2).stderr)
    (folder / "t").mkdir()
    (folder / "t" / "thesis.tex").touch()
    refused = sweep("-o t -p a=1 -- true", folder, 2)
    assert refused.stderr == (f"tidemark: {folder}/t has other files and no sweep in it (sweep.jsonl); give a new or "
                              "empty folder with -o\n")
    assert os.listdir(folder / "t") == ["thesis.tex"]
    (folder / "t" / "sweep.jsonl").write_text("not ours", encoding="ascii")
    assert "is no journal of a sweep" in sweep("-o t -p a=1 -- true", folder, 3).stderr
    assert "tidemark has a meaning for that" in sweep("-o u -p Scan=1 -- true", folder, 2).stderr


def test_refused(folder):
    assert "no such program" in sweep("-o s -p a=1,2 -- nothing-like-it {a}", folder, 127).stderr
    assert len(journal(folder / "s")) == 1
    (folder / "t").mkdir()
    (folder / "t" / "sweep.jsonl").write_text("{}\n", encoding="ascii")
    refused = sweep("-o u -p a=1,2 --where 'a > 2' -- true", folder, 2)
    assert refused.stderr == "tidemark: --where leaves none of the 2 configurations\n"
    assert "is no journal of a sweep" in sweep("-o t -p a=1 -- true", folder, 3).stderr
    assert "is no journal of a sweep" in sweep("--resume t", folder, 3).stderr
    assert "not the folder of a sweep" in sweep("--resume nowhere", folder, 2).stderr


@pytest.mark.parametrize("jobs", [1, 3])
def test_environment_and_repeats(folder, jobs):
    sweep(f"-os -j{jobs} -pSeq=1,2 --repeats 2 -- sh -c "
          "'echo $TIDEMARK_SEQ $TIDEMARK_REPEAT $TIDEMARK_CELL {Seq} {repeat}'", folder)
    logs = [(folder / "s" / "logs" / f"000{i}.log").read_text(encoding="ascii").splitlines()[-1]
            for i in (1, 2, 3, 4)]
    assert logs == ["1 0 1 1 0", "1 1 2 1 1", "2 0 3 2 0", "2 1 4 2 1"]
    assert (folder / "s" / "logs" / "0002.log").read_text(
        encoding="ascii").startswith("# Seq=1 repeat 2 of 2\n")


def test_docs(folder):
    """Every command of docs/sweep-running.md runs as written."""
    with open(os.path.join(ROOT, "docs", "sweep-running.md"), encoding="utf-8") as docs:
        blocks = re.findall(r"^```sh\n(.*?)^```$", docs.read(), re.S | re.M)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        done = shell(line.replace("tidemark sweep", "tidemark sweep --no-pictures"), folder)
        assert done.returncode == 0, done.stderr
    assert "18 configurations" in done.stderr and "have ended already" in done.stderr
