#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: `tidemark agent` with the rights of deploy/systemd, beside real NVML.

    tests/gpu/check_agent.py TIDEMARK OUT

A watched process holds 1 GiB of torch's memory. The agent is started as the unit starts it (as root: a
user without rights but the unit's capabilities, folders of its own), and what it tells of GPU, process
and job is compared to nvidia-smi and torch. Writes each check with its figures to
OUT/check_agent.json, exit 1 when one fails."""
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from checks import Checks, command_line

UNIT = Path(__file__).resolve().parents[2] / "deploy" / "systemd" / "tidemark-agent.service"
GIB = 1 << 30
LIMIT_S = 60
JOB = """
import torch
block = torch.ones(1 << 30, dtype=torch.uint8, device="cuda:0")
torch.cuda.synchronize()
print(torch.cuda.memory_allocated(), flush=True)
input()
"""


def as_the_unit():
    if os.geteuid() != 0:
        return []
    names = re.search(r"^AmbientCapabilities=(.*)$", UNIT.read_text(encoding="ascii"), re.M)[1].split()
    plus = ",".join("+" + name.removeprefix("CAP_").lower() for name in names)
    return ["unshare", "--mount", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
            f"--inh-caps=-all,{plus}", f"--ambient-caps=-all,{plus}", f"--bounding-set=-all,{plus}"]


def samples(url):
    """[(name, labels, value)], or nothing yet."""
    try:
        with urllib.request.urlopen(url + "/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError:
        return []
    found = re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.M)
    return [(name, dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)), float(value)) for name, labels, value in found]


def wait_for_job(url, job):
    """What the agent tells once it has the job, or at last."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        found = samples(url)
        if time.monotonic() > deadline or any(
                name == "tidemark_job_allocated_bytes" and labels.get("job") == job for name, labels, _ in found):
            return found
        time.sleep(0.5)


def compare(checks, found, allocated):
    card = {labels["gpu"]: value for name, labels, value in found if name == "tidemark_gpu_memory_total_bytes"}
    asked = subprocess.run(["nvidia-smi", "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits"],
                           capture_output=True, text=True, check=False).stdout
    for line in asked.splitlines():
        index, uuid, mib = (word.strip() for word in line.split(","))
        checks.add(f"GPU {index}: total as nvidia-smi has it", abs(card.get(index, 0) / (1 << 20) - float(mib)) <= 1,
                   told=card.get(index), nvidia_smi_mib=mib, uuid=uuid)
    if not asked:
        checks.skip("totals", "there is no nvidia-smi")
    job = [(labels, value) for name, labels, value in found
           if name == "tidemark_job_allocated_bytes" and labels.get("job") == "check-agent" and labels["gpu"] != "host"]
    checks.add("the job's allocated memory is torch's", [value for _, value in job] == [allocated], told=job, torch=allocated)
    uuids = {labels.get("uuid") for labels, _ in job}
    checks.add("its GPU is known", bool(job) and uuids <= {line.split(",")[1].strip() for line in asked.splitlines()},
               uuids=[str(uuid) for uuid in uuids])
    pids = {labels["pid"]: value for name, labels, value in found if name == "tidemark_process_gpu_memory_bytes"}
    if pids:
        checks.add("NVML tells the job's process", any(value >= GIB for value in pids.values()), told=pids)
    else:
        checks.skip("processes", "NVML lists none: a container without the host's PIDs")


def check_agent(checks, tidemark, out):
    job = subprocess.Popen([tidemark, "run", "--quiet", "-o", f"{out}/agent.tmk", "--", sys.executable, "-c", JOB],
                           env={**os.environ, "TIDEMARK_JOB": "check-agent"}, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
    said = job.stdout.readline()
    checks.add("the job runs", said.strip().isdigit(), said=said)
    if said.strip().isdigit():
        agent = subprocess.Popen([*as_the_unit(), tidemark, "agent", "--listen", "0"], stderr=subprocess.PIPE, text=True)
        first = agent.stderr.readline()
        url = re.search(r"(http://\S+)/metrics", first)
        checks.add("the agent starts with the unit's rights", url, said=first)
        if url:
            compare(checks, wait_for_job(url[1], "check-agent"), int(said))
        agent.terminate()
        checks.add("it ends well", agent.wait(timeout=LIMIT_S) == 0)
    job.communicate("\n", timeout=LIMIT_S)


def main():
    tidemark, out, _ = command_line(__doc__)
    checks = Checks()
    try:
        check_agent(checks, tidemark, out)
    finally:
        checks.save(out, "check_agent")
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
