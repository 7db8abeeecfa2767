# SPDX-License-Identifier: MIT
"""profile: the report's shape, its figures on a machine that changes, devices by name, signals."""
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from monitor_kit import GIB, LIMIT_S, TIDEMARK, Monitor

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from pictures import bytes_of_y, overlaps, paths_of  # noqa: E402

# The report as the tools that came first wrote it: every key must be there, with this type.
SHAPE = {
    "timestamp": "2025-01-15T10:30:00",
    "devices": {"0": {
        "current_usage": {"allocated": 8589934592, "free": 3758096384, "total": 12348030976,
                          "utilization_percent": 69.5},
        "statistics": {"avg_utilization": 65.2, "max_utilization": 89.1, "samples_count": 600},
    }},
    "summary": {"total_devices": 1, "total_memory_gb": 11.5, "overall_utilization": 69.5},
}


def check_shape(wanted, got, path="report"):
    assert type(got) is type(wanted), f"{path} is {got!r}"
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            assert key in got, f"{path} has no {key}"
            check_shape(value, got[key], f"{path}.{key}")


def test_shape(machine):
    """Keys and types, also where figures are whole numbers."""
    machine.cards([f"process 41 {8 * GIB}"])
    report = machine.json("profile", "--duration", "0.3", "--json")
    check_shape(SHAPE, report)
    assert list(report)[:3] == list(SHAPE)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", report["timestamp"])
    assert report["summary"] == {"total_devices": 1, "total_memory_gb": 16.0,
                                 "overall_utilization": 50.0}


def test_shape_without_a_card(machine):
    """The host stands in as device 0."""
    report = machine.json("profile", "--duration", "0.3", "--json")
    check_shape(SHAPE, report)
    device = report["devices"]["0"]
    assert device["kind"] == "host" and device["name"].startswith("host (")
    assert device["current_usage"] == {"allocated": 4 * GIB, "free": 12 * GIB, "total": 16 * GIB,
                                       "utilization_percent": 25.0, "reserved": None}
    assert machine.json("profile", "--devices", "host", "--duration", "0.1", "--json",
                        )["devices"].keys() == {"0"}


def test_limit_of_a_container(machine):
    """A full container on an empty machine is full: there programs are killed."""
    machine.put(machine.folder / "proc" / "self" / "cgroup", "0::/job\n")
    group = machine.folder / "sys" / "fs" / "cgroup" / "job"
    machine.put(group / "memory.max", f"{2 * GIB}\n")
    machine.put(group / "memory.current", f"{2 * GIB}\n")
    machine.put(group / "memory.stat", f"anon {GIB}\ninactive_file {GIB // 4}\n")
    device = machine.json("profile", "--duration", "0.1", "--json")["devices"]["0"]
    assert device["limited_by"] == "control group"
    assert device["current_usage"] == {
        "allocated": 7 * GIB // 4, "free": GIB // 4, "total": 2 * GIB, "utilization_percent": 87.5,
        "reserved": None}
    assert machine.run("oom").returncode == 1
    machine.put(group / "memory.max", "max\n")
    device = machine.json("profile", "--duration", "0.1", "--json")["devices"]["0"]
    assert device["limited_by"] is None and device["current_usage"]["total"] == 16 * GIB


def test_samples_are_on_time(machine):
    """Duration by interval, by the clock: none more, and none made up for."""
    machine.cards([])
    report = machine.json("profile", "--duration", "1", "--interval", "0.05", "--json")
    count = report["devices"]["0"]["statistics"]["samples_count"]
    assert count + report["missed_samples"] == 20
    assert 1.0 <= report["duration_s"] and report["interval_s"] == 0.05


def test_figures_while_the_machine_changes(machine):
    """Least, most and now are what the driver said; the driver's own memory is not free."""
    machine.cards([f"process 41 {2 * GIB}", f"reserved {GIB}"], [f"process 42 {GIB}"])
    monitor = machine.start("profile", "--duration", "0", "--json")
    for first, second in ((12, 3), (4, 7), (6, 5)):
        machine.cards([f"process 41 {first * GIB}", f"reserved {GIB}"],
                      [f"process 42 {second * GIB}"])
        monitor.settle()
    status, out, err = monitor.end()
    assert status == 0 and not err
    devices = json.loads(out)["devices"]
    assert devices["0"]["current_usage"] == {
        "allocated": 6 * GIB, "free": 9 * GIB, "total": 16 * GIB, "utilization_percent": 37.5,
        "reserved": GIB}
    figures = devices["0"]["statistics"]
    assert figures["min_allocated"] == 2 * GIB and figures["max_allocated"] == 12 * GIB
    assert figures["max_utilization"] == 75.0 and figures["gaps_count"] == 0
    assert 2 * GIB < figures["avg_allocated"] < 12 * GIB
    assert abs(figures["avg_utilization"] - 100 * figures["avg_allocated"] / (16 * GIB)) < 0.01
    assert devices["1"]["statistics"]["max_allocated"] == 7 * GIB
    assert devices["1"]["current_usage"]["allocated"] == 5 * GIB
    summary = json.loads(out)["summary"]
    assert summary == {"total_devices": 2, "total_memory_gb": 32.0, "overall_utilization": 34.38}


LOST = ["fail nvmlDeviceGetMemoryInfo 15", "fail nvmlDeviceGetMemoryInfo_v2 15"]


def test_a_card_that_fails_is_a_gap(machine):
    """Not a zero; the others go on."""
    machine.cards([f"process 41 {2 * GIB}"], [f"process 42 {GIB}"])
    monitor = machine.start("profile", "--duration", "0", "--json")
    machine.cards([f"process 41 {2 * GIB}", *LOST], [f"process 42 {2 * GIB}"])
    monitor.settle()
    status, out, err = monitor.end(signal.SIGTERM)
    devices = json.loads(out)["devices"]
    assert status == 0
    assert set(devices["0"]["current_usage"].values()) == {None}
    assert devices["0"]["statistics"]["min_allocated"] == 2 * GIB
    assert devices["0"]["statistics"]["gaps_count"] > 0
    assert devices["0"]["error"] == "NVML, card 0: GPU is lost (15)"
    assert devices["1"]["current_usage"]["allocated"] == 2 * GIB
    assert devices["1"]["statistics"]["gaps_count"] == 0
    assert json.loads(out)["summary"] == {"total_devices": 2, "total_memory_gb": 32.0,
                                          "overall_utilization": 12.5}


def test_a_card_that_never_answers(machine):
    machine.cards(LOST)
    report = machine.json("profile", "--duration", "0.1", "--json", status=1)
    figures = report["devices"]["0"]["statistics"]
    assert figures["samples_count"] == 0 and figures["avg_utilization"] is None
    assert report["summary"] == {"total_devices": 1, "total_memory_gb": None,
                                 "overall_utilization": None}
    done = machine.run("profile", "--duration", "0.1")
    assert done.stdout.splitlines()[1].split() == ["0", "Card", "0", "-", "-", "-", "-", "-", "0"]
    assert done.stderr == "tidemark: device 0 did not answer: NVML, card 0: GPU is lost (15)\n"


# ---- which devices

@pytest.mark.parametrize("words,names", [
    (["--devices", "0", "1"], ["0", "1"]),
    (["--devices", "1,2", "--devices", "0"], ["0", "1", "2"]),
    (["--devices=2"], ["2"]),
    (["--devices", "all"], ["0", "1", "2"]),
    (["--devices", "host", "1"], ["1", "host"]),
    (["--devices", "GPU-2"], ["2"]),
    ([], ["0", "1", "2"]),
])
def test_devices(machine, words, names):
    machine.cards([], [], [])
    report = machine.json("profile", *words, "--duration", "0.05", "--json")
    assert list(report["devices"]) == names


@pytest.mark.parametrize("words,said", [
    (["7"], "there is no device '7'; there is: 0, 1, host"),
    (["0,gpu1"], "'gpu1' is no device's name: 0, 0:1, cuda:0, host, all, visible or an id are"),
    (["cuda:2"], "there is no device 'cuda:2'; there is: 0, 1, host"),
])
def test_absent_device(machine, words, said):
    machine.cards([], [])
    for command in ("profile", "oom", "leak", "monitor"):
        done = machine.run(command, "--devices", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"tidemark: --devices: {said}\n"


def test_absent_device_among_others(machine):
    """The examples with `--devices 0 1` run where there is one device, and a slip does not pass in silence."""
    machine.cards([])
    for command in ("profile", "oom", "leak", "monitor"):
        time = [] if command == "oom" else ["--duration", "0.05"]
        done = machine.run(command, "--devices", "0", "1", *time, "--json")
        assert done.returncode in (0, 1) and json.loads(done.stdout), done.stderr
        assert done.stderr.splitlines()[0] == \
            "tidemark: --devices: there is no device '1'; there is: 0, host; going on without it"


@pytest.mark.parametrize("command", ["profile", "monitor"])
@pytest.mark.parametrize("value,seen", [("GPU-2,GPU-0", ["GPU-2", "GPU-0"]), ("2", ["GPU-2"]),
                                        ("-1", [None])])  # the host in their place
def test_visible_devices(machine, command, value, seen):
    """In CUDA's order, with CUDA's numbers."""
    machine.cards([], [], [])
    done = machine.run(command, "--devices", "visible", "--duration", "0.05", "--json", CUDA_VISIBLE_DEVICES=value)
    found = json.loads(done.stdout)["devices"]
    assert {label: device["id"] for label, device in found.items()} == {str(i): id for i, id in enumerate(seen)}


def test_parts_are_not_counted_twice(machine):
    machine.cards(["migmode 1", f"mig {8 * GIB} Half", f"process 41 {4 * GIB}"])
    report = machine.json("profile", "--devices", "0", "0:0", "--duration", "0.05", "--json")
    assert list(report["devices"]) == ["0", "0:0"]
    assert report["devices"]["0:0"]["current_usage"]["utilization_percent"] == 50.0
    assert report["summary"] == {"total_devices": 2, "total_memory_gb": 16.0,
                                 "overall_utilization": 25.0}


@pytest.mark.parametrize("words,said", [
    (["--interval", "0"], "--interval: 0 is out of range: from 0.001 s to a year"),
    (["--interval", "soon"], "--interval: 'soon' is not a time, such as 60, 0.1, 250ms or 5min"),
    (["--duration", "-1"], "--duration: '-1' is not a time, such as 60, 0.1, 250ms or 5min"),
    (["--plot", "a.gif"], "'a.gif' is not the name of a picture: it should end in .png, .svg or "
                          ".pdf"),
])
def test_wrong_words(machine, words, said):
    done = machine.run("profile", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"tidemark: {said}\n")


def test_driver_in_trouble(machine):
    """The host stands in, and it is said why."""
    machine.put(machine.state, "fail nvmlInit_v2 4\n")
    done = machine.run("profile", "--duration", "0.05")
    assert done.returncode == 0 and "host (" in done.stdout
    assert done.stderr == ("tidemark: NVIDIA's GPUs cannot be queried: this user may not open "
                           "/dev/nvidiactl; see: tidemark doctor\n")


# ---- the end

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_with_the_report(machine, number):
    machine.cards([f"process 41 {GIB}"])
    monitor = machine.start("profile", "--duration", "0", "--output", "r.json")
    status, out, err = monitor.end(number)
    assert (status, err) == (0, "tidemark: report written to r.json\n")
    assert out.splitlines()[1].split()[:3] == ["0", "Card", "0"]
    report = json.loads((machine.folder / "r.json").read_text())
    assert report["devices"]["0"]["current_usage"]["allocated"] == GIB


def test_nohup_stays_ignored(machine):
    """What was ignored when it was started does not end it."""
    process = subprocess.Popen(["nohup", TIDEMARK, "profile", "--duration", "0", "--interval",
                                "0.01", "--json"], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=machine.environment(),
                               stdin=subprocess.DEVNULL)
    machine.started.append(process)
    monitor = Monitor(process)
    process.send_signal(signal.SIGHUP)
    monitor.settle()
    assert process.poll() is None
    assert monitor.end()[0] == 0


def test_output_is_checked_first(machine):
    """Before time is spent; and a file that is there is kept until the end."""
    done = machine.run("profile", "--duration", "1000", "--output", "nowhere/r.json")
    assert done.returncode == 1
    assert done.stderr == "tidemark: cannot write nowhere/r.json: No such file or directory\n"
    (machine.folder / "r.json").write_text("precious")
    monitor = machine.start("profile", "--duration", "0", "--output", "r.json")
    assert (machine.folder / "r.json").read_text() == "precious"
    monitor.end()
    assert json.loads((machine.folder / "r.json").read_text())["summary"]


def test_progress(machine):
    """After two seconds a line, every ten where nobody sits in front of it."""
    machine.cards([f"process 41 {4 * GIB}"])
    done = subprocess.run(["script", "-qec", f"{TIDEMARK} profile --duration 2.8", "/dev/null"],
                          capture_output=True, text=True, check=False, timeout=60,
                          stdin=subprocess.DEVNULL, env={**machine.environment(), "TERM": "xterm"})
    assert re.search(r"tidemark: profile, device 0 25\.0 %: \d\d %, 2 s", done.stdout)


# ---- the picture

@pytest.mark.parametrize("suffix,magic", [("png", b"\x89PNG"), ("svg", b"<svg "), ("PDF", b"%PDF")])
def test_plot(machine, suffix, magic):
    machine.cards([f"process 41 {GIB}"], LOST)
    done = machine.run("profile", "--duration", "0.3", "--plot", f"a.{suffix}")
    assert done.returncode == 0
    assert f"tidemark: picture written to a.{suffix}\n" in done.stderr
    picture = (machine.folder / f"a.{suffix}").read_bytes()
    assert picture.startswith(magic) and len(picture) > 2000
    if suffix == "svg":
        assert b"0  Card 0, at most 1.00 GiB" in picture and b">MiB<" in picture


def test_plot_shows_the_samples(machine):
    """The line is at a GiB, as far as the picture is wide, and the size of the device is marked."""
    machine.cards([f"process 41 {GIB}"])
    done = machine.run("profile", "--duration", "0.3", "--plot", "a.svg")
    assert done.returncode == 0, done.stderr
    path = machine.folder / "a.svg"
    zero, scale = bytes_of_y(path)
    key, line = paths_of(path, stroke="#4393c3")  # the legend's, and the use
    assert key[1][0] - key[0][0] == 14
    assert {round((zero - y) * scale / GIB, 2) for _, y in line} == {1.0}
    assert 62 <= line[0][0] < line[-1][0] <= 980
    assert not overlaps(path)


def test_plot_without_cairo(machine):
    """It is said before anything is watched."""
    (machine.folder / "lib").mkdir()
    (machine.folder / "lib" / "libcairo.so.2").touch()
    done = machine.run("profile", "--plot", "a.png", LD_LIBRARY_PATH=str(machine.folder / "lib"))
    assert done.returncode == 1
    assert done.stderr.startswith("tidemark: PNG and PDF are drawn with cairo and Pango, which are not there (")
    assert "apt-get install libpangocairo-1.0-0" in done.stderr


def test_plot_that_fails(machine):
    """No half picture stays, and one of before is kept."""
    (machine.folder / "a.svg").write_text("precious")
    done = machine.run("profile", "--duration", "0.05", "--plot", "a.svg", "--output", "/dev/full")
    assert done.returncode == 1
    (machine.folder / "full.svg").symlink_to("/dev/full")
    done = machine.run("profile", "--duration", "0.05", "--plot", "full.svg")
    assert done.returncode == 1
    assert "tidemark: full.svg could not be written: No space left on device\n" in done.stderr


def test_second_signal_while_it_ends(machine):
    """Out of impatience: report and picture are written all the same."""
    os.mkfifo(machine.folder / "a.svg")
    machine.cards([f"process 41 {GIB}"])
    monitor = machine.start("profile", "--duration", "0", "--plot", "a.svg", "--output", "r.json")
    monitor.process.send_signal(signal.SIGINT)
    monitor.wait((machine.folder / "r.json").exists)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        monitor.process.send_signal(number)
    picture = (machine.folder / "a.svg").read_text()  # a FIFO: it waits for this
    out, err = monitor.process.communicate(timeout=LIMIT_S)
    assert monitor.process.returncode == 0 and out.splitlines()[1].split()[:3] == ["0", "Card", "0"]
    assert err == "tidemark: report written to r.json\ntidemark: picture written to a.svg\n"
    assert picture.startswith("<svg ") and picture.endswith("</svg>\n")
    assert json.loads((machine.folder / "r.json").read_text())["summary"]


# ---- files

def test_files_are_checked_first(machine):
    """Before time is spent, and nothing is left by a command that does not run."""
    done = machine.run("profile", "--duration", "1000", "--plot", "nowhere/a.png")
    assert done.returncode == 1
    assert done.stderr == "tidemark: cannot write nowhere/a.png: No such file or directory\n"
    done = machine.run("profile", "--devices", "7", "--output", "r.json", "--plot", "a.png")
    assert done.returncode == 2
    assert not (machine.folder / "r.json").exists() and not (machine.folder / "a.png").exists()
    done = machine.run("profile", "--duration", "1000", "--output", "proc")
    assert (done.returncode, done.stderr) == (1, "tidemark: cannot write proc: Is a directory\n")


def test_file_is_replaced_at_once(machine):
    """Whoever has the old one open keeps it whole; rights and a link to it stay."""
    real, link = machine.folder / "real.json", machine.folder / "link.json"
    real.write_text("precious")
    real.chmod(0o640)
    link.symlink_to("real.json")
    with open(real, encoding="ascii") as old:
        done = machine.run("profile", "--duration", "0.05", "--output", "link.json")
        assert done.returncode == 0 and old.read() == "precious"
    assert link.is_symlink() and json.loads(real.read_text())["summary"]
    assert real.stat().st_mode & 0o777 == 0o640


def test_output_to_what_is_no_file(machine):
    done = machine.run("profile", "--duration", "0.05", "--output", "/dev/stderr", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["summary"]
    assert json.loads(done.stderr.replace("tidemark: report written to /dev/stderr\n", ""))


def test_full_disk(machine):
    done = machine.run("profile", "--duration", "0.05", "--output", "/dev/full")
    assert done.returncode == 1
    assert done.stderr == "tidemark: cannot write /dev/full: No space left on device\n"


@pytest.mark.parametrize("words", [["profile"], ["monitor", "--all"]])
def test_closed_stdout(machine, words):
    """Nobody reads the table, nor the warnings before it: the file is there."""
    machine.cards([f"process 41 {15 * GIB}"])
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([TIDEMARK, *words, "--duration", "0.1", "--output", "r.json"],
                          stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60,
                          cwd=machine.folder, env=machine.environment(), text=True)
    os.close(writer)
    assert done.returncode == -signal.SIGPIPE
    assert done.stderr == "tidemark: report written to r.json\n"
    assert json.loads((machine.folder / "r.json").read_text())["summary"]
