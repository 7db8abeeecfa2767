# SPDX-License-Identifier: MIT
"""`tidemark fleet` over 64 agents: three jobs heading for an OOM, one leaking, one imbalanced, one
agent silent. The real Prometheus and VictoriaMetrics scrape them; the shipped alerts agree with it.

The nodes with jobs are PID namespaces, so that each agent sees its own jobs alone. No time is measured:
"within two scrapes" is counted in scrapes."""
import concurrent.futures
import json
import re
import shlex
import subprocess

import pytest
from agent_kit import REPO, Agent, Machine, program, wait_for
from cluster_kit import CAN_MAKE_NODES, Node, fleet, python, start_prometheus, start_victoria_metrics

pytestmark = pytest.mark.skipif(not CAN_MAKE_NODES, reason="no PID namespaces for this user")
MIB = 1 << 20
N_AGENTS = 64
SEGMENT = f"segment {64 * MIB}"
#: node: [(job, rank, world size, what it does)]
JOBS = {
    "node-01": [("oom-a", None, None, f"batches 60 {255 * MIB}")],
    "node-02": [("oom-b", None, None, f"batches 60 {258 * MIB}")],
    "node-03": [("oom-c", 0, 1, f"batches 60 {252 * MIB}")],
    "node-04": [("leaky", None, None, "steps 60 4096")],
    "node-05": [("uneven", 0, 3, f"alloc 0 0 {10 * MIB}"), ("even", 0, 2, f"alloc 0 0 {10 * MIB}")],
    "node-06": [("uneven", 1, 3, f"alloc 0 0 {10 * MIB}"), ("even", 1, 2, f"alloc 0 0 {10 * MIB}")],
    "node-07": [("uneven", 2, 3, f"alloc 0 0 {30 * MIB}")],
}
SILENT = "node-33"
#: (kind, job, rank, host) of what is wrong.
WRONG = {("oom_soon", "oom-a", None, "node-01"), ("oom_soon", "oom-b", None, "node-02"),
         ("oom_soon", "oom-c", 0, "node-03"), ("leak", "leaky", None, "node-04"),
         ("imbalance", "uneven", 2, "node-07"), ("agent_silent", None, None, SILENT)}


class Cluster:
    def __init__(self, folder):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            nodes = list(pool.map(lambda name: self.make_node(folder, name), JOBS))
        self.nodes = {node.name: node for node in nodes}
        self.plain = Machine(folder / "plain")
        self.plain.cards(["uuid GPU-plain"])
        self.agents = {f"node-{i:02}": self.plain_agent(f"node-{i:02}") for i in range(len(JOBS) + 1, N_AGENTS + 1)}
        ports = [node.agent.port for node in nodes] + [agent.port for agent in self.agents.values()]
        self.stores = [start_prometheus(folder, ports), start_victoria_metrics(folder, ports)]
        self.prometheus, self.victoria = self.stores

    def make_node(self, folder, name):
        node = Node(folder, name)
        for job, rank, world_size, what in JOBS[name]:
            node.watch(job, rank, world_size).do(SEGMENT, what)
        node.start_agent()
        return node

    def plain_agent(self, name, *arguments):
        """One that follows no job: its machine has those of others too."""
        return Agent("--host", name, "--interval", "1", "--max-jobs", "0", *arguments,
                     environment=self.plain.environment())

    def end(self):
        for thing in self.stores + list(self.nodes.values()):
            thing.end()
        for agent in self.agents.values():
            if agent.process.poll() is None:
                agent.end()


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "plain").mkdir()
    cluster = Cluster(folder)
    for name, job in ("node-01", "oom-a"), ("node-02", "oom-b"), ("node-03", "oom-c"):
        cluster.nodes[name].agent.wait_metrics("a forecast", lambda m, job=job: any(
            value == 3 for _, value in m.of("tidemark_job_oom_risk", job=job)))
    cluster.nodes["node-04"].agent.wait_metrics("a leak", lambda m: m.of("tidemark_job_info", cause="leak"))
    for name in "node-05", "node-06", "node-07":
        cluster.nodes[name].agent.wait_metrics("a peak", lambda m: m.of(
            "tidemark_job_peak_allocated_bytes", job="uneven", gpu="0"))
    for store in cluster.stores:
        wait_for("the first scrape of all", lambda store=store: min(store.scrapes()) >= 1)
    cluster.agents[SILENT].end()
    for store in cluster.stores:
        store.wait_two_scrapes()
    yield cluster
    cluster.end()


def found_by(store, *arguments, status=1):
    done = fleet(store.url, "--json", *arguments)
    assert done[0] == status and done[2] == "", done
    return json.loads(done[1])


def names(answer):
    """Without gaps: on a busy machine a scrape may come too late."""
    return {(f["kind"], f["job"], f["rank"], f["host"]) for f in answer["findings"] if f["kind"] != "gap"}


def rows_of(page, heading):
    """The lines of a table, without its titles, which end in the line with the word for a node."""
    lines = page[page.index(f"{heading}\n"):].splitlines()
    first = next(i for i, line in enumerate(lines) if " node " in line) + 1
    return lines[first:]


def test_names_exactly_those(cluster):
    answer = found_by(cluster.prometheus)
    assert names(answer) == WRONG
    assert len([f for f in answer["findings"] if f["severity"] != "info"]) == len(WRONG)
    assert (answer["critical"], answer["warnings"], answer["rules_loaded"]) == (3, 3, True)
    assert [f["kind"] for f in answer["findings"][:3]] == ["oom_soon"] * 3
    assert len(answer["nodes"]) == N_AGENTS
    assert {node["host"]: node["agent"] for node in answer["nodes"] if node["agent"] != "up"} == {SILENT: "silent"}
    assert {gpu["host"] for gpu in answer["gpus"] if gpu["kind"] == "nvidia"} == \
        {node["host"] for node in answer["nodes"]} - {SILENT}


def test_victoria_metrics_says_the_same(cluster):
    """Without rules, which it does not evaluate."""
    answer, other = found_by(cluster.prometheus), found_by(cluster.victoria)
    assert names(other) == WRONG
    assert other["rules_loaded"] is False
    for part in "ranks", "jobs":
        keys = [("job", "rank", "host", "gpu", "peak", "limit", "risk", "cause", "against_median", "missing",
                 "imbalance", "world_size")] * 2
        rows = [sorted(str([row.get(key) for key in keys[i]]) for row in found[part])
                for i, found in enumerate((answer, other))]
        assert rows[0] == rows[1]


def test_alerts_fire_for_the_same(cluster):
    """One truth: an alert fires for each finding, and no other."""
    answer = found_by(cluster.prometheus)

    def of_alert(labels):
        is_node = labels["alertname"] == "TidemarkAgentSilent"
        return (labels["alertname"], None if is_node else labels.get("job"), labels.get("host"), labels.get("gpu"),
                labels.get("instance") if is_node else None)

    def of_finding(f):
        is_job = f["kind"] == "imbalance"
        is_node = f["kind"] == "agent_silent"
        return (f["alert"], f["job"], None if is_job or is_node else f["host"], None if is_job else f["gpu"],
                f["instance"] if is_node else None)

    expected = {of_finding(f) for f in answer["findings"] if f["alert"]}
    wait_for("the alerts", lambda: {of_alert(labels) for labels, _ in cluster.prometheus.query(
        'ALERTS{alertstate="firing"}')} == expected)
    assert len(expected) == len(WRONG)


def test_what_to_do(cluster):
    answer = found_by(cluster.prometheus)
    pids = {row["host"]: row["pid"] for row in answer["ranks"]}
    commands = {f["host"]: f["command"] for f in answer["findings"] if f["alert"]}
    assert commands == {
        **{host: f"tidemark report {host}:{pids[host]}" for host in ("node-01", "node-02", "node-03")},
        "node-04": f"tidemark leak node-04:{pids['node-04']}",
        "node-07": f"tidemark fleet --prometheus {cluster.prometheus.url} --job uneven",
        SILENT: f"ssh {SILENT} systemctl status tidemark-agent"}
    silent = next(f for f in answer["findings"] if f["kind"] == "agent_silent")
    assert 0 < answer["time"] - silent["from"] < 60
    leak = next(f for f in answer["findings"] if f["kind"] == "leak")
    assert leak["value"] == 4096 and leak["text"] == "leaky: process {pid} on node-04 leaks 4.0 KiB a step".format(**leak)


def test_text(cluster):
    """The verdict first; 80 columns; no colour in a pipe."""
    status, page, said = fleet(cluster.prometheus.url)
    assert (status, said) == (1, "")
    lines = page.splitlines()
    assert re.match(r"3 critical, 3 warnings: oom-[abc]: ", lines[0])
    assert "63 of 64 agents answer, 63 GPUs, 6 jobs, 9 watched processes" in page.replace("\n", " ")
    assert max(map(len, lines)) <= 80
    assert "\033" not in page
    assert [line for line in lines if line.isupper() and not line.startswith(" ")] == [
        "FINDINGS", "NODES", "GPUS", "JOBS", "RANKS"]
    ranks = rows_of(page, "RANKS")
    assert [line.split()[0] for line in ranks[:3]] == [f["job"] for f in found_by(cluster.prometheus)["findings"][:3]]


def test_job_side_by_side(cluster):
    status, page, _ = fleet(cluster.prometheus.url, "--job", "uneven", "--sort", "rank")
    assert status == 0  # a warning is not critical
    ranks = rows_of(page, "RANKS")
    limits = [line.split()[7] for line in ranks]
    assert [line.split() for line in ranks] == [
        [str(rank), f"node-0{rank + 5}", "0", *peak.split(), *peak.split(), limits[rank], "GiB", "-", ratio, "-"]
        for rank, peak, ratio in ((0, "10.0 MiB", "1.00"), (1, "10.0 MiB", "1.00"), (2, "30.0 MiB", "3.00"))]
    answer = found_by(cluster.prometheus, "--job", "uneven", status=0)
    assert names(answer) == {("imbalance", "uneven", 2, "node-07")}
    assert [(j["job"], j["ranks"], j["world_size"], j["missing"], j["imbalance"]) for j in answer["jobs"]] == [
        ("uneven", 3, 3, None, 3)]
    assert {row["job"] for row in answer["ranks"]} == {"uneven"}


def test_sort_and_rows(cluster):
    def jobs(*arguments):
        return [row["job"] for row in found_by(cluster.prometheus, *arguments)["ranks"]]
    assert jobs("--sort", "peak")[:4] == ["oom-b", "oom-a", "oom-c", "uneven"]
    assert jobs("--sort", "growth")[:4] == ["oom-b", "oom-a", "oom-c", "leaky"]
    page = fleet(cluster.prometheus.url, "--rows", "2")[1]
    assert re.search("  and [0-9]+ more findings; --rows N shows more, --json all\n", page)
    assert "  and 62 more nodes; --rows N shows more, --json all\n" in page
    assert re.search(r"  and 7 more, with peaks from \S+ \S+ to \S+ \S+; --rows N shows more\n$", page)


def test_watch(cluster):
    """Objects, a line each, until it is interrupted."""
    process = subprocess.Popen([program("tidemark"), "fleet", "--prometheus", cluster.prometheus.url, "--json", "--watch", "0.1"],
                               stdout=subprocess.PIPE, text=True)
    looks = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.terminate()
    process.communicate()
    assert all(names(look) == WRONG for look in looks)
    assert looks[0]["time"] < looks[1]["time"] < looks[2]["time"]


PYTHON_VIEW = """
import json, sys, tidemark
view = tidemark.fleet(sys.argv[1])
job = tidemark.fleet(sys.argv[1], "uneven", sort="rank", timeout=30, window=600)
print(json.dumps([view.answer, repr(view), str(job), view.is_critical, job.is_critical,
                  [len(part) for part in (view.nodes, view.gpus, view.jobs, view.ranks, view.findings)],
                  [(row["rank"], row["against_median"]) for row in job.ranks], job.answer["window_seconds"], view.time]))
"""


def test_python(cluster):
    """tidemark.fleet() is what the command answers."""
    status, printed, said = python(PYTHON_VIEW, cluster.prometheus.url)
    assert (status, said) == (0, "")
    answer, text, job_text, is_critical, job_is_critical, counts, ranks, window, time = json.loads(printed)
    assert names(answer) == WRONG and time == answer["time"]
    assert text == f"Fleet(64 nodes, 126 devices, 6 jobs, 9 ranks, {counts[4]} findings)"
    assert job_text.splitlines()[0] == "warning: uneven: rank 2 on node-07 peaks at 3.00 times the median of the ranks"
    assert (is_critical, job_is_critical, window) == (True, False, 600)
    assert counts[:4] == [64, 126, 6, 9] and counts[4] >= 6
    assert ranks == [[0, 1], [1, 1], [2, 3]]


def test_commands_of_the_page(cluster):
    """docs/fleet.md: each line of the shell runs, and its Python."""
    page = (REPO / "docs" / "fleet.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\$ (tidemark fleet\b.*)$", page, re.M)
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line.partition(" | ")[0])[2:]
        if "--watch" not in words:
            status, printed, said = fleet(cluster.prometheus.url, *words)
            assert status in (0, 1) and said == "" and printed, line
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    block = block.replace("http://prometheus:9090", cluster.prometheus.url).replace("llama-7b", "oom-c")
    status, printed, said = python(block)
    assert (status, said) == (0, "")
    assert re.fullmatch(r"0 node-03 \d+ [\d.]+\noom-c: rank 0 on node-03 runs out .* tidemark report node-03:\d+\n", printed)
    listed = set(re.findall(r"^\| `((?!tidemark)[a-z_]+)` \| (?:critical|warning|info) \|", page, re.M))
    source = (REPO / "src" / "fleet" / "cluster" / "cluster_queries.c").read_text(encoding="utf-8")
    assert listed == set(re.findall(r'\{"([a-z_]+)",\s*(?:"Tidemark|NULL)', source)) and len(listed) == 14


def test_promtool_accepts_the_metrics_of_a_job(cluster):
    done = subprocess.run(["promtool", "check", "metrics"], input=cluster.nodes["node-04"].agent.text(),
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_missing_ranks(cluster):
    """Two jobs lose their rank 0: which one, and where it was last, is said."""
    cluster.nodes["node-05"].end_jobs()
    missing = {("ranks_missing", job, None, "node-05") for job in ("even", "uneven")}
    for store in cluster.stores:
        wait_for("the missing ranks", lambda store=store: missing <= names(found_by(store)))
        for finding in found_by(store)["findings"]:
            if finding["kind"] == "ranks_missing":
                world_size = {"even": 2, "uneven": 3}[finding["job"]]
                assert finding["text"] == f"{finding['job']}: rank 0 of {world_size} is missing"
                assert finding["evidence"].startswith("last seen on node-05, at ")


def test_it_resolves(cluster):
    """The jobs end, the agent comes back: no alert fires, and what was missed is said."""
    for node in cluster.nodes.values():
        node.end_jobs()
    port = cluster.agents[SILENT].port
    cluster.agents[SILENT] = cluster.plain_agent(SILENT, "--listen", str(port))
    wait_for("the end of alerts", lambda: cluster.prometheus.query("up") and not cluster.prometheus.query(
        'ALERTS{alertstate="firing"}'))
    for store in cluster.stores:
        store.wait_two_scrapes()
        answer = found_by(store, status=0)
        assert {f["kind"] for f in answer["findings"]} == {"gap"}
        gap = max((f for f in answer["findings"] if f["host"] == SILENT), key=lambda f: f["value"])
        assert gap["severity"] == "info" and gap["alert"] is None
        assert gap["to"] - gap["from"] == pytest.approx(2 * (gap["value"] + 1), abs=1)
        assert gap["from"] < gap["to"] < answer["time"]
        assert gap["evidence"].endswith("missing: the agent did not answer")
        status, page, _ = fleet(store.url)
        assert status == 0 and page.startswith("Nothing is wrong: no rank is heading for an OOM or leaks.\n")
        assert re.search(rf"info      {SILENT} has no samples from \d\d:\d\d:\d\d to \d\d:\d\d:\d\d\n", page)
