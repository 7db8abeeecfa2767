# SPDX-License-Identifier: MIT
"""What a Prometheus costs that scrapes many agents: Debian's, with the shipped configuration and rules, and
the synthetic agents of fleet_targets.py. `bench/run --only fleet` calls measure()."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import fleet_targets

MIB = 1 << 20
AGENTS, QUICK_AGENTS = 1000, 100
WARM_S, MEASURED_S = 75, 120  # five scrapes, and eight more
SCRAPE_S = 15  # as shipped
BLOCK_AGENTS, BLOCK_SAMPLES = 4, 480  # on disk: two hours
FREE_MIB = 6000  # of memory, for all agents
PYTHON = "/usr/bin/python3"
QUERIES = {  # what a view of the whole fleet asks
    "agents": 'up{job="tidemark"}',
    "GPUs": 'tidemark:gpu_memory_used:ratio{gpu!="host"}',
    "GPUs with model": "tidemark_gpu_memory_total_bytes * on (host, gpu) group_left (model) tidemark_gpu_info",
    "jobs": "tidemark:job_peak_allocated_bytes:max",
    "jobs by imbalance": "sort_desc(tidemark:job_peak_imbalance:ratio)",
    "ranks by risk": "topk(50, tidemark_job_oom_risk)",
    "all ranks": "tidemark:rank_peak_allocated_bytes:max",
    "ranks of a job": 'tidemark:rank_peak_allocated_bytes:max{job="job-1"}',
    "all of a job": '{__name__=~"tidemark_job_.*", job="job-1"}',
    "alerts": "ALERTS",
}


class Refused(Exception):
    """The measurement cannot be made, or its figures would mean nothing."""


# ---- the real agent

def real_text(bench):
    """The exposition of a real agent; the tests' Python has what its kit needs."""
    done = subprocess.run([PYTHON, os.path.join(os.path.dirname(__file__), "fleet_text.py")], capture_output=True, text=True,
                          check=False, env={**os.environ, "TIDEMARK_BUILD": bench.build})
    if done.returncode:
        raise Refused(f"the real agent tells nothing: {done.stderr[-500:]}")
    return done.stdout


def with_reserved(text):
    """With what torch tells and these jobs do not: reserved memory, and its peak."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        for name in "allocated", "peak_allocated":
            if line.startswith(f"tidemark_job_{name}_bytes{{"):
                lines.append(line.replace("allocated", "reserved", 1))
    return "\n".join(lines) + "\n"


# ---- Prometheus

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    """The shipped configuration and rules, over n agents at one address."""

    def __init__(self, root, folder, port, n):
        shutil.copytree(os.path.join(root, "deploy", "prometheus"), folder)
        (folder / "targets").mkdir()
        groups = [{"targets": [f"127.0.0.1:{port}"], "labels": {"__metrics_path__": f"/metrics/{i}",
                                                               "instance": f"node-{i:04d}:9742"}} for i in range(n)]
        (folder / "targets" / "tidemark-bench.json").write_text(json.dumps(groups), encoding="ascii")
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=scrape-file.yml", "--storage.tsdb.path=data",
             f"--web.listen-address={self.url[len('http://'):]}"], cwd=folder, stderr=subprocess.DEVNULL)

    def get(self, path, **parameters):
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
            return answer.read().decode()

    def query(self, text):
        return json.loads(self.get("/api/v1/query", query=text))["data"]["result"]

    def number(self, text):
        found = self.query(text)
        return float(found[0]["value"][1]) if found else 0.0

    def own(self):
        """{series: value} of its own metrics."""
        lines = (line.rpartition(" ") for line in self.get("/metrics").splitlines() if line[:1] != "#")
        return {name: float(value) for name, _, value in lines}

    def timed(self, text):
        """(median ms of five until the answer is here, rows)"""
        times = []
        for _ in range(5):
            start = time.monotonic()
            answer = self.get("/api/v1/query", query=text)
            times.append((time.monotonic() - start) * 1000)
        return sorted(times)[2], len(json.loads(answer)["data"]["result"])

    def wait(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.get("/-/ready")
            except (urllib.error.URLError, OSError) as reason:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise Refused("prometheus does not start") from reason
                time.sleep(0.2)

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


# ---- figures

def measure_disk(bench, text, n_samples):
    """Bytes a sample in a block of two hours, made by promtool, index included."""
    with tempfile.TemporaryDirectory(dir=bench.folder) as name:
        source = os.path.join(name, "samples")
        start = int(time.time()) // 7200 * 7200 - 7200
        with open(source, "w", encoding="utf-8") as out:
            for i in range(BLOCK_AGENTS):
                agent = fleet_targets.Agent(text, i)
                for n in range(n_samples):
                    at = start + n * SCRAPE_S
                    out.writelines(f"{line} {at}\n" for line in agent.text(at, n).splitlines() if line[0] != "#")
            out.write("# EOF\n")
        done = subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", source, name + "/blocks"],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(f"promtool makes no block: {done.stderr[-300:]}")
        blocks = [path.parent for path in Path(name, "blocks").glob("*/meta.json")]
        n = sum(json.loads((block / "meta.json").read_text())["stats"]["numSamples"] for block in blocks)
        used = sum(path.stat().st_size for block in blocks for path in block.rglob("*") if path.is_file())
        return used / n, n


def stored(own):
    """Samples that its own metrics say it has stored; newer ones count them by type."""
    return sum(value for name, value in own.items() if name.startswith("prometheus_tsdb_head_samples_appended_total"))


def add_load(bench, prometheus, n_agents, n_series, seconds):
    before, start = prometheus.own(), time.monotonic()
    time.sleep(seconds)
    after, passed = prometheus.own(), time.monotonic() - start
    cpu = after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]
    rate = (stored(after) - stored(before)) / passed
    head = after["prometheus_tsdb_head_series"]
    if prometheus.number('sum(up{job="tidemark"})') != n_agents:
        raise Refused("not all agents were scraped")
    if rate < 0.9 * n_agents * n_series / SCRAPE_S:
        raise Refused(f"only {rate:.0f} samples a second were stored")
    what = f"{n_agents:,} agents"
    bench.add(f"{what}: series in the head, rules' included", int(head), "")
    bench.add(f"{what}: samples stored a second", rate, "/s")
    bench.add(f"{what}: Prometheus, rules included: of a core", 100 * cpu / passed, "%")
    bench.add(f"{what}: its resident memory after {WARM_S + seconds} s", after["process_resident_memory_bytes"] / MIB, "MiB",
              None, f"{after['process_resident_memory_bytes'] / head:,.0f} B a series")
    bench.add(f"{what}: its heap in use", after["go_memstats_heap_inuse_bytes"] / MIB, "MiB")
    late = prometheus.number('max(scrape_duration_seconds{job="tidemark"})')
    bench.add(f"{what}: a scrape, slowest", late * 1000, "ms")


def add_queries(bench, prometheus):
    groups = json.loads(prometheus.get("/api/v1/rules"))["data"]["groups"]
    for group in groups:
        slowest = max(group["rules"], key=lambda rule: rule["evaluationTime"])
        bench.add(f"rules of the group {group['name']}, all of them, every {SCRAPE_S} s", group["evaluationTime"] * 1000, "ms",
                  None, f"{slowest['evaluationTime'] * 1000:.0f} ms {slowest['name']}")
    for name, text in QUERIES.items():
        took, n_rows = prometheus.timed(text)
        bench.add(f"query: {name}", took, "ms", None, f"{n_rows:,} rows")


def free_mib():
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable"))


def measure(bench, root):
    """Bounded: some four minutes, and about 2 GiB; a minute and a half with --quick."""
    bench.program("tests/fake_cuda/libnvidia-ml.so.1")
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        raise Refused("there is no prometheus here: apt-get install prometheus")
    n_agents = QUICK_AGENTS if bench.quick else AGENTS
    if not bench.quick and free_mib() < FREE_MIB:
        raise Refused(f"only {free_mib()} MiB of memory are free; {FREE_MIB} would be enough. --quick needs less")
    told = real_text(bench)
    text = with_reserved(told)
    n_series = sum(line[:1] not in ("#", "") for line in text.splitlines())
    n_categories = text.count("\ntidemark_job_category_bytes{")
    bench.add("an agent of 8 GPUs and 8 torch ranks: series", n_series, "", None, f"{n_categories} of them categories")
    bench.add("its answer", len(text) / 1024, "KiB")
    per_sample, n = measure_disk(bench, text, BLOCK_SAMPLES // 8 if bench.quick else BLOCK_SAMPLES)
    bench.add("a sample on disk, index included", per_sample, "B", None, f"a block of {n:,} samples")
    with tempfile.TemporaryDirectory(dir=bench.folder) as name:
        path = Path(name) / "text"
        path.write_text(text, encoding="utf-8")
        with subprocess.Popen([sys.executable, fleet_targets.__file__, str(path), str(n_agents)], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as targets:
            prometheus = Prometheus(root, Path(name) / "prometheus", int(targets.stdout.readline()), n_agents)
            try:
                prometheus.wait()
                time.sleep(WARM_S)
                add_load(bench, prometheus, n_agents, n_series, 30 if bench.quick else MEASURED_S)
                add_queries(bench, prometheus)
            finally:
                prometheus.end()
                targets.stdin.close()
