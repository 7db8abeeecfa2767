#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: the seeds' code blocks as they stand, with figures compared to torch's own.

    tests/gpu/check_seeds.py TIDEMARK OUT [PART...]

Parts: monitors, python, session. monitors: S1's Python blocks on the real devices. python: those of S2 and S3 in one
process, after each the allocated and reserved bytes against torch.cuda's. session: S5's eval and SQL blocks, asked of a
training that runs, and python.torch_trace row by row against torch.cuda.memory_allocated() at each module's beginning and
end. check_python.py, check_lora.py and check_sweep.py have the seeds' commands and more of their figures. Writes each
check to OUT/check_seeds.json, exit 1 when one fails."""
import importlib
import sys

from check_python import REPO, Place, use
from checks import Checks, command_line, need_gpu

sys.path.insert(0, str(REPO / "tests" / "seeds"))


def main():
    tidemark, out, parts = command_line(__doc__)
    use(tidemark)
    sessions, kit = importlib.import_module("seed_sessions"), importlib.import_module("torch_kit")
    need_gpu(sessions.has_cuda())
    checks = Checks()
    try:
        for part in parts or ("monitors", "python", "session"):
            with Place() as place:
                if part == "monitors":
                    env = kit.environment(PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=kit.LIBRARY,
                                          TIDEMARK_PROGRAM=tidemark, TIDEMARK_OFF="1")
                    sessions.check_monitors(checks.add, place.folder, env)
                else:
                    check = {"python": sessions.check_python, "session": sessions.check_session}[part]
                    check(checks.add, place.folder, place.rings)
    finally:
        checks.save(out, "check_seeds")
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
