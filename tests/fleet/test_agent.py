# SPDX-License-Identifier: MIT
"""`tidemark agent`: what it tells of devices, processes and watched jobs, and that it stays bounded."""
import http.server
import json
import os
import subprocess
import threading

import pytest
from agent_kit import (GIB, OPENMETRICS, Agent, Machine, Metrics, Watched, clean_environment, program,
                       wait_for)

ID = "0123456789abcdef" * 4
POD = "8d4bd1a1-1a2b-4c3d-9e8f-0123456789ab"
MIB = 1 << 20


def put_process(machine, pid, name, groups="0::/\n", environ=b""):
    """A process in the made-up /proc."""
    folder = machine.folder / "proc" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "status").write_text(f"Name:\t{name}\nNSpid:\t{pid}\n", encoding="ascii")
    (folder / "cgroup").write_text(groups, encoding="ascii")
    (folder / "environ").write_bytes(environ)


@pytest.fixture(name="machine", scope="module")
def machine_fixture(tmp_path_factory):
    """Two cards; on the first a pod's process and five others."""
    machine = Machine(tmp_path_factory.mktemp("machine"))
    lines = ["uuid GPU-aa", f"process 7001 {4 * GIB}"]
    lines += [f"process {7002 + i} {(i + 1) * MIB}" for i in range(5)]
    machine.cards(lines, ["uuid GPU-bb", "reserved 1048576"])
    put_process(machine, 7001, "python3",
                f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope\n",
                b"POD_NAME=train-0\0POD_NAMESPACE=ml\0CONTAINER_NAME=torch\0")
    for i in range(5):
        put_process(machine, 7002 + i, f"worker{i}", f"0::/system.slice/docker-{ID}.scope\n")
    yield machine
    machine.sweep()


@pytest.fixture(name="agent", scope="module")
def agent_fixture(machine):
    agent = Agent("--host", "node-1", "--max-processes", "3", environment=machine.environment())
    yield agent
    status, said = agent.end()
    assert (status, said) == (0, "")


def test_devices(agent):
    metrics = agent.metrics()
    used = 4 * GIB + 15 * MIB
    first = {"host": "node-1", "gpu": "0", "uuid": "GPU-aa"}
    second = {"host": "node-1", "gpu": "1", "uuid": "GPU-bb"}
    host = {"host": "node-1", "gpu": "host"}
    assert metrics.of("tidemark_gpu_memory_total_bytes") == [
        (first, 16 * GIB), (second, 16 * GIB), (host, 16 * GIB)]
    assert metrics.of("tidemark_gpu_memory_used_bytes") == [(first, used), (second, 0), (host, 4 * GIB)]
    assert metrics.of("tidemark_gpu_memory_free_bytes") == [
        (first, 16 * GIB - used), (second, 16 * GIB - MIB), (host, 12 * GIB)]
    info = metrics.of("tidemark_gpu_info", gpu="1")
    assert info == [({**second, "kind": "nvidia", "device": "nvidia1", "model": "Card 1",
                      "UUID": "GPU-bb", "Hostname": "node-1"}, 1)]
    assert not metrics.of("tidemark_gpu_oom_seconds")


def test_processes_are_folded(agent):
    """The three that use most have series, the other three are one, and are counted."""
    metrics = agent.metrics()
    found = metrics.of("tidemark_process_gpu_memory_bytes")
    first = {"host": "node-1", "gpu": "0", "uuid": "GPU-aa"}
    docker = {**first, "container": ID[:12]}
    assert found == [
        ({**first, "pid": "7001", "process": "python3", "namespace": "ml", "pod": "train-0",
          "container": "torch"}, 4 * GIB),
        ({**docker, "pid": "7006", "process": "worker4"}, 5 * MIB),
        ({**docker, "pid": "7005", "process": "worker3"}, 4 * MIB),
        ({**first, "pid": "other"}, 6 * MIB)]
    assert metrics.of("tidemark_gpu_processes") == [(first, 6), ({**first, "gpu": "1", "uuid": "GPU-bb"}, 0)]
    assert metrics.value("tidemark_gpu_processes_folded", gpu="0") == 3


def test_promtool_accepts_the_metrics(agent):
    done = subprocess.run(["promtool", "check", "metrics"], input=agent.text(), capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_two_forms(agent):
    status, head = agent.curl("/metrics", "-i", "-H", f"Accept: {OPENMETRICS}")
    assert status == 200
    assert "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n" in head
    assert head.endswith("\n# EOF\n")
    status, head = agent.curl("/metrics", "-i")
    assert status == 200
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" in head
    assert "# EOF" not in head
    for series in Metrics(agent.text(OPENMETRICS)).samples, agent.metrics().samples:
        names = [(name, sorted(labels.items())) for name, labels, _ in series]
        assert len(names) == len({str(name) for name in names})


def test_docs_list_the_metrics(agent, jobs):
    """docs/fleet.md's table and the agent agree."""
    with open(os.path.join(os.path.dirname(__file__), "../../docs/fleet.md"), encoding="utf-8") as file:
        listed = {word for line in file if line.startswith("| `")
                  for word in line.split("|")[1].replace("`", "").replace(",", " ").split()
                  if word.startswith("tidemark_")}
    told = {name for name, _, _ in agent.metrics().samples + jobs.metrics().samples
            if name.startswith("tidemark_")}
    assert told <= listed
    rare = {"tidemark_gpu_oom_seconds", "tidemark_gpu_oom_risk", "tidemark_agent_otlp_exports_total",
            "tidemark_job_reserved_bytes", "tidemark_job_peak_reserved_bytes"}  # torch tells these
    assert listed - told - rare == set()


# ---- watched jobs

@pytest.fixture(name="folder", scope="module")
def folder_fixture(tmp_path_factory):
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(name="watched", scope="module")
def watched_fixture(folder, machine):
    """A rank with blocks, segments, steps and an OOM; one with a hostile name; one that ends."""
    hostile = b'a"} 1\nevil{x="' + b"\xff\xfe" + "训练".encode() + b"y" * 200
    env = machine.environment()
    train = Watched(folder, "train.tmk", {**env, "RANK": "3", "WORLD_SIZE": "8",
                                          "CUDA_VISIBLE_DEVICES": "1,0", "SLURM_JOB_ID": "77"})
    train.do(f"segment {64 * MIB}", f"alloc 0 0 {10 * MIB} 1", f"alloc 0 {20 * MIB} {4 * MIB} 3",
             f"alloc 0 {40 * MIB} {8 * MIB} 4", f"alloc 0 {50 * MIB} {2 * MIB} 4", f"alloc host 0 {MIB} 5",
             f"free 0 {50 * MIB}", f"steps 40 {380 * MIB}", f"oom 0 {GIB}")
    strange = Watched(folder, "s" * 200 + ".tmk",
                      {**env, b"TIDEMARK_JOB": hostile, "LD_LIBRARY_PATH": ""})
    strange.do("alloc host 0 5000 2")
    done = Watched(folder, "done.tmk", {**env, "LD_LIBRARY_PATH": ""})
    done.do("alloc host 0 7000", "free host 0", "oom host 1", "oom host 2")
    gpu_only = Watched(folder, "gpu.tmk", env)
    gpu_only.do("alloc 0 0 3000 1", "steps 3 0")
    yield {"train": train, "strange": strange, "done": done, "gpu_only": gpu_only}
    for job in train, strange, done, gpu_only:
        job.end()


@pytest.fixture(name="jobs", scope="module")
def jobs_fixture(machine, watched):
    agent = Agent("--host", "node-1", environment=machine.environment())
    pid = str(watched["train"].pid)
    agent.wait_metrics("the job's blocks", lambda m: any(
        value == 4 * MIB for _, value in
        m.of("tidemark_job_category_bytes", pid=pid, category="optimizer_state")))
    agent.wait_metrics("the other job", lambda m: m.of(
        "tidemark_job_allocated_bytes", pid=str(watched["strange"].pid)))
    yield agent
    status, said = agent.end()
    assert (status, said) == (0, "")


def test_job_figures(jobs, watched):
    """The job's cuda:0 is the driver's GPU 1; sums of real blocks in a real segment."""
    metrics = jobs.metrics()
    rank = {"host": "node-1", "pid": str(watched["train"].pid), "job": "77", "rank": "3"}
    gpu = {**rank, "gpu": "1", "uuid": "GPU-bb"}
    kept = 40 * 380 * MIB
    found = {name: value for name, labels, value in metrics.samples if labels == gpu}
    assert found["tidemark_job_allocated_bytes"] == 22 * MIB + kept
    assert found["tidemark_job_peak_allocated_bytes"] == 22 * MIB + kept + 1000
    assert found["tidemark_job_cached_bytes"] == 42 * MIB
    assert found["tidemark_job_largest_free_bytes"] == 16 * MIB
    assert found["tidemark_job_fragmentation_ratio"] == pytest.approx(1 - 16 / 42)
    assert found["tidemark_job_step_growth_bytes"] == 380 * MIB
    categories = {labels["category"]: value for labels, value in
                  metrics.of("tidemark_job_category_bytes", **gpu) if value}
    assert categories == {"parameter": 10 * MIB, "optimizer_state": 4 * MIB, "activation": 8 * MIB,
                          "unknown": kept}
    assert metrics.value("tidemark_job_allocated_bytes", **rank, gpu="host") == MIB
    assert found["tidemark_job_limit_bytes"] <= 16 * GIB
    assert found["tidemark_job_oom_risk"] >= 2
    assert 0 < found["tidemark_job_oom_low_seconds"] <= found["tidemark_job_oom_seconds"]
    assert found["tidemark_job_oom_seconds"] <= found["tidemark_job_oom_high_seconds"]
    assert 0.7 <= found["tidemark_job_oom_confidence_ratio"] <= 1
    assert metrics.of("tidemark_job_info", **gpu, cause="leak")
    for name, value in {"steps_total": 39, "ooms_total": 1, "world_size": 8,
                        "dropped_events_total": 0}.items():
        assert metrics.of(f"tidemark_job_{name}", **rank) == [(rank, value)]
    assert metrics.value("tidemark_agent_watched_jobs") >= 2


def test_same_as_frag(jobs, watched):
    pid = str(watched["train"].pid)
    done = subprocess.run([program("tidemark"), "frag", pid, "--at", "40", "--json"], text=True,
                          capture_output=True, check=True)
    frag = json.loads(done.stdout)
    metrics = jobs.metrics()
    assert frag["largest_free"] == metrics.value("tidemark_job_largest_free_bytes", pid=pid)
    assert frag["free"] == metrics.value("tidemark_job_cached_bytes", pid=pid)


def test_devices_never_allocated_on(jobs, watched):
    """Steps have the host's memory too; a job without a byte there has no series of it."""
    pid = str(watched["gpu_only"].pid)
    metrics = jobs.wait_metrics("its steps", lambda m: m.of("tidemark_job_steps_total", pid=pid))
    found = {labels["gpu"] for _, labels, _ in metrics.samples if labels.get("pid") == pid and "gpu" in labels}
    assert found == {"0"}


def test_hostile_name(jobs, watched):
    """It is a label's value, whole lines stay lines, and it is cut to 128 bytes."""
    metrics = jobs.metrics()
    labels, value = metrics.of("tidemark_job_allocated_bytes", pid=str(watched["strange"].pid))[0]
    assert value == 5000
    assert labels["job"].startswith('a"} 1\nevil{x="\ufffd\ufffd训练yyy')
    assert labels["job"].endswith("y…")
    assert len(labels["job"].encode()) == 128
    info = metrics.of("tidemark_job_info", pid=str(watched["strange"].pid))[0][0]
    assert len(info["run"].encode()) == 128
    assert not metrics.of("evil")
    done = subprocess.run(["promtool", "check", "metrics"], input=jobs.text(), capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_last_words_of_a_job(jobs, watched):
    """Totals and peaks of a process that has ended are still told, what it has now is not."""
    pid = str(watched["done"].pid)
    watched["done"].end()
    metrics = jobs.wait_metrics("its end", lambda m: m.of("tidemark_job_ooms_total", pid=pid) and
                                not m.of("tidemark_job_read_timestamp_seconds", pid=pid))
    assert metrics.value("tidemark_job_ooms_total", pid=pid) == 2
    assert metrics.value("tidemark_job_peak_allocated_bytes", pid=pid) == 7000
    assert not metrics.of("tidemark_job_allocated_bytes", pid=pid)


def test_max_jobs(machine, watched):
    """One is followed, and the others are counted."""
    agent = Agent("--max-jobs", "1", "--no-blocks", environment=machine.environment())
    metrics = agent.metrics()
    assert len(metrics.of("tidemark_job_steps_total")) == 1
    found = metrics.value("tidemark_agent_watched_jobs")
    assert found >= 2
    assert metrics.value("tidemark_agent_jobs_folded") == found - 1
    assert not metrics.of("tidemark_job_category_bytes")
    assert agent.end()[0] == 0


# ---- other users

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@needs_root
def test_another_users_jobs_are_not_seen(tmp_path, watched):
    tmp_path.chmod(0o755)
    agent = Agent(prefix=AS_NOBODY, environment=clean_environment(tmp_path))
    metrics = agent.metrics()
    assert metrics.value("tidemark_agent_watched_jobs") == 0
    assert not metrics.of("tidemark_job_steps_total")
    assert agent.end()[0] == 0


@needs_root
def test_a_trace_of_another_user_is_not_read(tmp_path):
    """A process's ring may name any file as its trace; an agent of root's reads only the user's own."""
    job = Watched(tmp_path, "theirs.tmk", {})
    job.do("alloc host 0 5000")
    trace = next((tmp_path / "theirs.tmk").glob("*.trace"))
    os.chown(trace, 65534, 65534)
    agent = Agent("--max-jobs", "9999", environment=clean_environment(tmp_path))
    metrics = agent.wait_metrics("that it cannot be read", lambda m: m.value("tidemark_agent_jobs_unreadable"))
    assert not metrics.of("tidemark_job_steps_total", pid=str(job.pid))
    assert not metrics.of("tidemark_job_allocated_bytes", pid=str(job.pid))
    assert agent.end()[0] == 0
    job.end()


# ---- OTLP

class Collector(http.server.ThreadingHTTPServer):
    """An OpenTelemetry collector that keeps what it is sent, and answers what it is told to."""

    def __init__(self):
        self.taken, self.status = [], 200
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *arguments):
        pass


def attributes(point):
    return {item["key"]: item["value"]["stringValue"] for item in point["attributes"]}


def test_otlp(machine, tmp_path):
    collector = Collector()
    agent = Agent("--host", "node-1", "--otlp", f"http://127.0.0.1:{collector.server_port}/",
                  "--otlp-interval", "0.2", "--max-jobs", "0",
                  environment={**machine.environment(),
                               "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=a,authorization=Bearer t"})
    wait_for("a second push", lambda: len(collector.taken) >= 2)
    path, headers, body = collector.taken[0]
    assert path == "/v1/metrics"
    assert (headers["Content-Type"], headers["x-tenant"]) == ("application/json", "a")
    assert headers["authorization"] == "Bearer t"
    resource = body["resourceMetrics"][0]
    assert attributes(resource["resource"])["host.name"] == "node-1"
    metrics = {m["name"]: m for m in resource["scopeMetrics"][0]["metrics"]}
    usage = metrics["hw.gpu.memory.usage"]
    assert usage["unit"] == "By"
    first = usage["gauge"]["dataPoints"][0]
    assert attributes(first) == {"hw.id": "GPU-aa", "hw.name": "0", "hw.vendor": "NVIDIA",
                                 "hw.model": "Card 0"}
    assert first["asDouble"] == 4 * GIB + 15 * MIB
    assert [p["asDouble"] for p in metrics["hw.gpu.memory.limit"]["gauge"]["dataPoints"]] == [16 * GIB] * 2
    assert metrics["tidemark.gpu.memory.total"]["unit"] == "By"
    assert metrics["process.cpu"]["sum"]["isMonotonic"] is True
    collector.status = 500
    agent.wait_metrics("a failure", lambda m: m.value("tidemark_agent_otlp_exports_total", result="failed"))
    collector.status = 200
    before = agent.metrics().value("tidemark_agent_otlp_exports_total", result="ok")
    agent.wait_metrics("the end of it", lambda m: m.value(
        "tidemark_agent_otlp_exports_total", result="ok") > before)
    status, said = agent.end()
    assert status == 0
    assert said == ("tidemark: OTLP to 127.0.0.1: it answered 500\n"
                    "tidemark: OTLP to 127.0.0.1: metrics are taken again\n")
    collector.shutdown()


# ---- settings

@pytest.mark.parametrize("arguments, said", [
    (["--listen", "nowhere"], "'nowhere' is not HOST:PORT, such as 127.0.0.1:9742"),
    (["--listen", "1.2.3.4:99999"], "'1.2.3.4:99999' is not HOST:PORT, such as 127.0.0.1:9742"),
    (["--listen", "::1:80"], "'::1:80' is not HOST:PORT, such as 127.0.0.1:9742"),
    (["--interval", "0"], "--interval: '0' is not a time from 0.1 s to 1 h, such as 5 or 500ms"),
    (["--max-jobs", "-1"], "--max-jobs: '-1' is not a number from 0 to 9999"),
    (["--listen", "0", "--web-config", "/nowhere.yml"],
     "/nowhere.yml: cannot read it: no such file or folder"),
    (["--listen", "0", "--otlp", "ftp://a"], "'ftp://a': it is not http://HOST:PORT or https://HOST:PORT"),
])
def test_wrong_settings(arguments, said):
    done = subprocess.run([program("tidemark"), "agent", *arguments], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (2, f"tidemark: {said}\n")


def test_address_that_is_taken(agent):
    done = subprocess.run([program("tidemark"), "agent", "--listen", f"127.0.0.1:{agent.port}"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (f"tidemark: cannot listen on 127.0.0.1:{agent.port}: "
                           "the address is in use\n")


def test_everywhere_without_a_password_is_said(tmp_path):
    process = subprocess.Popen([program("tidemark"), "agent", "--listen", ":0"],
                               stderr=subprocess.PIPE, text=True, env=clean_environment(tmp_path))
    lines = [process.stderr.readline() for _ in range(2)]
    process.terminate()
    process.communicate()
    assert lines[1] == ("tidemark: other machines can read them without a password; "
                        "--web-config sets one\n")
