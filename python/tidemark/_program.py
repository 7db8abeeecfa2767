# SPDX-License-Identifier: MIT
"""The program `tidemark`, asked from Python: what it prints with --json.

It runs beside this process, without what watches this one, so a question is never part of the answer.
"""
import json
import logging
import os
import subprocess
from typing import Any, Dict, List

from . import _library
from ._helpers import helper
from ._words import log

ANSWER_S = 120.0


class NoAnswer(RuntimeError):
    """The program is not there, or refused; the text says why."""


def command(*arguments: str) -> List[str]:
    """The program and these arguments."""
    try:
        return [_library.program(), *arguments]
    except _library.NotFound as reason:
        raise NoAnswer(str(reason)) from reason


def environment() -> Dict[str, str]:
    """This process's, but for what would have the program watched."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def ask(*arguments: str) -> Dict[str, Any]:
    """The object that the program prints; NoAnswer with what it says instead. A finding (status 1) is an answer."""
    try:
        with helper():
            done = subprocess.run(command(*arguments), env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise NoAnswer(str(reason)) from reason
    if done.returncode not in (0, 1) or not done.stdout.strip():
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise NoAnswer(said[-1] if said else f"the program ended with status {done.returncode}")
    answer = json.loads(done.stdout)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("asked %s: %s", " ".join(arguments), answer)
    return answer


def rows(run: str, sql: str) -> List[Dict[str, Any]]:
    """What a query over a run answers."""
    return ask("query", run, sql, "--format", "json")["rows"]
