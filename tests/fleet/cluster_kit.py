# SPDX-License-Identifier: MIT
"""A cluster on this machine: agents as nodes, some in PID namespaces of their own with watched
processes, scraped by the real Prometheus and the real VictoriaMetrics."""
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request

from agent_kit import LIMIT_S, PYTHON, REPO, Agent, Machine, Watched, program, wait_for

NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "--pid", "--fork", "--mount-proc"]
CAN_MAKE_NODES = subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fleet(url, *arguments, **environment):
    """(exit status, stdout, stderr) of `tidemark fleet`."""
    done = subprocess.run([program("tidemark"), "fleet", "--prometheus", url, *arguments], capture_output=True,
                          check=False, timeout=2 * LIMIT_S, stdin=subprocess.DEVNULL,
                          env={"PATH": "/usr/bin:/bin", "TZ": "UTC", **environment})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def python(source, *arguments, **environment):
    """(exit status, stdout, stderr) of a Python program with the package."""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPO / "python"), "PYTHONDONTWRITEBYTECODE": "1",
           "TIDEMARK_LIBRARY": program("libtidemark.so"), "TIDEMARK_PROGRAM": program("tidemark"), "TIDEMARK_OFF": "1"}
    done = subprocess.run([PYTHON, "-c", source, *arguments], capture_output=True, text=True, check=False,
                          timeout=2 * LIMIT_S, env={**env, **environment})
    return done.returncode, done.stdout, done.stderr


class Node:
    """A PID namespace: what runs in it sees no other process. It ends with this object's end()."""

    def __init__(self, folder, name, cards=("",)):
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        self.machine = Machine(self.folder)
        self.machine.cards(*[[line] if line else [] for line in cards])
        self.holder = subprocess.Popen([*NAMESPACE, "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        children = f"/proc/{self.holder.pid}/task/{self.holder.pid}/children"
        with open(children, encoding="ascii") as file:
            init = file.read().split()[0]
        self.prefix = ["nsenter", "--target", init, "--pid", "--mount",
                       *([] if os.geteuid() == 0 else ["--user", "--preserve-credentials"])]
        self.jobs, self.agent = [], None

    def start_agent(self):
        """After the jobs: an agent looks for new ones every five seconds only."""
        self.agent = Agent("--host", self.name, "--interval", "0.5", environment=self.machine.environment(),
                           prefix=self.prefix)

    def watch(self, job, rank=None, world_size=None):
        """A watched process of the job in this namespace."""
        environment = {**self.machine.environment(), "TIDEMARK_JOB": job}
        if rank is not None:
            environment.update(RANK=str(rank), WORLD_SIZE=str(world_size))
        self.jobs.append(Watched(self.folder, f"{job}-{rank}.tmk", environment, prefix=self.prefix))
        return self.jobs[-1]

    def end_jobs(self):
        for job in self.jobs:
            job.end()
        self.jobs = []

    def end(self):
        self.holder.stdout.close()
        subprocess.run(["kill", "-9", self.prefix[2]], check=False)
        self.holder.wait(timeout=LIMIT_S)
        if self.agent:
            self.agent.process.communicate(timeout=LIMIT_S)
        for job in self.jobs:
            job.end()


def query(url, text):
    """[(labels, value)] of a store at a URL, or nothing while it is not there yet."""
    asked = f"{url}/api/v1/query?nocache=1&" + urllib.parse.urlencode({"query": text})
    try:
        with urllib.request.urlopen(asked, timeout=LIMIT_S) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return []
    return [(item["metric"], float(item["value"][1])) for item in found]


class Store:
    """A Prometheus or a VictoriaMetrics, whichever, that scrapes these ports."""

    def __init__(self, folder, ports, command):
        self.folder, self.ports = folder, ports
        self.port = free_port()
        self.process = subprocess.Popen([part.format(folder=folder, port=self.port) for part in command],
                                        cwd=folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{self.port}"

    def query(self, text):
        return query(self.url, text)

    def scrapes(self):
        """How often each target was scraped."""
        counts = {labels["instance"]: value
                  for labels, value in self.query('count_over_time(up{job="tidemark"}[1h])')}
        return [counts.get(f"127.0.0.1:{port}", 0) for port in self.ports]

    def wait_two_scrapes(self):
        before = self.scrapes()
        wait_for("two scrapes", lambda: all(now >= then + 2 for then, now in zip(before, self.scrapes())))

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=LIMIT_S)


def put_configuration(folder, ports, is_prometheus):
    """The shipped configuration and rules, with short intervals. Two seconds are what a scrape may take, too: on a busy
    machine an agent must not look silent."""
    shutil.copytree(REPO / "deploy" / "prometheus", folder)
    (folder / "targets").mkdir()
    (folder / "targets" / "tidemark-all.json").write_text(
        json.dumps([{"targets": [f"127.0.0.1:{port}" for port in ports]}]), encoding="ascii")
    config = folder / "scrape-file.yml"
    text = config.read_text(encoding="utf-8")
    text = text.replace("scrape_interval: 15s", "scrape_interval: 2s").replace("15s", "1s")
    if not is_prometheus:
        text = re.sub(r"rule_files:\n(  - .*\n)+", "", text).replace("  evaluation_interval: 1s\n", "")
    config.write_text(text, encoding="utf-8")
    alerts = folder / "tidemark.alerts.yml"
    alerts.write_text(re.sub(r"^( *for:) \S+$", r"\1 1s", alerts.read_text(encoding="utf-8"), flags=re.M),
                      encoding="utf-8")


def start_prometheus(folder, ports):
    put_configuration(folder / "prometheus", ports, True)
    return Store(folder / "prometheus", ports, [
        "prometheus", "--config.file=scrape-file.yml", "--storage.tsdb.path={folder}/data",
        "--web.listen-address=127.0.0.1:{port}"])


def start_victoria_metrics(folder, ports):
    put_configuration(folder / "victoria", ports, False)
    return Store(folder / "victoria", ports, [
        "victoria-metrics", "-promscrape.config=scrape-file.yml", "-storageDataPath={folder}/data",
        "-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=1d", "-memory.allowedBytes=256MiB"])
