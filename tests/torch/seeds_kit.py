# SPDX-License-Identifier: MIT
"""The Python examples of the tools whose names tidemark has (tests/data/seeds), as they stand there."""
import re
import subprocess
import textwrap

from torch_kit import LIBRARY, PYTHON, REPO, TIDEMARK, environment

SEEDS = REPO / "tests" / "data" / "seeds"
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```\s*$", re.S | re.M)


def examples(name, imports):
    """The Python blocks of a seed, with the names of their modules replaced, and 'cuda' by the device
    that is there."""
    blocks = [textwrap.dedent(block) for block in BLOCK.findall((SEEDS / name).read_text(encoding="utf-8"))]
    for before in imports:
        blocks = [block.replace(f"from {before} import", "from tidemark import") for block in blocks]
    return [block.replace("device='cuda'", "device=DEVICE") for block in blocks]


def run_python(source, folder, rings, **variables):
    """Run it in that folder, watched by `import tidemark`; what it printed."""
    script = folder / "script.py"
    script.write_text(source, encoding="utf-8")
    return run_script([str(script)], folder, rings, **variables)


def seed_environment(folder, rings, **variables):
    """Of a program that imports tidemark in that folder."""
    return environment(**{"TIDEMARK_RING_DIR": str(rings), "PYTHONPATH": str(REPO / "python"),
                          "TIDEMARK_LIBRARY": LIBRARY, "TIDEMARK_PROGRAM": TIDEMARK, "LC_ALL": "C.UTF-8",
                          "TIDEMARK_RUN": str(folder / "run.tmk"), **variables})


def run_script(command, folder, rings, **variables):
    env = seed_environment(folder, rings, **variables)
    done = subprocess.run([PYTHON, *command], cwd=folder, env=env, capture_output=True, text=True,
                          encoding="utf-8", timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
