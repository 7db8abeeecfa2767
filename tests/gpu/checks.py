# SPDX-License-Identifier: MIT
"""What a script of this folder has checked: each line is printed as it comes, all are saved as JSON.

What could not be checked is told apart from what is fine, and a script that has checked nothing has not passed."""
import json
import os

SKIPPED = 77  # exit status: nothing was checked


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
