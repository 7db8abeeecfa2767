# SPDX-License-Identifier: MIT
"""At the end of a program that `import tidemark` records: one line that says where the run is, and the post-mortem if
memory ran out. `tidemark run` says both itself.

The process that imported the package says it, once: at exit, after the traceback of an exception, and before os._exit().
Its forked children say nothing, nor do multiprocessing's, which record into the same run. TIDEMARK_QUIET=1 keeps all
of it away. A run folder in which nothing was recorded is taken away again.
"""
import atexit
import functools
import json
import os
import shlex
import subprocess
import sys
from typing import List, Optional

from . import _program
from ._words import log, show, words

POST_MORTEM_S = 60.0  # it replays the trace
VERDICT_S = 10.0  # so does it; the run can be asked later


def is_quiet() -> bool:
    return os.environ.get("TIDEMARK_QUIET", "") not in ("", "0")


def traces(folder: str) -> List[str]:
    """Names of the traces in a run's folder."""
    try:
        return [name for name in os.listdir(folder) if name.endswith((".trace", ".trace.part"))]
    except OSError:  # it was never made, or is no longer there
        return []


class AtExit:
    """Of this process. folder: where the run is; is_ours: we have made it, and nobody else records into it."""

    def __init__(self, folder: str, is_ours: bool):
        self._folder, self._is_ours = folder, is_ours
        self._name = os.path.relpath(folder) if os.path.dirname(folder) == os.getcwd() else folder
        self._pid: Optional[int] = os.getpid()
        self._before = set(traces(folder))
        atexit.register(self.say)
        self._say_before_os_exit()

    def _say_before_os_exit(self) -> None:
        leave = os._exit

        @functools.wraps(leave)
        def say_and_leave(status: int) -> None:
            self.say()
            leave(status)

        os._exit = say_and_leave  # type: ignore[assignment]

    def say(self) -> None:
        """Once, and never a reason for the program to end otherwise."""
        if self._pid != os.getpid():
            return
        self._pid = None
        try:
            self._say()
        except Exception as reason:
            log.debug("at exit: %r", reason)

    def _say(self) -> None:
        if self._is_ours and self._is_gone():
            return
        has_traces = bool(set(traces(self._folder)) - self._before)
        if is_quiet() or not (has_traces or self._is_ours):
            return
        name = shlex.quote(self._name)
        if not has_traces:
            show(words(f"tidemark: nothing could be recorded; for the reason: tidemark report {name}\n",
                       f"tidemark: 未能记录; 查看原因: tidemark report {name}\n"), sys.stderr)
            return
        post_mortem = self._post_mortem()
        verb = "explain" if post_mortem else self._next_command()
        show(words(f"tidemark: recorded in {name}; next: tidemark {verb} {name}\n",
                   f"tidemark: 已记录到 {name}; 下一步: tidemark {verb} {name}\n") + post_mortem, sys.stderr)

    def _is_gone(self) -> bool:
        """Nothing was recorded: then the folder is empty, and is taken away."""
        try:
            os.rmdir(self._folder)
        except FileNotFoundError:
            return True
        except OSError:  # it has something in it
            return False
        return True

    def _next_command(self) -> str:
        """The verdict's: leak, explain or peak. "report" where the verdict takes too long."""
        try:
            done = subprocess.run(_program.command("report", self._folder, "--json"), stdin=subprocess.DEVNULL,
                                  env=_program.environment(), capture_output=True, timeout=VERDICT_S, check=False)
            words_of_it = shlex.split(json.loads(done.stdout)["health"]["next"])
            return " ".join(word for word in words_of_it[1:] if word != self._folder)
        except (_program.NoAnswer, OSError, subprocess.TimeoutExpired, ValueError, KeyError) as reason:
            log.debug("no verdict: %s", reason)
            return "report"

    def _post_mortem(self) -> str:
        """As `tidemark run` prints it; "" where memory has not run out."""
        import tidemark
        if tidemark._lib is None or tidemark._lib.tidemark_record_n_ooms() == 0:
            return ""
        try:
            done = subprocess.run(_program.command("explain", self._folder, "--post-mortem"), stdin=subprocess.DEVNULL,
                                  env=_program.environment(), capture_output=True, timeout=POST_MORTEM_S, check=False)
        except (_program.NoAnswer, OSError, subprocess.TimeoutExpired) as reason:
            log.debug("no post-mortem: %s", reason)
            return ""
        return done.stdout.decode("utf-8", "replace") if done.returncode == 1 else ""
