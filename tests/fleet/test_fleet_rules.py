# SPDX-License-Identifier: MIT
"""One truth: what `tidemark fleet` asks for a finding is the expression of the alert, with the recording rules
written out. promtool evaluates both over the series of rules_test.yml."""
import json
import re
import subprocess

import pytest
from agent_kit import REPO
from test_fleet_hostile import Server, but, fleet, vector

RULES = REPO / "deploy" / "prometheus"
#: Alerts with another expression than their finding, and why.
DIFFERENT = {"TidemarkOOM"}  # the window is the one that was asked for, not five minutes


def rules_in(name):
    """{record or alert: expression}, in order."""
    text = (RULES / name).read_text(encoding="utf-8")
    found = {}
    for part in re.split(r"^ *- (?=record:|alert:)", text, flags=re.M)[1:]:
        expression = re.search(r"^ *expr: (\|\n(?:(?: {10,}.*)?\n)*|.*\n)", part, re.M)[1]
        found[re.match(r"\w+: (\S+)", part)[1]] = " ".join(expression.lstrip("|").split())
    return found


def questions():
    """{finding: (expression, alert)} as the program asks, and as it names them."""
    with Server(but()) as server:
        fleet(server.url)
        asked = next(question for _, question in server.asked if "oom_soon" in question)
    found = dict(reversed(pair) for pair in re.findall(
        r'label_replace\((.*?), "finding", "(\w+)", "", ""\)(?: or |$)', asked))
    return {name: " ".join(text.split()) for name, text in found.items()}


def written_out(text, records):
    """Recorded series replaced by their expressions; a matcher behind one goes to each series in it."""
    for _ in range(4):
        def expand(match):
            matcher = match[2] or ""
            inner = records[match[1]]
            if matcher:
                inner = re.sub(r"\b(tidemark[_:][\w:]+)(?:\{([^}]*)\})?",
                               lambda m: f"{m[1]}{{{','.join(filter(None, [m[2], matcher.strip('{}')]))}}}", inner)
            return f"({inner})"
        text = re.sub(r"\b(tidemark:[\w:]+)(\{[^}]*\})?", expand, text)
    return text


def plain(text):
    """Without what changes nothing: blanks, brackets, the matcher of any job; matchers in order."""
    text = re.sub(r'up\{job=(~"\.\*tidemark\.\*"|"tidemark")\}', "up{tidemark}", text)
    text = re.sub(r"\{([^}]*)\}", lambda m: "{" + ",".join(sorted(filter(
        lambda part: part != 'job!=""', m[1].split(",")))) + "}", text)
    return re.sub(r"\{\}|[\s()]", "", text)


def test_findings_are_the_alerts():
    records, alerts = rules_in("tidemark.rules.yml"), rules_in("tidemark.alerts.yml")
    source = (REPO / "src" / "fleet" / "cluster" / "cluster_queries.c").read_text(encoding="utf-8")
    of_alert = dict(re.findall(r'\{"(\w+)",\s*"(Tidemark\w+)"', source))
    assert set(of_alert.values()) == set(alerts)
    asked = questions()
    assert set(of_alert) < set(asked)
    for name, alert in of_alert.items():
        if alert not in DIFFERENT:
            assert plain(asked[name]) == plain(written_out(alerts[alert], records)), name


def test_another_threshold_is_seen():
    records, alerts = rules_in("tidemark.rules.yml"), rules_in("tidemark.alerts.yml")
    asked = questions()
    for name, alert, right, wrong in (("imbalance", "TidemarkImbalance", "1.25", "1.3"),
                                      ("gpu_nearly_full", "TidemarkGPUNearlyFull", "0.95", "0.9"),
                                      ("leak", "TidemarkLeak", '"leak"', '"none"')):
        assert right in alerts[alert]
        assert plain(asked[name]) != plain(written_out(alerts[alert].replace(right, wrong), records))


SERIES = {  # series: values at 0, 1 .. 20 minutes, in promtool's notation
    'tidemark_job_ooms_total{job="a",rank="0",host="n",pid="1"}': "0x9 1x20",
    'tidemark_job_ooms_total{job="b",rank="0",host="n",pid="2"}': "3x20",
    'tidemark_job_ooms_total{job="c",rank="0",host="n",pid="3"}': "_x9 2x20",
    'tidemark_build_info{host="n",instance="n:1",job="tidemark"}': "1x20",
    'tidemark_build_info{host="m",instance="m:1",job="tidemark"}': "1x12 stale",
    'tidemark_build_info{host="k",instance="k:1",job="tidemark"}': "1x12 stale",
    'tidemark_build_info{host="k",instance="k:2",job="tidemark"}': "_x12 1x20",
    'up{instance="n:1",job="tidemark"}': "1x20",
    'up{instance="k:2",job="tidemark"}': "_x12 1x20",
}


def test_what_has_no_alert(tmp_path):
    """OOMs of the window, and agents that are not scraped any more, but for one that was moved."""
    asked = questions()
    tests = [{"expr": f'max by (job) ({asked["oom"].replace("3600s", "10m")})', "eval_time": "15m",
              "exp_samples": [{"labels": '{job="a"}', "value": 1}, {"labels": '{job="c"}', "value": 2}]},
             {"expr": f'max by (host) ({asked["agent_gone"]})', "eval_time": "19m",
              "exp_samples": [{"labels": '{host="m"}', "value": 1}]}]
    (tmp_path / "test.yml").write_text(json.dumps({"evaluation_interval": "1m", "tests": [
        {"interval": "1m", "input_series": [{"series": series, "values": values} for series, values in SERIES.items()],
         "promql_expr_test": tests}]}), encoding="utf-8")
    done = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("job", [None, 'a"b'])
def test_promtool_takes_every_question(tmp_path, job):
    is_missing = vector(({"job": "x", "finding": "ranks_missing"}, "1"))  # one more question
    with Server(but(**{'"finding", "oom_soon"': is_missing})) as server:
        fleet(server.url, *(["--job", job] if job else []))
        asked = [question for _, question in server.asked]
    assert len(asked) == 12
    rules = [{"record": f"x{i}", "expr": question} for i, question in enumerate(asked)]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "fleet", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run(["promtool", "check", "rules", "rules.yml"], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
