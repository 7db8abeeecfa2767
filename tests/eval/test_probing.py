# SPDX-License-Identifier: MIT
"""docs/probing.md: its examples work as they stand there, on a real torch."""
import re
import subprocess

import pytest
from eval_kit import BLOCKS, DEBIAN, REPO, environment

TRAIN = BLOCKS + """
import torch
class Trainer:
    current_step = 200
trainer = Trainer()
weight = torch.ones(1000)
for step in range(12):
    recorder.tidemark_record_step(ctypes.c_int64(step))
    recorder.tidemark_record_push(1, b"forward")
    recorder.tidemark_record_push(2, b"encoder.attn")
    alloc(4096 * (step + 1), (100 + step) << 20)
    recorder.tidemark_record_pop(2)
    recorder.tidemark_record_pop(1)
idle()
"""


def examples():
    """The commands of the page, in order."""
    page = (REPO / "docs" / "probing.md").read_text(encoding="utf-8")
    return re.findall(r"```bash\n(.*?)```", page, re.S)


def has_torch():
    return subprocess.run([DEBIAN, "-c", "import torch, psutil"], capture_output=True,
                          check=False).returncode == 0


def test_examples(shop):
    if not has_torch():
        pytest.skip("no torch and psutil for /usr/bin/python3")
    pid = shop.target(TRAIN)
    outputs = {}
    for example in examples():
        done = subprocess.run(["bash", "-c", example], text=True, capture_output=True, timeout=60,
                              env=environment(ENDPOINT=str(pid)), cwd=shop.folder, check=False)
        assert (done.returncode, done.stderr) == (0, ""), f"{example}\n{done.stderr}"
        outputs[example] = done.stdout

    def output(word):
        return next(text for example, text in outputs.items() if word in example)

    assert len(outputs) == 9
    assert re.match(r"CPU 内存: \d+\.\d\d GB\n", output("psutil"))
    assert re.search(r"垃圾回收完成: \(\d+, \d+, \d+\)\n$", output("gc.collect"))
    assert output("get_device_properties") == "" or "总计" in output("get_device_properties")
    assert re.fullmatch(r"步骤 200: \d+\.\d\d GB\n", output("trainer.current_step"))
    steps = output("avg_memory_mb").splitlines()
    assert steps[0].split() == ["step", "avg_memory_mb", "peak_memory_mb", "min_memory_mb"]
    assert [line.split()[0] for line in steps[1:]] == [str(step) for step in range(12)]
    modules = output("execution_count").splitlines()
    assert {line.split()[0] for line in modules[1:]} == {"encoder.attn"}
    growth = output("prev_peak").splitlines()
    assert len(growth) == 12 and growth[0].split()[0] == "step"
