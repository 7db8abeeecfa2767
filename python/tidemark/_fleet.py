# SPDX-License-Identifier: MIT
"""The cluster, as Prometheus knows it: what `tidemark fleet --json` answers, as an object.

Agents on the nodes are scraped by a Prometheus, or by what speaks its API; docs/fleet.md says how. Nothing here
talks to a node.
"""
import os
from typing import Any, Dict, List, Optional

from . import _figures, _program

Rows = List[Dict[str, Any]]


class Fleet:
    """One look at a cluster. Sizes are bytes, times Unix seconds, and None is not known.

    `findings`: what is wrong, the worst first, each with `kind`, `severity`, `text`, `evidence` and the `command`
    that looks closer; `nodes`, `gpus`, `jobs` and `ranks`, by risk: as `tidemark fleet --help` lists their keys.

    >>> view = fleet("http://prometheus:9090")
    >>> [rank["host"] for rank in view.ranks if rank["risk"] == "critical"]
    ['node-12']
    """

    def __init__(self, answer: Dict[str, Any]) -> None:
        #: The object that the program printed.
        self.answer = answer
        self.findings: Rows = answer.get("findings", [])
        self.nodes: Rows = answer.get("nodes", [])
        self.gpus: Rows = answer.get("gpus", [])
        self.jobs: Rows = answer.get("jobs", [])
        self.ranks: Rows = answer.get("ranks", [])
        #: By Prometheus' clock.
        self.time: Optional[float] = answer.get("time")

    @property
    def is_critical(self) -> bool:
        """Whether a rank has less than ten minutes to its OOM: what makes the command exit with 1.

        >>> if fleet(job="llama-7b").is_critical:
        ...     save_checkpoint()
        """
        return any(finding["severity"] == "critical" for finding in self.findings)

    def __repr__(self) -> str:
        return (f"Fleet({len(self.nodes)} nodes, {len(self.gpus)} devices, {len(self.jobs)} jobs, "
                f"{len(self.ranks)} ranks, {len(self.findings)} findings)")

    def __str__(self) -> str:
        return "\n".join(f"{finding['severity']}: {finding['text']}" for finding in self.findings) or "nothing is wrong"


def fleet(prometheus_url: Optional[str] = None, job: Optional[str] = None, *, sort: str = "risk",
          window: Optional[float] = None, timeout: Optional[float] = None, ca_file: Optional[str] = None,
          user: Optional[str] = None, password_file: Optional[str] = None,
          token_file: Optional[str] = None) -> Fleet:
    """Look at a cluster, or at one job of it. Without a URL it is that of TIDEMARK_PROMETHEUS; passwords and tokens
    are in files, or in TIDEMARK_PROMETHEUS_USER, _PASSWORD and _TOKEN. RuntimeError says why there is no answer.

    >>> for finding in fleet("http://prometheus:9090").findings:
    ...     print(finding["text"], "-", finding["command"])
    llama-7b: rank 5 on node-12 runs out of memory in 3 min 20 s - tidemark leak node-12:4242
    """
    if _figures.is_off():
        return Fleet({})
    options = {"prometheus": prometheus_url, "job": job, "sort": sort, "window": window, "timeout": timeout,
               "ca-file": ca_file, "user": user, "password-file": password_file, "token-file": token_file}
    given = [(name, os.fspath(value) if name.endswith("file") else str(value))
             for name, value in options.items() if value is not None]
    return Fleet(_program.ask("fleet", "--json", *[f"--{name}={value}" for name, value in given]))
