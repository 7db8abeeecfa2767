# SPDX-License-Identifier: MIT
"""How a script of this folder begins, and what it has checked: each line is printed as it comes, and
all are saved as JSON.

What could not be checked is told apart from what is fine, and a script that has checked nothing has
not passed. As a program this file only says whether there is a GPU: status 77 without one."""
import ctypes
import json
import os
import sys

SKIPPED = 77  # exit status: nothing was checked


def has_gpu():
    """As the driver says: it needs no framework, and CI has a stand-in for it (tests/fake_cuda)."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    n = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(n)) == 0 and n.value > 0


def need_gpu(is_there=None):
    """Ends the script, loudly, where there is no GPU. `is_there` is what the caller's framework says;
    without it the driver is asked."""
    if not (has_gpu() if is_there is None else is_there):
        print("SKIPPED: no GPU", flush=True)
        sys.exit(SKIPPED)


def command_line(usage, words=None, needs_gpu=True):
    """(TIDEMARK, OUT, the words that follow), of the command line; OUT is made. Ends the script after
    --help, when words are missing, and where there is no GPU though it needs one."""
    words = sys.argv[1:] if words is None else words
    is_asked = "--help" in words or "-h" in words
    if is_asked or len(words) < 2:
        print(usage.strip(), file=sys.stdout if is_asked else sys.stderr)
        sys.exit(0 if is_asked else 2)
    if needs_gpu:
        need_gpu()
    os.makedirs(words[1], exist_ok=True)
    return os.path.realpath(words[0]), os.path.realpath(words[1]), words[2:]


class Checks:
    def __init__(self):
        self.results = []

    def _put(self, word, result):
        self.results.append(result)
        figures = {key: value for key, value in result.items() if key not in ("check", "ok")}
        print(word, result["check"], json.dumps(figures), flush=True)

    def add(self, what, ok, **figures):
        self._put("ok  " if ok else "FAIL", {"check": what, "ok": bool(ok), **figures})

    def skip(self, what, why):
        """Not checked: `why` says what is missing here."""
        self._put("SKIPPED", {"check": what, "ok": None, "why": why})

    def save(self, out, name):
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(self.results, file, indent=1)

    def exit_status(self):
        done = [result["ok"] for result in self.results if result["ok"] is not None]
        return 1 if not all(done) or not self.results else 0 if done else SKIPPED


if __name__ == "__main__":
    need_gpu()
