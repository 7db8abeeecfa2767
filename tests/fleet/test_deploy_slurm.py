# SPDX-License-Identifier: MIT
"""deploy/slurm: the task prolog and the epilog run as slurmd runs them, around four real ranks; the batch
script, with an srun that starts its tasks here."""
import os
import re
import shutil
import subprocess
import sys

import pytest
from agent_kit import REPO, program
from deploy_kit import run

SLURM = REPO / "deploy" / "slurm"
TRAIN = """
import os, subprocess, sys
batch = "24" if os.environ["SLURM_PROCID"] == "2" else "4"
sys.exit(subprocess.call([TINYTRAIN, "--steps", "4", "--quiet", "--batch", batch]))
"""
SRUN = """#!PYTHON
import os, subprocess, sys
words = sys.argv[1:]
n = int(os.environ["SLURM_NTASKS"])
while words[0].startswith("--"):
    if words[0] == "--ntasks-per-node=1":
        n = 1
    words.pop(0)
tasks = [subprocess.Popen(words, env={**os.environ, "SLURM_PROCID": str(i)}) for i in range(n)]
sys.exit(max(task.wait() for task in tasks))
"""
LINE = (r"peak [\d.]+ MiB of [\d.]+ GiB of CPU memory on rank 2; IMBALANCED, [\d.]+ times the median; "
        r"3 ranks used less than half of the peak: 0, 1, 3")


@pytest.fixture(name="site")
def site_fixture(place):
    """/etc/slurm/tidemark of a site: the scripts, and settings with folders of the test's own."""
    site = place / "etc"
    shutil.copytree(SLURM, site)
    settings = (site / "settings").read_text(encoding="ascii")
    assert "TIDEMARK=/usr/local/bin/tidemark\n" in settings and "WATCH=asked\n" in settings
    settings = settings.replace("/usr/local/bin/tidemark", program("tidemark"))
    settings += (f'run_folder() {{ echo "{place}/runs/$1/job-$2.tmk"; }}\n'
                 f'log_line() {{ echo "$1" >> "{place}/log"; }}\n')
    (site / "settings").write_text(settings, encoding="ascii")
    for folder in ("runs", "rings"):
        (place / folder).mkdir()
        (place / folder).chmod(0o1777)
    return site


def user():
    """(name, how to become it): root plays another, as slurmd does."""
    if os.geteuid() != 0:
        return run("id", "-un").stdout.strip(), ()
    return "nobody", ("setpriv", "--reuid=nobody", "--regid=nogroup", "--init-groups")


def task_environment(site, prefix, env):
    """What slurmstepd makes of the prolog's output."""
    done = run(*prefix, site / "task-prolog", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    env = dict(env)
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        name, _, value = rest.partition("=")
        assert word in ("export", "unset") and re.fullmatch("[A-Z_]+", name), line
        if word == "export":
            env[name] = value
        else:
            env.pop(name, None)
    return env


def slurm_environment(site, name, **more):
    return {"SLURM_JOB_ID": "4711", "SLURM_JOB_USER": name, "SLURM_NTASKS": "4", "PATH": "/usr/bin:/bin",
            "TIDEMARK_RING_DIR": str(site.parent / "rings"), **more}


def test_prolog_and_epilog(site, place):
    name, prefix = user()
    env = slurm_environment(site, name, TIDEMARK_WATCH="1", TIDEMARK_NATIVE="1", LD_PRELOAD="libm.so.6")
    tasks = []
    for rank in range(4):
        task = task_environment(site, prefix, {**env, "SLURM_PROCID": str(rank)})
        assert task["TIDEMARK_RUN"] == f"{place}/runs/{name}/job-4711.tmk"
        assert task["LD_PRELOAD"].endswith("/libtidemark.so:libm.so.6")
        assert "TIDEMARK_NATIVE" not in task
        command = [program("tinytrain"), "--steps", "4", "--quiet", "--batch", "24" if rank == 2 else "4"]
        tasks.append(subprocess.Popen([*prefix, *command], env=task))
    assert [task.wait(timeout=60) for task in tasks] == [0] * 4
    done = run(site / "epilog", env=slurm_environment(site, name))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    said = (place / "runs" / name / "job-4711.txt").read_text(encoding="utf-8")
    assert re.fullmatch(LINE + "\n", said)
    assert (place / "log").read_text(encoding="utf-8") == f"job 4711 of {name}: {said}"
    left = os.stat(place / "runs" / name / "job-4711.txt")
    assert left.st_mode & 0o777 == 0o600
    assert left.st_uid == os.stat(place / "runs" / name / "job-4711.tmk").st_uid
    assert left.st_uid != 0 or os.geteuid() != 0


def test_a_killed_rank_is_merged(site, place):
    """What a killed rank left in memory is in the trace, and in the line, after the node's epilog."""
    name, prefix = user()
    env = slurm_environment(site, name, TIDEMARK_WATCH="1", SLURM_NTASKS="2")
    train = [program("tinytrain"), "--quiet", "--steps"]
    for rank, command in enumerate(([*train, "4"], ["timeout", "-s", "KILL", "1", *train, "100000"])):
        run(*prefix, *command, env=task_environment(site, prefix, {**env, "SLURM_PROCID": str(rank)}))
    trace = next((place / "runs" / name / "job-4711.tmk").glob("*.r1.*.trace"))
    unmerged = trace.stat().st_size
    assert run(site / "epilog", env=slurm_environment(site, name)).returncode == 0
    said = (place / "runs" / name / "job-4711.txt").read_text(encoding="utf-8")
    assert re.fullmatch(r"peak .* on rank [01]; ENDED EARLY: 0, 1\n", said)
    assert trace.stat().st_size > unmerged


def test_jobs_that_are_left_alone(site, place):
    """Not asked for; watching itself; not a job; no tidemark: the task starts as it would without."""
    name, prefix = user()
    asked = slurm_environment(site, name, TIDEMARK_WATCH="1")
    nobody = dict(asked)
    del nobody["SLURM_JOB_ID"]
    for env in ({**asked, "TIDEMARK_WATCH": "0"}, {**asked, "TIDEMARK_RUN": "/mine.tmk"}, nobody):
        assert task_environment(site, prefix, env) == env
    assert not list((place / "runs").iterdir())
    done = run(site / "epilog", env=slurm_environment(site, name))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    settings = site / "settings"
    text = settings.read_text(encoding="ascii")
    settings.write_text(text.replace(program("tidemark"), "/nothing"), encoding="ascii")
    done = run(*prefix, site / "task-prolog", env=asked)
    assert (done.returncode, done.stdout) == (0, "")
    settings.write_text(text.replace("WATCH=asked", "WATCH=all"), encoding="ascii")
    assert "LD_PRELOAD" in task_environment(site, prefix, {**asked, "TIDEMARK_WATCH": "0"})


def test_a_report_that_fails_is_said(site, place):
    name, prefix = user()
    folder = place / "runs" / name / "job-4711.tmk"
    assert run(*prefix, "mkdir", "-p", folder).returncode == 0
    done = run(site / "epilog", env=slurm_environment(site, name))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    said = (place / "log").read_text(encoding="utf-8")
    assert said.startswith(f"job 4711 of {name}: tidemark: ") and "no trace" in said
    settings = site / "settings"
    text = settings.read_text(encoding="ascii")
    settings.write_text(text.replace("LIMIT_S=60", "LIMIT_S=1") + "TIDEMARK=/bin/sleep-long\n", encoding="ascii")
    slow = place / "slow"
    slow.write_text("#!/bin/sh\nsleep 20\n", encoding="ascii")
    slow.chmod(0o755)
    settings.write_text(settings.read_text(encoding="ascii").replace("/bin/sleep-long", str(slow)), encoding="ascii")
    assert run(site / "epilog", env=slurm_environment(site, name)).returncode == 0
    assert (place / "log").read_text(encoding="utf-8").splitlines()[-1] == \
        f"job 4711 of {name}: no report after 1 s; by hand: tidemark report {folder}"


def test_batch_script(place):
    """Its last line of output is the job-end line, and its status the training's."""
    bin_folder = place / "bin"
    bin_folder.mkdir()
    (place / "rings").mkdir()
    (bin_folder / "srun").write_text(SRUN.replace("PYTHON", sys.executable), encoding="ascii")
    (bin_folder / "srun").chmod(0o755)
    (bin_folder / "tidemark").symlink_to(program("tidemark"))
    (bin_folder / "python").symlink_to(sys.executable)
    (place / "train.py").write_text(TRAIN.replace("TINYTRAIN", repr(program("tinytrain"))), encoding="ascii")
    env = slurm_environment(place / "bin", "me", HOME=str(place), PATH=f"{bin_folder}:/usr/bin:/bin")
    done = run("bash", SLURM / "train.sbatch", env=env, cwd=place)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(LINE, done.stdout.splitlines()[-1])
    assert (place / "tidemark" / "job-4711.tmk").is_dir()
    (place / "train.py").write_text("raise SystemExit(3)", encoding="ascii")
    done = run("bash", SLURM / "train.sbatch", env={**env, "SLURM_JOB_ID": "4712"}, cwd=place)
    assert done.returncode == 3
