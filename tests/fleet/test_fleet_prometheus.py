# SPDX-License-Identifier: MIT
"""deploy/prometheus with Debian's real Prometheus: rules, their unit tests, scrape configurations, and
an agent that is scraped through TLS and a password; deploy/grafana's queries."""
import json
import re
import shutil
import socket
import subprocess

import cluster_kit
import pytest
from agent_kit import HERE, LIMIT_S, REPO, Agent, bcrypt, clean_environment, wait_for

DEPLOY = REPO / "deploy"
KUBERNETES_SD = "    kubernetes_sd_configs:\n      - role: pod\n"


def promtool(folder, *arguments):
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(name="folder")
def folder_fixture(tmp_path):
    """A copy of deploy/prometheus, with targets."""
    folder = tmp_path / "prometheus"
    shutil.copytree(DEPLOY / "prometheus", folder)
    (folder / "targets").mkdir()
    (folder / "targets" / "tidemark-slurm.json").write_text("[]", encoding="ascii")
    return folder


def test_rules(folder):
    assert promtool(folder, "check", "rules", "tidemark.rules.yml", "tidemark.alerts.yml")[0] == 0
    shutil.copy(HERE / "rules_test.yml", folder)
    assert promtool(folder, "test", "rules", "rules_test.yml") == (
        0, "Unit Testing:  rules_test.yml\n  SUCCESS\n\n")


def test_a_wrong_rule_is_seen(folder):
    """The unit tests can fail: with each threshold moved they do."""
    shutil.copy(HERE / "rules_test.yml", folder)
    alerts = folder / "tidemark.alerts.yml"
    text = alerts.read_text(encoding="utf-8")
    for right, wrong in ("< 600 and", "< 60 and"), ("> 1.25", "> 3"), ("> 0.95", "> 0.99"):
        assert right in text
        alerts.write_text(text.replace(right, wrong), encoding="utf-8")
        assert promtool(folder, "test", "rules", "rules_test.yml")[0] == 1


def names_in(path, word):
    with open(path, encoding="utf-8") as file:
        return set(re.findall(rf"^ *- {word}: (\S+)$", file.read(), re.M))


def test_docs_list_the_rules():
    docs = (REPO / "docs" / "fleet.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(tidemark:\S+)`", docs, re.M))
    assert listed == names_in(DEPLOY / "prometheus" / "tidemark.rules.yml", "record")
    alerts = set(re.findall(r"^\| `(Tidemark\w+)`", docs, re.M))
    assert alerts == names_in(DEPLOY / "prometheus" / "tidemark.alerts.yml", "alert")


@pytest.mark.parametrize("name", ["file", "kubernetes", "slurm"])
def test_scrape_configurations(folder, name):
    """Debian's Prometheus knows no Kubernetes: there its discovery alone is left out."""
    path = folder / f"scrape-{name}.yml"
    text = path.read_text(encoding="utf-8")
    assert (KUBERNETES_SD in text) == (name == "kubernetes")
    assert "honor_labels: true" in text
    path.write_text(text.replace(KUBERNETES_SD, ""), encoding="utf-8")
    status, said = promtool(folder, "check", "config", str(path))
    assert status == 0, said
    assert "2 rule files found" in said


def test_slurm_targets(tmp_path):
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\necho \"$*\" > \"$0.asked\"\nprintf '%s\\n' 'n1 gpu mixed' 'n1 all mixed' "
                     "'n2 gpu down*' 'n3 gpu drained' 'n4 all idle'\n", encoding="ascii")
    sinfo.chmod(0o755)
    script = DEPLOY / "prometheus" / "slurm-targets"
    done = subprocess.run([script, "--port", "9", "--partition", "gpu"], capture_output=True, text=True,
                          check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert json.loads(done.stdout) == [
        {"targets": [f"{node}:9"], "labels": {"__meta_slurm_partition": partition}}
        for node, partition in (("n1", "gpu"), ("n2", "gpu"), ("n4", "all"))]
    assert (tmp_path / "sinfo.asked").read_text(encoding="ascii") == "-h -N -p gpu -o %N %R %T\n"
    done = subprocess.run([script, "--what"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "slurm-targets [--port 9742]" in done.stderr


def test_dashboard(tmp_path):
    """Its queries are PromQL, over metrics and series that docs/fleet.md lists."""
    board = json.loads((DEPLOY / "grafana" / "tidemark.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    queries += [item["expr"] for item in board["annotations"]["list"]]
    queries += [re.search(r"\((\w+)", item["definition"]).group(1)
                for item in board["templating"]["list"] if item["type"] == "query"]
    assert len(queries) >= 24
    docs = (REPO / "docs" / "fleet.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`((?:tidemark|process)[_:][\w:]+)`", docs))
    for query in queries:
        used = set(re.findall(r"\b(?:tidemark|process)[_:][\w:]+", query))
        assert used <= listed, used - listed
    rules = [{"record": f"x{i}", "expr": query} for i, query in enumerate(queries)]
    path = tmp_path / "queries.yml"
    path.write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}), encoding="utf-8")
    status, said = promtool(tmp_path, "check", "rules", str(path))
    assert status == 0, said


# ---- the whole

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    def __init__(self, folder):
        self.port = free_port()
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=scrape-file.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], cwd=folder, stderr=subprocess.DEVNULL)

    def query(self, text):
        return cluster_kit.query(f"http://127.0.0.1:{self.port}", text)

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=LIMIT_S)


def test_scraped_by_prometheus(folder, tmp_path):
    """Through TLS and a password; recording rules have values, and the agent that is not there is."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-keyout", "key.pem", "-out", "ca.crt", "-subj", "/CN=agent",
                    "-addext", "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    (folder / "web.yml").write_text(
        "tls_server_config:\n  cert_file: ca.crt\n  key_file: key.pem\nbasic_auth_users:\n"
        f"  prometheus: {bcrypt('pw')}\n", encoding="ascii")
    (folder / "password").write_text("pw", encoding="ascii")
    agent = Agent("--host", "node-1", "--max-jobs", "0", "--web-config", str(folder / "web.yml"),
                  environment=clean_environment(tmp_path))
    (folder / "targets" / "tidemark-a.yml").write_text(
        f"- targets: ['127.0.0.1:{agent.port}', '127.0.0.1:{free_port()}']\n", encoding="ascii")
    config = folder / "scrape-file.yml"
    text = config.read_text(encoding="utf-8").replace("15s", "1s")
    for key in "scheme", "tls_config", "basic_auth":
        assert f"    # {key}:" in text
        text = text.replace(f"    # {key}:", f"    {key}:")
    config.write_text(text, encoding="utf-8")
    prometheus = Prometheus(folder)
    try:
        used = wait_for("a recording rule", lambda: prometheus.query("tidemark:gpu_memory_used:ratio"))
        assert [labels["host"] for labels, _ in used] == ["node-1"] * len(used)
        assert all(0 < value < 1 for labels, value in used if labels["gpu"] == "host")
        up = dict((labels["instance"], value) for labels, value in prometheus.query('up{job="tidemark"}'))
        assert sorted(up.values()) == [0, 1] and up[f"127.0.0.1:{agent.port}"] == 1
        wait_for("the count of agents", lambda: [v for _, v in prometheus.query("tidemark:agents:up")] == [1])
        wait_for("the alert", lambda: [
            (labels["alertname"], labels["alertstate"]) for labels, _ in prometheus.query("ALERTS")] ==
            [("TidemarkAgentSilent", "pending")])
    finally:
        prometheus.end()
    assert agent.end() == (0, "")
