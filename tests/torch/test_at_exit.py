# SPDX-License-Identifier: MIT
"""What `import tidemark` says at the end of a program: one line, of the process that imported it; the post-mortem when
memory ran out. And what it leaves: a run under a name that commands take, or nothing."""
import os
import re
import subprocess

import pytest
from torch_kit import LIBRARY, PYTHON, REPO, TIDEMARK, environment, query

#: Blocks of a GPU without torch, which takes its time to be imported.
BLOCKS = """
import ctypes, os, sys, threading
import tidemark
class Site(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("function", ctypes.c_char_p), ("line", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]
recorder, site = tidemark._lib, Site(b"train.py", b"step", 7, 0)
def alloc(address, size):
    recorder.tidemark_record_alloc(256, ctypes.c_void_p(address), ctypes.c_uint64(size), ctypes.byref(site))
"""
SAID = r"tidemark: recorded in (\S+[.]tmk); next: tidemark peak \1\n"


def run_program(folder, rings, words, status=0, text=None, **variables):
    env = environment(**{"TIDEMARK_RING_DIR": str(rings), "PYTHONPATH": f"{REPO / 'python'}:{folder}", "TIDEMARK_QUIET": "0",
                         "TIDEMARK_LIBRARY": LIBRARY, "TIDEMARK_PROGRAM": TIDEMARK, "LC_ALL": "C.UTF-8", **variables})
    done = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False, input=text)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def run_script(folder, rings, source, **more):
    (folder / "train.py").write_text(BLOCKS + source)
    return run_program(folder, rings, [PYTHON, "train.py"], **more)


def runs_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__")


def n_processes(folder):
    (run,) = runs_in(folder)
    return int(query(folder / run, "SELECT count(*) FROM processes")[0][0])


ENDINGS = {
    "end": ("", 0),
    "thread": ("threading.Thread(target=lambda: alloc(8192, 5)).start()", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(status=4)", 4),
    "os._exit in a thread": ("t = threading.Thread(target=os._exit, args=(5,)); t.start(); t.join()", 5),
    "stderr closed": ("sys.stderr.close()", 0),
}
CHILDREN = {
    "os.fork": "if os.fork() == 0:\n    alloc(8192, 5)\n    sys.exit(0)\nos.wait()",
    "os.fork, os._exit": "if os.fork() == 0:\n    alloc(8192, 5)\n    os._exit(0)\nos.wait()",
    "a child that outlives it": "if os.fork() == 0:\n    import time; alloc(8192, 5); time.sleep(0.3); sys.exit(0)",
    "a child alone": "recorder.tidemark_record_free(256, ctypes.c_void_p(4096))\nif os.fork() == 0:\n    alloc(8192, 5)\n"
                     "    sys.exit(0)\nos.wait()",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_one_line(tmp_path, rings, ending):
    source, status = ENDINGS[ending]
    said = run_script(tmp_path, rings, "alloc(4096, 7)\n" + source, status=status).stderr
    (run,) = runs_in(tmp_path)
    assert re.fullmatch(r"train[.]py-\d{8}-\d{6}[.]tmk", run)
    if ending == "stderr closed":
        assert said == ""
    else:
        assert re.fullmatch(SAID, said)[1] == run
    assert query(tmp_path / run, "SELECT count(*) FROM allocations WHERE size = 7") == [["1"]]


def test_after_the_traceback(tmp_path, rings):
    said = run_script(tmp_path, rings, "alloc(4096, 7)\nraise ValueError('mine')", status=1).stderr
    assert re.fullmatch(r"Traceback .*ValueError: mine\n" + SAID, said, re.S)


@pytest.mark.parametrize("how", CHILDREN)
def test_forked_children_are_silent(tmp_path, rings, how):
    said = run_script(tmp_path, rings, "alloc(4096, 7)\n" + CHILDREN[how]).stderr
    assert re.fullmatch(SAID, said)
    assert n_processes(tmp_path) == 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessings_children_are_silent(tmp_path, rings, method):
    """They record into the same run, also where they import the package anew; other programs have one of their own."""
    source = f"""
import multiprocessing, subprocess
def work(number):
    alloc(8192, number)
if __name__ == "__main__":
    alloc(4096, 7)
    context = multiprocessing.get_context({method!r})
    workers = [context.Process(target=work, args=(n,)) for n in (11, 12)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
"""
    said = run_script(tmp_path, rings, source).stderr
    run = re.fullmatch(SAID, said)[1]
    assert runs_in(tmp_path) == [run] and n_processes(tmp_path) == 3
    assert query(tmp_path / run, "SELECT size FROM allocations ORDER BY size") == [["7"], ["11"], ["12"]]


def test_another_program_says_its_own(tmp_path, rings):
    (tmp_path / "other.py").write_text(BLOCKS + "alloc(4096, 9)\n")
    said = run_script(tmp_path, rings, "import subprocess\nalloc(4096, 7)\n"
                                       "subprocess.run([sys.executable, 'other.py'], check=True)").stderr
    other, own = said.splitlines(keepends=True)
    assert re.fullmatch(SAID, other)[1].startswith("other.py-") and re.fullmatch(SAID, own)[1].startswith("train.py-")
    assert len(runs_in(tmp_path)) == 2


def test_data_loader(tmp_path, rings):
    source = """
import torch
class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.full((1000,), float(i))
for batch in torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2):
    pass
"""
    said = run_script(tmp_path, rings, source).stderr
    assert re.fullmatch(SAID, said)
    assert n_processes(tmp_path) == 3


OOM = "alloc(4096, 3 << 20)\nrecorder.tidemark_record_oom(256, ctypes.c_uint64(5 << 20), ctypes.c_uint64(4 << 20), " \
      "ctypes.byref(site))\n"


def post_mortem(text):
    """From its first line on, without the process and the time."""
    lines = text[text.index("OUT OF MEMORY"):].splitlines()
    return [re.sub(r" in pid .*", "", line) for line in lines if not line.startswith("next:")]


def test_post_mortem_as_run_has_it(tmp_path, rings):
    alone, under = tmp_path / "alone", tmp_path / "under"
    alone.mkdir(), under.mkdir()
    said = run_script(alone, rings, OOM).stderr
    (run,) = runs_in(alone)
    assert said.startswith(f"tidemark: recorded in {run}; next: tidemark explain {run}\n\nOUT OF MEMORY in pid ")
    (under / "train.py").write_text(BLOCKS + OOM)
    expected = run_program(under, rings, [TIDEMARK, "run", "-o", "a.tmk", "--", PYTHON, "train.py"]).stderr
    assert "request    5.0 MiB on cuda:0" in expected
    assert post_mortem(said) == post_mortem(expected)
    assert expected.count("recorded in") == 1  # run's own summary
    assert run_script(alone, rings, "alloc(4096, 1)\nif os.fork() == 0:\n    sys.exit()\n" + OOM).stderr.count("OUT OF") == 1


def test_quiet(tmp_path, rings):
    for number, source in enumerate((OOM, OOM + "raise SystemExit\n", "alloc(4096, 1); os._exit(0)\n", "")):
        (folder := tmp_path / str(number)).mkdir()
        assert run_script(folder, rings, source, TIDEMARK_QUIET="1").stderr == ""
        assert len(runs_in(folder)) == (1 if source else 0)
        assert not source or n_processes(folder) == 1  # which takes the ring that os._exit() leaves


def test_a_name_of_ones_own(tmp_path, rings):
    """Of a run that was there before, nothing is said unless this process has added to it."""
    said = run_script(tmp_path, rings, "alloc(4096, 7)", TIDEMARK_RUN=str(tmp_path / "my run.tmk")).stderr
    assert said == "tidemark: recorded in 'my run.tmk'; next: tidemark peak 'my run.tmk'\n"
    assert run_script(tmp_path, rings, "", TIDEMARK_RUN=str(tmp_path / "my run.tmk")).stderr == ""
    assert run_script(tmp_path, rings, "", TIDEMARK_RUN=str(tmp_path / "another.tmk")).stderr == ""
    assert runs_in(tmp_path) == ["my run.tmk"] and n_processes(tmp_path) == 1


def test_in_chinese(tmp_path, rings):
    said = run_script(tmp_path, rings, "alloc(4096, 7)", LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1").stderr
    (run,) = runs_in(tmp_path)
    assert said == f"tidemark: 已记录到 {run}; 下一步: tidemark peak {run}\n"


# ---- what is left

@pytest.mark.parametrize("command, text", [
    (["-"], BLOCKS + "alloc(4096, 7)"), ([], BLOCKS + "alloc(4096, 7)"), (["-m", "-odd"], None),
])
def test_names(tmp_path, rings, command, text):
    """No command takes the name of a run for an option."""
    (tmp_path / "-odd.py").write_text(BLOCKS + "alloc(4096, 7)")
    said = run_program(tmp_path, rings, [PYTHON, *command], text=text).stderr
    run = re.fullmatch(SAID, said)[1]
    assert runs_in(tmp_path) == [run]
    assert re.fullmatch(r"(_odd|python)-\d{8}-\d{6}[.]tmk", run)
    done = subprocess.run([TIDEMARK, "report", run], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_are_taken_by_one(tmp_path, rings):
    """Programs that begin in the same second have runs of their own."""
    (tmp_path / "train.py").write_text(BLOCKS + "alloc(4096, 7)\nsys.stdin.read()")
    (tmp_path / "all.sh").write_text(f"for i in 1 2 3 4; do {PYTHON} train.py </dev/null & done; wait")
    said = run_program(tmp_path, rings, ["sh", "all.sh"]).stderr
    assert sorted(re.findall(r"recorded in (\S+);", said)) == runs_in(tmp_path) and len(runs_in(tmp_path)) == 4


NOTHING = [
    ["-c", "import tidemark; assert tidemark.is_watched()"],
    ["-c", "import tidemark, os; os._exit(0)"],
    ["-c", "import tidemark, os; os.fork() or os._exit(0)"],
    ["-c", "import torch, tidemark"],
    ["-m", "tidemark.debug", "--help"],
    ["-m", "tidemark.lora_training", "--help"],
    ["-m", "tidemark.sweep", "--help"],
    ["-m", "tidemark", "--help"],
]


@pytest.mark.parametrize("command", NOTHING, ids=" ".join)
def test_nothing_is_left(tmp_path, rings, command):
    """Where nothing was allocated."""
    assert run_program(tmp_path, rings, [PYTHON, *command]).stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_a_run(tmp_path, rings):
    """The program goes on, and hears why nothing is recorded."""
    if os.geteuid() == 0:
        folder = "/proc"  # where nobody can make one
    else:
        folder = tmp_path / "closed"
        folder.mkdir(0o500)
    done = run_program(folder, rings, [PYTHON, "-c", "import tidemark; print(tidemark.is_watched())"])
    assert done.stdout == "False\n" and done.stderr.count("tidemark does not record: ") == 1
