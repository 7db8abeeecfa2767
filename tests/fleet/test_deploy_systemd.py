# SPDX-License-Identifier: MIT
"""deploy/systemd: systemd accepts the units, and the rights that they give are enough for the agent and
no more than that."""
import os
import re
import shutil
import subprocess

import pytest
from agent_kit import REPO, Agent, Watched, clean_environment, program

UNITS = REPO / "deploy" / "systemd"
DOCS = (REPO / "docs" / "fleet.md").read_text(encoding="utf-8")
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="NOT RUN: no systemd-analyze")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root can give rights to another user")


def settings(unit):
    """{name: [value]} of a unit file."""
    found = {}
    for line in unit.read_text(encoding="ascii").splitlines():
        if line and line[0] not in "#[":
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def installed(folder, unit, text=None):
    """A copy of the unit that starts this build's program."""
    text = text or unit.read_text(encoding="ascii")
    text, n = re.subn(r"^ExecStart=\S+/tidemark ", f"ExecStart={program('tidemark')} ", text, flags=re.M)
    assert n == 1
    path = folder / unit.name
    path.write_text(text, encoding="ascii")
    return path


def analyze(folder, *arguments):
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False, timeout=60,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)})


@needs_systemd
@pytest.mark.parametrize("which", ["system", "user"])
def test_units_are_accepted(place, which):
    unit = UNITS / ("user/" if which == "user" else "") / "tidemark-agent.service"
    done = analyze(place, f"--{which}", "verify", "--man=no", str(installed(place, unit)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = unit.read_text(encoding="ascii")
    wrong = text.replace("NoNewPrivileges=yes", "NoNewPrivilege=yes")
    assert wrong != text
    done = analyze(place, f"--{which}", "verify", "--man=no", str(installed(place, unit, wrong)))
    assert "'NoNewPrivilege'" in done.stderr


@needs_systemd
def test_exposure(place):
    """The figure in the docs, or less: another version of systemd counts other things."""
    unit = installed(place, UNITS / "tidemark-agent.service")
    done = analyze(place, "security", "--offline=yes", "--no-pager", str(unit))
    if "unrecognized option" in done.stderr:
        pytest.skip("NOT RUN: systemd-analyze is older than 250 and has no --offline")
    exposure = re.search(r"Overall exposure level for tidemark-agent.service: ([\d.]+)", done.stdout)
    documented = re.search(r"`systemd-analyze security` says ([\d.]+)", DOCS)
    assert float(exposure[1]) <= float(documented[1])


def calls_of(words):
    """The system calls of a list, groups taken apart."""
    calls = set()
    for word in words:
        if not word.startswith("@"):
            calls.add(word)
            continue
        lines = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", word], text=True,
                               capture_output=True, check=True).stdout.splitlines()
        assert lines[0] == word
        calls |= calls_of([line.strip() for line in lines[1:] if line.strip() and line.strip()[0] != "#"])
    return calls


@needs_systemd
@pytest.mark.parametrize("which", ["", "user"])
def test_system_calls(which):
    """What the agent calls (strace said so, with NVML's stand-in) is allowed; what changes processes is not."""
    allow, deny = settings(UNITS / which / "tidemark-agent.service")["SystemCallFilter"]
    assert deny[0] == "~"
    allowed = calls_of(allow.split()) - calls_of(deny[1:].split()) | calls_of(["@default"])
    assert {"accept4", "clone3", "epoll_wait", "eventfd2", "flock", "getdents64", "ioctl", "mmap", "mprotect", "munlock",
            "openat", "openat2", "pipe2", "pread64", "prlimit64", "readlink", "readv", "tgkill", "writev"} <= allowed
    assert not {"ptrace", "process_vm_writev", "mount", "bpf", "kexec_load"} & allowed


def as_the_unit(capabilities):
    """As systemd starts it: a user of its own, these capabilities, private folders."""
    plus = ",".join("+" + name.removeprefix("CAP_").lower() for name in capabilities)
    return ("unshare", "--mount", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
            f"--inh-caps=-all,{plus}", f"--ambient-caps=-all,{plus}", f"--bounding-set=-all,{plus}")


@needs_root
def test_capabilities(place):
    """With them the agent reads another user's job, up to its last words; with one of them it sees nothing."""
    both = settings(UNITS / "tidemark-agent.service")["AmbientCapabilities"][0].split()
    assert [both] == [value.split() for value in settings(UNITS / "tidemark-agent.service")["CapabilityBoundingSet"]]
    job = Watched(place, "theirs.tmk", {})
    job.do("alloc host 0 5000")
    pid = str(job.pid)
    agent = Agent(prefix=as_the_unit(both), environment=clean_environment(place))
    one = [Agent(prefix=as_the_unit([name]), environment=clean_environment(place)) for name in both]
    agent.wait_metrics("the job", lambda m: m.of("tidemark_job_allocated_bytes", pid=pid))
    for other in one:
        metrics = other.metrics()
        assert not metrics.of("tidemark_job_steps_total") and not metrics.of("tidemark_job_allocated_bytes")
        assert other.end() == (0, "")
    job.do("alloc host 1 7000", "oom host 1")
    job.end()
    agent.wait_metrics("its end", lambda m: not m.of("tidemark_job_allocated_bytes", pid=pid) and
                       m.of("tidemark_job_ooms_total", pid=pid))
    assert agent.metrics().value("tidemark_job_peak_allocated_bytes", pid=pid) == 12000
    assert agent.end() == (0, "")


def test_as_the_user(place):
    """The user unit gives no rights, and needs none for that user's jobs."""
    unit = settings(UNITS / "user" / "tidemark-agent.service")
    assert not {"AmbientCapabilities", "CapabilityBoundingSet", "User", "PrivateTmp", "ProtectSystem"} & unit.keys()
    mine = ("setpriv", "--no-new-privs")
    if os.geteuid() == 0:
        mine = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
        os.chown(place, 65534, 65534)
    job = Watched(place, "mine.tmk", {}, prefix=mine)
    job.do("alloc host 0 5000")
    agent = Agent(prefix=mine, environment=clean_environment(place))
    metrics = agent.wait_metrics("the job", lambda m: m.of("tidemark_job_allocated_bytes", pid=str(job.pid)))
    assert metrics.value("tidemark_job_allocated_bytes", pid=str(job.pid)) == 5000
    assert agent.end() == (0, "")
    job.end()
