# SPDX-License-Identifier: MIT
"""oom: one look or many, what it warns of, and the command that it runs."""
import json
import re
import resource
import time

import pytest
from monitor_kit import GIB, check_even, in_peace

WARNING = """\
[WARNING] OOM warning: GPU 0
   Risk level: critical
   Current usage: 87.5%
   Predicted OOM time: -
   Confidence: -
   Advice: be ready to free caches (torch.cuda.empty_cache): a larger step may not fit
   Advice: consider reducing the batch size
   Held by: 42 -, 12.00 GB
   Held by: 41 -, 2.00 GB
"""
FULL = [f"process 41 {2 * GIB}", f"process 42 {12 * GIB}"]


@pytest.mark.parametrize("threshold,status", [("87.5", 1), ("88", 0), ("85", 1), (None, 1)])
def test_one_look(machine, threshold, status):
    """Exit status 1 at the threshold or over it; 85 when none is given."""
    machine.cards(FULL)
    words = ["--threshold", threshold] if threshold else []
    done = machine.run("oom", *words)
    assert done.returncode == status and not done.stderr
    assert done.stdout.startswith(WARNING) == bool(status)
    assert done.stdout.splitlines()[-1].split() == [
        "0", "Card", "0", "14.00", "GiB", "16.00", "GiB", "87.5", "%", threshold or "85", "%",
        str(status), "critical" if status else "-"]


def test_in_chinese(machine):
    """Labels as the tools that came first have them; what machines read stays."""
    machine.cards(FULL)
    expected = """\
[WARNING] OOM警告: GPU 0
   风险等级: critical
   当前使用率: 87.5%
   预测OOM时间: -
   置信度: -
   建议: 准备释放缓存
   建议: 考虑减少batch size
   占用进程: 42 -, 12.00 GB
   占用进程: 41 -, 2.00 GB
"""
    assert machine.run("oom", LANG="zh_CN.UTF-8").stdout.startswith(expected)
    assert machine.run("oom", LANG="zh_CN.UTF-8", LC_MESSAGES="C").stdout.startswith(WARNING)
    assert machine.run("oom", LC_ALL="zh_CN.UTF-8", LC_MESSAGES="C").stdout.startswith(expected)
    plain, chinese = (json.loads(machine.run("oom", "--json", LC_ALL=name).stdout) for name in ("C", "zh_CN"))
    plain["timestamp"] = chinese["timestamp"] = None
    assert plain == chinese


def test_only_the_devices_asked_for(machine):
    machine.cards(FULL, [])
    assert machine.run("oom", "--devices", "1").returncode == 0
    assert machine.run("oom", "--devices", "0", "1").returncode == 1


def test_host(machine):
    machine.host(15 * GIB)
    done = machine.run("oom", "--threshold", "90")
    assert done.returncode == 1
    assert done.stdout.startswith("[WARNING] OOM warning: host\n   Risk level: critical\n"
                                  "   Current usage: 93.8%\n")


def test_names_do_not_drive_the_terminal(machine):
    machine.host(15 * GIB)
    folder = machine.folder / "proc" / "41"
    machine.put(folder / "statm", f"0 {GIB // resource.getpagesize()} 0 0 0 0 0\n")
    machine.put(folder / "status", "Name:\t\x1b]0;mine\x07\n")
    done = machine.run("oom")
    assert "   Held by: 41 \ufffd]0;mine\ufffd, 1.00 GB\n" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_a_card_that_does_not_answer_is_not_fine(machine):
    machine.cards(["fail nvmlDeviceGetMemoryInfo 15", "fail nvmlDeviceGetMemoryInfo_v2 15"])
    done = machine.run("oom")
    assert done.returncode == 1
    assert done.stderr == "tidemark: device 0 did not answer: NVML, card 0: GPU is lost (15)\n"
    report = machine.json("oom", "--json", status=1)
    assert report["verdict"] is None and report["predictions"][0]["taken_percent"] is None


def test_what_the_driver_keeps_is_not_free(machine):
    """A card that is full to the last byte is at 100 %, though programs have only three quarters."""
    machine.cards([f"process 41 {12 * GIB}", f"reserved {4 * GIB}"])
    report = machine.json("oom", "--threshold", "100", "--json", status=1)
    first = report["predictions"][0]
    assert report["verdict"] == "over" and first["over_threshold"] is True
    assert first["current_usage"] == 75.0 and first["taken_percent"] == 100.0
    done = machine.run("oom", "--threshold", "100")
    assert "   Current usage: 100.0%\n" in done.stdout


def test_json(machine):
    machine.cards(FULL, [])
    report = machine.json("oom", "--json", status=1)
    assert report["verdict"] == "over" and report["threshold"] == 85.0
    assert report["predictions"][0] == {
        "device_id": 0, "risk_level": "critical", "predicted_oom_time": None, "confidence": None,
        "current_usage": 87.5, "trend_slope": None, "name": "Card 0", "recommended_actions": [
            "be ready to free caches (torch.cuda.empty_cache): a larger step may not fit",
            "consider reducing the batch size"],
        "allocated": 14 * GIB, "total": 16 * GIB, "threshold": 85.0, "over_threshold": True,
        "times_passed": 1, "error": None, "taken_percent": 87.5,
        "predicted_low": None, "predicted_high": None, "cause": "nearly_full", "ooms": None,
        "last_oom": None}
    assert report["predictions"][1]["over_threshold"] is False
    assert machine.json("oom", "--devices", "1", "--json")["verdict"] == "below"


@pytest.mark.parametrize("words,said", [
    (["--threshold", "101"], "--threshold: '101' is not a number over 0 and up to 100"),
    (["--threshold", "much"], "--threshold: 'much' is not a number over 0 and up to 100"),
    (["--duration", "5"],
     "--duration, --interval and --warm-up want --monitor: without it, oom looks once"),
    (["--monitor", "--warm-up", "long"],
     "--warm-up: 'long' is not a time, such as 60, 0.1, 250ms or 5min"),
])
def test_wrong_words(machine, words, said):
    done = machine.run("oom", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"tidemark: {said}\n")


# ---- monitor

def fill(machine, monitor, *gib):
    for used in gib:
        machine.cards([f"process 41 {int(used * GIB)}"])
        monitor.settle()


def test_monitor_warns_once_each_time(machine):
    """14.4 GiB are 90 %. Trembling under it, by less than two points, is the same time."""
    machine.cards([])
    monitor = machine.start("oom", "--monitor", "--threshold", "90")
    fill(machine, monitor, 14.5, 14.3, 14.5, 13, 15, 1)
    status, out, err = monitor.end()
    assert status == 1 and not err
    usages = [line for line in out.splitlines() if "usage" in line]
    assert usages == ["   Current usage: 90.6%", "   Current usage: 93.8%"]
    assert out.splitlines()[-1].split("GiB")[2].split()[2:5] == ["90", "%", "2"]


def test_over_threshold_is_of_now(machine):
    """Below by less than two points: the alarm is not ready again, but it is below."""
    machine.cards([])
    monitor = machine.start("oom", "--monitor", "--threshold", "90", "--json")
    fill(machine, monitor, 14.5, 14.3)
    status, out, _ = monitor.end()
    first = json.loads(out)["predictions"][0]
    assert status == 1 and first["over_threshold"] is False and first["times_passed"] == 1


def test_low_thresholds_warn_again(machine):
    """0.32 GiB are 2 %: half of that is low enough."""
    machine.cards([])
    monitor = machine.start("oom", "--monitor", "--threshold", "2")
    fill(machine, monitor, 0.4, 0.2, 0.4, 0.1, 0.4)
    status, out, _ = monitor.end()
    assert status == 1 and out.count("[WARNING]") == 2


def test_monitor_without_a_finding(machine):
    machine.cards([])
    monitor = machine.start("oom", "--monitor")
    fill(machine, monitor, 8)
    assert monitor.end()[0] == 0


def test_monitor_ends_by_itself(machine):
    machine.cards(FULL)
    done = machine.run("oom", "--monitor", "--duration", "0.2")
    assert done.returncode == 1 and done.stdout.count("[WARNING]") == 1


FORECAST = re.compile(r"""\[WARNING\] OOM warning: GPU 0
   Risk level: (high|critical)
   Current usage: (\d+\.\d)%
   Predicted OOM time: in (\d+\.\d) s \((\d+\.\d) to (\d+\.\d)\)
   Confidence: (0\.\d\d)
   Advice: save a checkpoint while there is time
   Advice: be ready to free caches .*
   Advice: find what grows: .*
   Held by: 41 -, (\d+\.\d\d) GB
""")


def warned_of_growth(machine, rate):
    """What is said of a card that fills by so much a second, evenly."""
    start = time.monotonic()
    times = [start]
    machine.cards([f"process 41 {2 * GIB}"])
    monitor = machine.start("oom", "--monitor", "--warm-up", "1", "--exec",
                            "touch $TIDEMARK_OOM_RISK.$TIDEMARK_OOM_SECONDS")

    def has_warned():
        times.append(time.monotonic())
        used = 2 * GIB + int(rate * (times[-1] - start))
        machine.cards([f"process 41 {min(used, 13 * GIB)}"])
        return any(machine.folder.glob("high.*")) or any(machine.folder.glob("critical.*"))

    monitor.wait(has_warned)
    ended = monitor.end()
    for path in machine.folder.glob("*.*"):
        if path.name.startswith(("high.", "critical.")):
            path.unlink()
    check_even(times)
    return ended


def test_monitor_forecasts(machine):
    """Far below the threshold, but it grows by an eighth of a GiB a second: all fields are there."""
    rate = GIB // 8
    status, out, err = in_peace(lambda: warned_of_growth(machine, rate))
    found = FORECAST.search(out)
    assert status == 1 and found, out + err
    usage, seconds, low, high, confidence, held = map(float, found.groups()[1:])
    left = 16 - 16 * usage / 100
    assert low <= seconds <= high and 0.7 <= confidence <= 1
    assert abs(held - 16 * usage / 100) < 0.3
    assert abs(seconds - left / (rate / GIB)) < 0.25 * left / (rate / GIB)


# ---- the command

def test_exec(machine):
    """With what was found in its environment; its output is talk, not data."""
    machine.cards(FULL)
    done = machine.run("oom", "--json", "--exec", "env | grep ^TIDEMARK_OOM | sort; exit 3")
    assert done.returncode == 1 and json.loads(done.stdout)["verdict"] == "over"
    assert done.stderr == WARNING + (
        "TIDEMARK_OOM_DEVICE=0\nTIDEMARK_OOM_NAME=Card 0\nTIDEMARK_OOM_PERCENT=87.5\n"
        "TIDEMARK_OOM_PID=42\nTIDEMARK_OOM_RISK=critical\nTIDEMARK_OOM_THRESHOLD=85.0\n"
        f"TIDEMARK_OOM_TOTAL_BYTES={16 * GIB}\nTIDEMARK_OOM_USED_BYTES={14 * GIB}\n"
        "tidemark: --exec: 'env | grep ^TIDEMARK_OOM | sort; exit 3' ended with status 3\n")


def test_exec_in_a_group_of_its_own(machine):
    """^C on the terminal is not for it, and nothing that is typed."""
    machine.cards(FULL)
    done = machine.run("oom", "--exec", "ps -o pgid= -p $$ | tr -d ' '; echo $$; "
                                        "readlink /proc/$$/fd/0")
    group, own, stdin = done.stderr.split()
    assert group == own and stdin == "/dev/null"


def test_exec_not_needed(machine):
    machine.cards([])
    assert machine.run("oom", "--exec", "echo no").stderr == ""


def test_exec_in_monitor(machine):
    """Each time, beside the sampling; not while the one before still runs."""
    machine.cards([])
    counter = machine.folder / "count"
    monitor = machine.start("oom", "--monitor", "--exec",
                            "echo $TIDEMARK_OOM_PERCENT >>count; while [ ! -e go ]; do sleep 0.01; "
                            "done; echo end >>count")
    fill(machine, monitor, 15, 1, 15, 1)
    assert counter.read_text() == "93.8\n"
    (machine.folder / "go").touch()
    deadline = time.monotonic() + 60
    while "end" not in counter.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    monitor.settle()
    fill(machine, monitor, 14, 1)
    deadline = time.monotonic() + 60
    while counter.read_text().count("end") < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    status, _, err = monitor.end()
    assert status == 1 and counter.read_text() == "93.8\nend\n87.5\nend\n"
    assert err.count("still runs (process") == 1 and err.endswith("not started again\n")
