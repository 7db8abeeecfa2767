# SPDX-License-Identifier: MIT
"""docs/fleet.md: the ten minutes from nothing to alerts are run as they stand there, at other ports and with
quicker scrapes; what it says of deploy/ is there."""
import contextlib
import json
import os
import re
import signal
import subprocess

import yaml
from agent_kit import REPO
from deploy_kit import install
from test_fleet_prometheus import free_port

TEXT = (REPO / "docs" / "fleet.md").read_text(encoding="utf-8")
WAIT = """
for try in $(seq 150); do
    {{
{ask}
    }} >answer 2>/dev/null
    grep -q TidemarkLeak answer && break
    sleep 0.4
done
"""


def section(title):
    return re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.S | re.M)[1]


def replaced(text, old, new, n):
    assert text.count(old) == n, (old, text)
    return text.replace(old, new)


def shell(script, folder, env):
    """(output, messages); nothing that it started is left."""
    process = subprocess.Popen(["bash", "-c", script], cwd=folder, env=env, start_new_session=True, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        return process.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_from_nothing_to_alerts(tmp_path):
    package = install(tmp_path / "installed")
    get, agent, watch, ask = re.findall(r"^```sh\n(.*?)^```$", section("From nothing to alerts in ten minutes"), re.S | re.M)
    first, second = str(free_port()), str(free_port())
    assert first != second
    agent = replaced(replaced(agent, "9742", first, 2), "9090", second, 1)
    ask = replaced(ask, "9090", second, 1)
    script = "\n".join(["set -e", "trap 'kill $(jobs -p); wait' EXIT", get, "sed -i s/15s/1s/ scrape-file.yml", agent,
                        watch, "set +e", WAIT.format(ask=ask), "cat answer"])
    out, err = shell(script, tmp_path, {"PATH": f"{package}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path),
                                        "TIDEMARK_RING_DIR": str(tmp_path)})
    assert "2 rule files found" in out, err
    answer = out[out.index("tidemark:job_allocated_bytes:sum"):]
    assert re.search(r'^tidemark:job_allocated_bytes:sum\{job="first"\} => \d+ @', answer, re.M), answer
    assert re.search(r'^tidemark_job_step_growth_bytes\{[^}]*job="first"[^}]*\} => 65536 @', answer, re.M), answer
    assert re.search(r'^ALERTS\{[^}]*alertname="TidemarkLeak"[^}]*alertstate="pending"', answer, re.M), answer


def test_deploy_files_are_named():
    """Each file of deploy/ is named in docs/fleet.md, and each that is named is there."""
    deploy = REPO / "deploy"
    there = {str(path.relative_to(deploy)) for path in deploy.rglob("*") if path.is_file()}
    named = set(re.findall(r"`((?:systemd|kubernetes|slurm|container)/[\w./-]+\w)`", TEXT))
    assert named == {path for path in there if not path.startswith(("prometheus/", "grafana/"))}
    prometheus = section("Prometheus")
    for path in there - named:
        assert f"`{os.path.basename(path)}`" in prometheus or f"../{path}`" in prometheus, path


def test_paths_of_the_commands(tmp_path):
    """What is copied from $DEPLOY is in an installed tree."""
    package = install(tmp_path / "installed")
    copied = re.findall(r'"\$DEPLOY"/([\w./*-]+)', TEXT)
    assert len(copied) >= 3
    for pattern in copied:
        assert list((package / "share" / "tidemark" / "deploy").glob(pattern)), pattern


def test_plan(tmp_path):
    """Prometheus takes its configurations; what is kept for years are the series of whole jobs, and only those."""
    drop, keep = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", section("A plan to 10,000 GPUs"),
                                                               re.S | re.M))
    config = yaml.safe_load((REPO / "deploy/prometheus/scrape-file.yml").read_text(encoding="utf-8"))
    config["scrape_configs"][0].update(drop)
    config.update(keep)
    del config["rule_files"]
    (tmp_path / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^\| `(tidemark:\S+)` \| ([^|]+) \|", section("Recording rules"), re.M)
    of_jobs = {name for name, labels in rows if labels in ("`job`", "–")}
    pattern = keep["remote_write"][0]["write_relabel_configs"][0]["regex"]
    assert {name for name, _ in rows if re.fullmatch(pattern, name)} == of_jobs
    assert f"{len(of_jobs) - 1} series a job" in section("A plan to 10,000 GPUs")
