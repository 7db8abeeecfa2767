# SPDX-License-Identifier: MIT
"""Three hosts, as network namespaces with a wire each to Debian's Prometheus in a fourth: the wire of one is
cut and put back. Only the samples of that time are missing, Prometheus says so, and the agent lost nothing."""
import json
import os
import re
import shutil
import subprocess
import time

import pytest
from agent_kit import GIB, LIMIT_S, REPO, Machine, Watched, program, wait_for

HOSTS = ("host-1", "host-2", "host-3")
CUT = HOSTS[1]
INTERVAL_S = 1
PORT = 9742
CAN = shutil.which("ip") is not None and \
    subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, check=False).returncode == 0
pytestmark = pytest.mark.skipif(not CAN, reason="NOT RUN: network namespaces need root and iproute2")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=LIMIT_S)


class Wires:
    """A namespace for Prometheus, one for each host, and a wire between it and each of them."""

    def __init__(self):
        tag = f"tmk{os.getpid()}"
        self.names = {host: f"{tag}-{host}" for host in HOSTS}
        self.hub = f"{tag}-hub"
        self.made = []

    def make(self):
        for name in (self.hub, *self.names.values()):
            ip("netns", "add", name)
            self.made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        for number, name in enumerate(self.names.values(), 1):
            ip("-n", self.hub, "link", "add", f"to{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            for where, wire, address in ((self.hub, f"to{number}", 1), (name, "eth0", 2)):
                ip("-n", where, "address", "add", f"10.99.{number}.{address}/30", "dev", wire)
                ip("-n", where, "link", "set", wire, "up")
        return self

    def inside(self, host):
        return ("ip", "netns", "exec", self.names.get(host, self.hub))

    def set(self, host, state):
        ip("-n", self.names[host], "link", "set", "eth0", state)

    def remove(self):
        for name in self.made:
            ip("netns", "delete", name)


class Host:
    """A machine with a card, a user of its own with a watched job, and that user's agent."""

    def __init__(self, folder, wires, number, name):
        self.name, self.user = name, 64000 + number
        folder.mkdir()
        os.chown(folder, self.user, self.user)
        machine = Machine(folder)
        machine.cards([f"uuid GPU-{number}", f"process {7000 + number} {number * GIB}"])
        as_user = ("setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups")
        self.job = Watched(folder, "train.tmk", machine.environment(), prefix=as_user)
        self.agent = subprocess.Popen(
            [*wires.inside(name), *as_user, program("tidemark"), "agent", "--listen", f"10.99.{number}.2:{PORT}",
             "--host", name, "--interval", "0.2"], stderr=subprocess.PIPE, text=True,
            env={**machine.environment(), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        assert re.search(r"metrics are at", self.agent.stderr.readline())

    def end(self):
        self.job.end()
        self.agent.terminate()
        self.agent.communicate(timeout=LIMIT_S)


class Prometheus:
    """On the hub, with the shipped configuration and rules; quicker, and with a shorter `for`."""

    def __init__(self, folder, wires):
        shutil.copytree(REPO / "deploy" / "prometheus", folder)
        (folder / "targets").mkdir()
        targets = [f"10.99.{number}.2:{PORT}" for number in range(1, len(HOSTS) + 1)]
        (folder / "targets" / "tidemark-hosts.json").write_text(json.dumps([{"targets": targets}]), encoding="ascii")
        self.change(folder / "scrape-file.yml", "15s", f"{INTERVAL_S}s", 2)
        alerts = folder / "tidemark.alerts.yml"
        at = alerts.read_text(encoding="utf-8").index("alert: TidemarkAgentSilent")
        text = alerts.read_text(encoding="utf-8")
        alerts.write_text(text[:at] + text[at:].replace("for: 2m", "for: 2s", 1), encoding="utf-8")
        self.wires = wires
        self.process = subprocess.Popen(
            [*wires.inside("hub"), "prometheus", "--config.file=scrape-file.yml", "--storage.tsdb.path=data",
             "--web.listen-address=127.0.0.1:9090"], cwd=folder, stderr=subprocess.DEVNULL)

    @staticmethod
    def change(path, old, new, n):
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == n
        path.write_text(text.replace(old, new), encoding="utf-8")

    def ask(self, path, **parameters):
        words = [word for name, value in parameters.items() for word in ("--data-urlencode", f"{name}={value}")]
        done = subprocess.run([*self.wires.inside("hub"), "curl", "-sS", "--max-time", "10", "--get", *words,
                               f"http://127.0.0.1:9090/api/v1/{path}"], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["data"]["result"] if done.returncode == 0 and done.stdout[:1] == "{" else []

    def values(self, query, label="host"):
        return {item["metric"].get(label): float(item["value"][1]) for item in self.ask("query", query=query)}

    def samples(self, query, seconds):
        """{host: [(time, value)]} of the samples themselves."""
        return {item["metric"].get("host", item["metric"].get("instance")):
                [(float(at), float(value)) for at, value in item["values"]]
                for item in self.ask("query", query=f"{query}[{seconds}s]")}

    def ranges(self, query, start, end):
        """{host: [time]} at which query_range has a value, a step for each scrape."""
        return {item["metric"]["host"]: [float(at) for at, _ in item["values"]]
                for item in self.ask("query_range", query=query, start=start, end=end, step=INTERVAL_S)}

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=LIMIT_S)


@pytest.fixture(name="cluster")
def cluster_fixture(place):
    """(hosts by name, prometheus, wires)"""
    wires, ends = Wires(), []
    try:
        wires.make()
        hosts = {}
        for number, name in enumerate(HOSTS, 1):
            hosts[name] = Host(place / name, wires, number, name)
            ends.append(hosts[name].end)
        prometheus = Prometheus(place / "prometheus", wires)
        ends.append(prometheus.end)
        yield hosts, prometheus, wires
    finally:
        for end in reversed(ends):
            end()
        wires.remove()


def alert(prometheus):
    return [(item["metric"]["instance"], item["metric"]["alertstate"]) for item in
            prometheus.ask("query", query='ALERTS{alertname="TidemarkAgentSilent"}')]


def test_a_host_is_cut_off(cluster):
    hosts, prometheus, wires = cluster
    steps = "tidemark_job_steps_total"
    used = 'tidemark_gpu_memory_used_bytes{gpu="0"}'
    address = f"10.99.{HOSTS.index(CUT) + 1}.2:{PORT}"
    for host in hosts.values():
        host.job.do("steps 20 1000")
    wait_for("the steps of all", lambda: prometheus.values(steps) == dict.fromkeys(HOSTS, 19))
    assert prometheus.values(used) == {name: number * GIB for number, name in enumerate(HOSTS, 1)}
    assert alert(prometheus) == []

    cut_s = time.time()
    wires.set(CUT, "down")
    hosts[CUT].job.do("steps 30 1000")
    wait_for("up to be 0", lambda: prometheus.values('up{job="tidemark"}', "instance").get(address) == 0)
    wait_for("the alert", lambda: alert(prometheus) == [(address, "firing")])
    assert prometheus.values("tidemark:agents:up", "none") == {None: 2}
    assert CUT not in prometheus.values(used)
    back_s = time.time()
    wires.set(CUT, "up")
    wait_for("the steps that it made meanwhile", lambda: prometheus.values(steps).get(CUT) == 49)
    wait_for("the end of the alert", lambda: alert(prometheus) == [])
    end_s = time.time()

    seconds = int(end_s - cut_s) + 60
    found = prometheus.samples(used, seconds)
    asked = prometheus.samples('up{job="tidemark"}', seconds)
    missing = [at for at, value in asked[address] if value == 0]
    assert len(missing) >= 2 and cut_s - INTERVAL_S <= missing[0] and missing[-1] <= back_s + 3 * INTERVAL_S
    for number, name in enumerate(HOSTS, 1):
        scrapes = asked[f"10.99.{number}.2:{PORT}"]
        gone = missing if name == CUT else []
        assert [at for at, value in scrapes if value == 1] == [at for at, _ in found[name]]
        assert len(scrapes) - len(found[name]) == len(gone)
    ranges = prometheus.ranges(used, cut_s - 2, end_s)
    whole = set(ranges[HOSTS[0]]) & set(ranges[HOSTS[2]])
    lost = sorted(whole - set(ranges[CUT]))
    assert lost and cut_s - INTERVAL_S <= lost[0] and lost[-1] <= back_s + 3 * INTERVAL_S
    assert len(lost) >= (back_s - cut_s) / INTERVAL_S - 2
    assert prometheus.values(f"resets({steps}[{seconds}s])") == dict.fromkeys(HOSTS, 0)
    assert prometheus.values(f"changes(process_start_time_seconds[{seconds}s])", "instance") == {
        f"10.99.{number}.2:{PORT}": 0 for number in (1, 2, 3)}
