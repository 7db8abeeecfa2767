# SPDX-License-Identifier: MIT
"""Blocks on an accelerator go a short way as long as there is nothing else to see to (record/torch/fast_path.c). Whatever comes
up in a training is seen to all the same: steps that are due, what is reserved, streams, the tally, forked children.

Debian's torch trains on the CPU; the blocks are a stand-in's, reported from its modules, backward and optimizer."""
import platform
import subprocess
from pathlib import Path

import pytest
from torch_kit import LIBRARY, PYTHON, TIDEMARK, check, environment, query

HERE = Path(__file__).parent

PRELUDE = """
import ctypes, os, sys, time
blocks = ctypes.CDLL(sys.argv[1])
blocks.report_with.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64]
reserved = 1 << 20

def alloc(n):
    blocks.report_with(n * 4096, 512, reserved)

def free(n):
    blocks.report_with(n * 4096, -512, reserved)

# The host's blocks end a tenth of a second after the accelerator's first; and then there is nothing else to see to.
alloc(1)
time.sleep(0.15)
alloc(2)
"""

STEPS = "import torch\n" + PRELUDE + """
torch.set_num_threads(1)

class Layer(torch.nn.Linear):
    def forward(self, x):
        alloc(100 + step)
        return super().forward(x)

class Grows(torch.optim.SGD):
    def step(self):
        alloc(300 + step)
        super().step()
        free(300 + step)

torch.manual_seed(0)
model = torch.nn.Sequential(Layer(4, 4))
optimizer = Grows(model.parameters(), lr=0.1)
for step in range(6):
    if step == 3:
        reserved = 3 << 20
    alloc(400 + step)  # the batch: a step begins with it
    y = model(torch.ones(2, 4))
    y.register_hook(lambda gradient: alloc(200 + step))
    y.sum().backward()
    free(100 + step)
    free(200 + step)
    free(400 + step)
    optimizer.step()
    optimizer.zero_grad()
"""


def run(tmp_path, rings, source, *names, options=()):
    trace, libraries = tmp_path / "a.tmk", [str(tmp_path / name) for name in names]
    for library in libraries:
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, str(HERE / "fake_c10.c")], check=True)
    subprocess.run([TIDEMARK, "run", "--quiet", *options, "-o", str(trace), "--", PYTHON, "-c", source, *libraries],
                   env=environment(TIDEMARK_RING_DIR=str(rings)), check=True, timeout=60)
    check(trace)
    return trace


def test_steps(tmp_path, rings):
    """Each block has the step, the stage and the module it was made in; what is reserved is said when it changes."""
    trace = run(tmp_path, rings, STEPS, "libblocks.so")
    rows = query(trace, "SELECT address / 4096, step, stage, module FROM allocations WHERE device = 'cuda:0' "
                        "ORDER BY id")
    assert rows == [["1", "", "other", ""], ["2", "", "other", ""]] + [
        [str(n + step), str(step) if (n, step) != (400, 0) else "", stage, module] for step in range(6)
        for n, stage, module in ((400, "other", ""), (100, "forward", "0"), (200, "backward", "0"),
                                 (300, "optimizer", "Grows"))]
    assert query(trace, "SELECT count(*) FROM allocations WHERE device = 'cuda:0' AND free_ns IS NOT NULL") == [["24"]]
    assert query(trace, "SELECT step, end_reserved FROM steps WHERE device = 'cuda:0' AND step >= 0") == [
        [str(step), str((1 if step < 3 else 3) << 20)] for step in range(6)]


CHANGES = PRELUDE + """
alloc(3)
assert ctypes.CDLL(sys.argv[2]).use_stream(7) == 107
alloc(4)
child = os.fork()
if child == 0:
    alloc(6)
    free(6)
    os._exit(0)
os.waitpid(child, 0)
alloc(5)
free(3)
"""


def test_changes(tmp_path, rings):
    """A stream comes into use; a child is forked, whose blocks are its own."""
    trace = run(tmp_path, rings, CHANGES, "libc10.so", "libc10_cuda.so", options=["--no-modules", "--no-categories"])
    rows = query(trace, "SELECT pid, address / 4096, stream, free_ns IS NOT NULL FROM allocations WHERE "
                        "device = 'cuda:0' ORDER BY alloc_ns")
    parent = rows[0][0]
    assert [row[1:] for row in rows if row[0] == parent] == [
        ["1", "0", "0"], ["2", "0", "0"], ["3", "0", "1"], ["4", "107", "0"], ["5", "107", "0"]]
    assert [row[1:] for row in rows if row[0] != parent] == [["6", "107", "1"]]


HEARD = PRELUDE + """
def heard_of(n):
    before = blocks.count_heard()
    alloc(n)
    free(n)
    return blocks.count_heard() - before

alloc(3)
assert [heard_of(n) for n in range(4, 14)] == [0] * 10
assert blocks.listen_by(HOW) == 2
assert [heard_of(n) for n in range(14, 24)] == [2] * 10
child = os.fork()
if child == 0:
    assert heard_of(24) == 2
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("how", [0, 1])
def test_listeners(tmp_path, rings, how):
    """Blocks are reported on to torch's own function only when somebody may listen: a profiler has begun."""
    trace = run(tmp_path, rings, f"HOW = {how}\n" + HEARD, "libc10.so", options=["--no-modules", "--no-categories"])
    assert query(trace, "SELECT count(*), count(free_ns) FROM allocations WHERE device = 'cuda:0'") == [["24", "21"]]


WORKERS = PRELUDE + """
engine = ctypes.CDLL(sys.argv[2])
report = ctypes.cast(blocks.report_with, ctypes.c_void_p)

def train():
    assert engine.run_backward() == 255
    for first, name, has_state in ((100, b"pt_autograd_0", 0), (200, b"pt_autograd_0", 1), (300, b"other", 1)):
        assert engine.report_in_thread(report, ctypes.c_size_t(first), ctypes.c_size_t(4), name, has_state) == 0

alloc(3)
train()
"""


def test_workers(tmp_path, rings):
    """Blocks of autograd's threads have the stack of who called backward(), whether Python knows the thread or not."""
    trace, libraries = tmp_path / "a.tmk", [tmp_path / "libc10.so", tmp_path / "libtorch_cpu.so"]
    for library, source in zip(libraries, ("fake_c10.c", "in_thread.c")):
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", str(library),
                        str(HERE / source)], check=True)
    subprocess.run([TIDEMARK, "run", "--quiet", "--no-modules", "--no-categories", "-o", str(trace), "--", PYTHON, "-c",
                    WORKERS, *map(str, libraries)], env=environment(TIDEMARK_RING_DIR=str(rings)), check=True,
                   timeout=60)
    check(trace)
    names = dict(query(trace, "SELECT a.address / 4096, (SELECT group_concat(f.function) FROM frames f WHERE "
                              "f.stack_id = a.stack_id) FROM allocations a WHERE a.address >= 100 * 4096"))
    assert names == {str(first + i): name for first, name in ((100, "train,<module>"), (200, "train,<module>"),
                                                              (300, "[thread other]")) for i in range(4)}


TIMES = PRELUDE + """
import threading
process = ctypes.CDLL(None)
alloc(3)
for n in range(1000, 3000, 10):
    alloc(n)
    alloc(n + 1)
    free(n)
    free(n + 1)
    alloc(n + 2)
    free(n + 2)
alloc(10)
alloc(11)
time.sleep(0.2)
free(10)
alloc(20)
alloc(21)
process.tidemark_record_mark(b"between", b"")
free(20)

def on_another():
    alloc(31)  # the thread's first goes the long way
    alloc(32)

alloc(30)
alloc(33)
other = threading.Thread(target=on_another)
other.start()
other.join()
free(30)
alloc(40)
alloc(41)
other = threading.Thread(target=process.tidemark_record_oom, args=(256, 1 << 30, 0, None))
other.start()
other.join()
free(40)
"""


def test_times(tmp_path, rings):
    """A free comes right behind the last block, or has a time of its own; after a pause it is late, too."""
    trace = run(tmp_path, rings, TIMES, "libc10.so", options=["--no-modules", "--no-categories"])
    rows = query(trace, "SELECT address / 4096, alloc_ns, free_ns FROM allocations WHERE device = 'cuda:0'")
    came = {int(n): int(time) for n, time, _ in rows}
    went = {int(n): int(time) for n, _, time in rows if time}
    n_shared = 0
    for n in range(1000, 3000, 10):
        assert came[n] < came[n + 1] < went[n] < went[n + 1] < came[n + 2] < went[n + 2]
        n_shared += went[n] - came[n + 1] < 20  # ns; it takes Python longer to call alloc(), then free()
    assert n_shared > 20  # others came when the packer had just looked
    assert 0.15e9 < went[10] - came[11] < 10e9
    [[mark]] = query(trace, "SELECT time_ns FROM marks WHERE event = 'between'")
    assert came[21] < int(mark) < went[20]
    assert came[33] < came[31] < came[32] < went[30]
    [[oom]] = query(trace, "SELECT time_ns FROM ooms")
    assert came[41] < int(oom) < went[40]
    assert query(trace, "SELECT sum(l.size) = d.max_allocated FROM devices d, live_at(d.max_ns) l WHERE "
                        "d.device = 'cuda:0' AND l.device = 'cuda:0'") == [["1"]]


CROWD = PRELUDE + """
import random, threading
lock, places, taken = threading.Lock(), list(range(100, 108)), []

def work(seed, n_done=0):
    chance = random.Random(seed)
    while n_done < 2000:
        with lock:  # as torch holds its own
            if taken and (not places or chance.random() < 0.5):
                n = taken.pop(chance.randrange(len(taken)))
                free(n)
                places.append(n)
            else:
                taken.append(places.pop())
                alloc(taken[-1])
        n_done += 1
        if chance.random() < 0.2:
            time.sleep(0)

alloc(3)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(taken))
"""


def test_crowd(tmp_path, rings):
    """Threads free what others made, in places that are used again at once: none goes before it came."""
    trace, library = tmp_path / "a.tmk", tmp_path / "libc10.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(HERE / "fake_c10.c")], check=True)
    done = subprocess.run([TIDEMARK, "run", "--quiet", "--no-modules", "--no-categories", "-o", str(trace), "--",
                           PYTHON, "-c", CROWD, str(library)], env=environment(TIDEMARK_RING_DIR=str(rings)),
                          check=True, timeout=60, capture_output=True, text=True)
    check(trace)
    rows = query(trace, "SELECT address / 4096, alloc_ns, free_ns FROM allocations WHERE address / 4096 BETWEEN 100 "
                        "AND 107 ORDER BY id")
    last = {}
    for place, came, went in rows:
        assert last.get(place, 0) < int(came) and (not went or int(came) < int(went))
        last[place] = int(went) if went else float("inf")
    n_alive = sum(not went for _, _, went in rows)
    assert n_alive == int(done.stdout) and 2 * len(rows) - n_alive == 4 * 2000


# ---- what it fetches

EACH_BLOCK = {"code": ["tmk_fast_path_usage", "python_alloc", "autograd_alloc", "find_3_11", "find_3_12_watched",
                       "find_3_13_watched", "find_above_3_11", "find_above_3_12_watched", "find_above_3_13_watched",
                       "tmk_block_hook_node", "tmk_torch_calls_note_node", "tmk_training_context_node"],
              "calls": ["call_module", "tmk_pystack_unknown", "tmk_gradients_look", "tmk_gradients_tag", "hook_apply",
                        "known_anew", "enter_3_11", "enter_3_12_watched", "enter_3_13_watched", "tmk_pyknown_enter",
                        "tmk_pyknown_leave"],
              "data": ["tmk_bridge", "tmk_pyframe_hot", "tmk_torch_hot"]}


def places():
    """{name of a function or an object: [address, bytes]}"""
    done = subprocess.run(["nm", "--print-size", LIBRARY], capture_output=True, text=True, check=True)
    return {line.split()[3]: [int(word, 16) for word in line.split()[:2]] for line in done.stdout.splitlines()
            if len(line.split()) == 4}


def test_one_page_of_each():
    """A page more is a look-up more, for every block, in tables that the training has emptied (record/core/hot.h)."""
    symbols = places()
    for names in EACH_BLOCK.values():
        pages = {end // 4096 for at, size in map(symbols.get, names) for end in (at, at + size - 1)}
        assert len(pages) == 1
    assert symbols["tmk_control_page"][0] % 4096 == 0  # of which the first line is for every block (record/core/fast_path_line.h)
    assert symbols["tmk_recorder"][0] // 4096 == symbols["tmk_torch_hot"][0] // 4096  # its beginning is enough


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a count of one instruction set")
def test_few_lines_of_code():
    """Each line of 64 bytes is fetched anew for almost every block, and pushes one of the program's out."""
    symbols = places()
    n_lines = {name: -(-symbols[name][1] // 64) for name in symbols}
    # With what is seldom, at their ends.
    assert n_lines["tmk_fast_path_usage"] <= 5 and n_lines["python_alloc"] <= 5 and n_lines["autograd_alloc"] <= 6
    assert n_lines["find_3_12_watched"] <= 7 and n_lines["find_above_3_12_watched"] <= 5  # the seventh is for seldom


@pytest.mark.skipif(platform.machine() != "x86_64", reason="glibc aligns less elsewhere, and so do we")
def test_static_tls():
    """What a library that is opened late, by attach or `import tidemark`, can have of threads' static memory."""
    done = subprocess.run(["readelf", "-lW", LIBRARY], capture_output=True, text=True, check=True)
    row = next(line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["TLS"])
    assert int(row[5], 16) <= 192 and int(row[-1], 16) <= 64
