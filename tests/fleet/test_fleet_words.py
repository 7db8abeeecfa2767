# SPDX-License-Identifier: MIT
"""What `tidemark fleet` says of each kind of finding, word by word: on answers that are made up."""
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios

from agent_kit import LIMIT_S, program
from cluster_kit import fleet
from test_fleet_hostile import NOW, Server, but, vector

GIB = 1 << 30
RANK = {"job": "llama", "host": "node-1", "gpu": "3", "pid": "42", "rank": "5"}
DATA = {"job": "llama", "host": "node-1", "pid": "42", "rank": "5"}
FINDINGS = [
    ({**RANK, "finding": "oom_soon"}, "200"),
    ({**RANK, "finding": "leak"}, str(12 << 20)),
    ({**RANK, "finding": "oom_likely", "gpu": "host"}, "3"),
    ({**RANK, "finding": "oom_likely", "pid": "43", "rank": ""}, "2"),
    ({**DATA, "finding": "oom"}, "2"),
    ({"job": "llama", "finding": "imbalance"}, "1.8"),
    ({"job": "llama", "finding": "ranks_missing"}, "3"),
    ({"job": "bert", "finding": "ranks_missing"}, "3"),
    ({"job": "tidemark", "instance": "node-2:9742", "finding": "agent_silent"}, "0"),
    ({"job": "tidemark", "instance": "[fe80::1]:9742", "finding": "agent_silent"}, "0"),
    ({"job": "tidemark", "instance": "node-3:9742", "host": "node-3", "finding": "agent_gone"}, "1"),
    ({"host": "node-1", "gpu": "3", "uuid": "GPU-3", "finding": "gpu_nearly_full"}, "0.973"),
    ({**RANK, "finding": "fragmentation"}, "0.62"),
    ({"finding": "labels_renamed"}, "4"),
    ({**DATA, "finding": "figures_old"}, "725"),
    ({**DATA, "finding": "events_dropped"}, "9"),
]


def figures():
    names = {"allocated_bytes": 70 * GIB, "peak_allocated_bytes": 72 * GIB, "limit_bytes": 79 * GIB, "oom_seconds": 200,
             "step_growth_bytes": 12 << 20, "oom_low_seconds": 171, "oom_high_seconds": 240, "oom_risk": 3}
    found = [({**RANK, "__name__": f"tidemark_job_{name}"}, str(value)) for name, value in names.items()]
    for rank in 0, 1, 7:
        found += [({**RANK, "pid": str(rank), "rank": str(rank), "__name__": f"tidemark_job_{name}"}, str(40 * GIB))
                  for name in ("allocated_bytes", "peak_allocated_bytes")]
    return vector(*found)


def matrix(*series):
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
        {"metric": labels, "values": [[NOW - ago, value] for ago, value in points]} for labels, points in series]}})


def target(name):
    return {"job": "tidemark", "instance": f"{name}:9742"}


#: In order of the question's words: the first that is in a question answers it.
ANSWERS = {
    '"finding", "oom_soon"': vector(*FINDINGS),
    'instance=~"node-4': matrix(
        (target("node-4"), [(600 - 15 * i, "0" if i in (20, 21) else "1") for i in range(41)])),
    "instance=~": matrix(
        (target("node-1"), [(600 - 15 * i, "1") for i in range(41) if not 10 <= i < 14]),
        (target("node-2"), [(600 - 15 * i, "1" if i < 30 else "0") for i in range(41)])),
    "count_over_time": vector(*[({**target(name), "figure": figure}, value) for name, figure, value in (
        ("node-1", "all", "37"), ("node-1", "good", "37"), ("node-2", "all", "41"), ("node-2", "good", "30"),
        ("node-4", "all", "41"), ("node-4", "good", "39"))]),
    "unless on (job, rank)": vector(({"job": "llama", "rank": "3", "host": "node-2"}, str(NOW - 30)),
                                    ({"job": "llama", "rank": "4", "host": "node-9"}, str(NOW - 600))),
    "quantile": vector(*[({"job": "llama", "figure": figure}, value) for figure, value in (
        ("ranks", "4"), ("world", "8"), ("median", str(40 * GIB)), ("imbalance", "1.8"))],
        ({"job": "bert", "figure": "world"}, "-1"), ({"job": "bert", "figure": "ranks"}, "3")),
    "peak_growth": figures(),
    "tidemark_job_info": vector(({**RANK, "cause": "leak", "run": "/r"}, "1")),
    "last_over_time(tidemark_build_info": vector(
        *[({**target(f"node-{i}"), "host": f"node-{i}", "version": "1"}, "1") for i in (1, 2, 3, 4)]),
    "up{job": vector((target("node-1"), "1"), (target("node-2"), "0"), (target("node-4"), "1"),
                     ({"job": "tidemark", "instance": "[fe80::1]:9742"}, "0")),
}

SAID = """\
1 critical, 13 warnings: llama: rank 5 on node-1 runs out of memory in 3 min 20
s.
2 of 5 agents answer, 0 GPUs, 2 jobs, 4 watched processes; as of 11:06:40, with
findings of the last 60 min
  The rules of deploy/prometheus are not evaluated there: no alert will tell
  anybody of this.

FINDINGS
  critical  llama: rank 5 on node-1 runs out of memory in 3 min 20 s
            GPU 3: peak 72.00 GiB of 79.00 GiB; keeps 12.0 MiB more after each
            step; between 2 min 51 s and 4 min; cause: leak
            tidemark leak node-1:42
  warning   llama: rank 5 on node-1 is heading for an OOM
            tidemark report node-1:42
  warning   llama: process 43 on node-1 is heading for an OOM
            tidemark report node-1:43
  warning   llama: rank 5 on node-1 ran out of memory
            2 times in the last 60 min
            tidemark explain node-1:42
  warning   llama: rank 5 on node-1 leaks 12.0 MiB a step
  warning   llama: rank 5 on node-1 peaks at 1.80 times the median of the ranks
            peak 72.00 GiB, median 40.00 GiB
            tidemark fleet --prometheus URL --job llama
  warning   bert: only 3 ranks are seen, fewer than were started
            tidemark fleet --prometheus URL --job bert
  warning   llama: ranks 2-4, 6 of 8 are missing
            last seen on node-2, node-9, at 11:06:10
            tidemark fleet --prometheus URL --job llama
  warning   the agent at [fe80::1]:9742 does not answer
            it has not answered in the last 60 min
            ssh fe80::1 systemctl status tidemark-agent
  warning   the agent on node-2 (node-2:9742) does not answer
            its last answer was at 11:03:55
            ssh node-2 systemctl status tidemark-agent
  warning   the agent on node-3 (node-3:9742) is not scraped any more
            ssh node-3 systemctl status tidemark-agent
  warning   GPU 3 of node-1 is 97 % full
            ssh -t node-1 tidemark top
  warning   llama: rank 5 on node-1 has 62 % of its cached memory in small
            pieces
            GPU 3: peak 72.00 GiB of 79.00 GiB; keeps 12.0 MiB more after each
            step; between 2 min 51 s and 4 min; cause: leak
            tidemark frag node-1:42
  warning   agents are scraped without honor_labels: true, so jobs are not
            recognised
  info      node-1 has no samples from 10:58:55 to 11:00:10
            4 missing: Prometheus did not ask the agent
  info      node-4 has no samples from 11:01:25 to 11:02:10
            2 missing: the agent did not answer
            ssh node-4 journalctl -u tidemark-agent
  info      llama: the agent has not read rank 5 on node-1 for 12 min 05 s
            tidemark ps node-1
  info      llama: events of rank 5 on node-1 were lost; its figures may be off
            tidemark check node-1:42

NODES
  node            agent   GPUs  used  of  full  watched
  [fe80::1]:9742  SILENT     -     -   -     -        -
  node-2          SILENT     -     -   -     -        -
  node-3          GONE       -     -   -     -        -
  node-1          up         0     -   -     -        4
  node-4          up         0     -   -     -        0

JOBS
  job     ranks  nodes   allocated       peak      limit  ÷ median      OOM in
  llama  4 of 8      1  190.00 GiB  72.00 GiB  79.00 GiB      1.80  3 min 20 s
  bert        3      0           -          -          -         -           -

RANKS
  job    rank  node    GPU       peak      limit  growth a step      OOM in
  llama     5  node-1  3    72.00 GiB  79.00 GiB       12.0 MiB  3 min 20 s
  llama     0  node-1  3    40.00 GiB          -              -           -
  llama     1  node-1  3    40.00 GiB          -              -           -
  llama     7  node-1  3    40.00 GiB          -              -           -
"""


def test_every_finding():
    with Server(but(**ANSWERS)) as server:
        status, page, said = fleet(server.url, "--rows", "0")
    assert (status, said) == (1, "")
    assert page.replace(server.url, "URL") == SAID


def test_prometheus_was_away():
    """Of a time in which nobody has a sample it is said once."""
    holes = [(600 - 15 * i, "1") for i in range(41) if not 10 <= i < 14]
    answers = {**ANSWERS, '"finding", "oom_soon"': vector(), "count_over_time": vector(
        *[({**target(f"node-{i}"), "figure": figure}, value) for i in (1, 4) for figure, value in (
            ("all", str(40 - 5 * (i == 4))), ("good", str(40 - 5 * (i == 4))))]),
        'instance=~"node-4': matrix((target("node-4"), holes[:-1])), "instance=~": matrix((target("node-1"), holes))}
    with Server(but(**answers)) as server:
        answer = json.loads(fleet(server.url, "--json")[1])
    assert [(f["kind"], f["host"], f["instance"], f["text"], f["evidence"]) for f in answer["findings"]] == [
        ("gap", None, None, "Prometheus has no samples of anything from 10:58:55 to 11:00:10",
         "4 missing: it was away itself")]
    assert answer["findings"][0]["to"] - answer["findings"][0]["from"] == 75


def frames(url, rows, columns, n, **environment):
    """The first n frames of --watch on a terminal of this size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with subprocess.Popen([program("tidemark"), "fleet", "--prometheus", url, "--watch", "0.1"], stdout=theirs,
                          stderr=theirs, env={"PATH": "/usr/bin:/bin", "TZ": "UTC", "TERM": "xterm", **environment}) as process:
        os.close(theirs)
        seen = b""
        while seen.count(b"\033[H") <= n:
            seen += os.read(ours, 65536)
        process.terminate()
        assert process.wait(timeout=LIMIT_S) == -15
    os.close(ours)
    return seen.decode("utf-8", "replace").split("\033[H")[1:n + 1]


def test_watch_on_a_screen():
    """Frames are drawn over each other and fit: also the ranks have room. Colour has a meaning."""
    with Server(but(**ANSWERS)) as server:
        for rows, columns in (24, 80), (30, 80), (60, 120):
            for frame in frames(server.url, rows, columns, 2):
                assert frame.count("\n") < rows
                assert frame.startswith("\033[31m1 critical, 13 warnings: ") and "\033[31m  critical" in frame
                assert ("\033[33m  warning" in frame) == (rows > 24)
                assert "JOBS" in frame and "RANKS" in frame and "too short" not in frame
                assert ("NODES" in frame) == (rows == 60)
        plain = frames(server.url, 60, 120, 1, NO_COLOR="1")[0]
    assert "\033[3" not in plain and "\033[1m" not in plain
