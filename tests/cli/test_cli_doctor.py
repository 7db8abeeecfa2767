# SPDX-License-Identifier: MIT
"""doctor on machines that are made up: cards by tests/fake_cuda, /proc and /sys by this test, and
Pythons that are folders with a torch/version.py. What it says, and what it advises."""
import json
import os
import pathlib
import subprocess

import pytest
from test_golden import BUILD, environment

GIB = 1 << 30


class Machine:
    """A /proc and a /sys, and what NVML shall say."""

    def __init__(self, folder):
        self.folder = folder
        self.cards = None
        self.module = "580.95.05"
        self.write("proc/meminfo", f"MemTotal: {16 << 20} kB\nMemAvailable: {12 << 20} kB\n")
        (folder / "sys").mkdir()
        (folder / "bin").mkdir()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def doctor(self, *arguments, prefix=(), **more):
        fakes = [os.path.join(BUILD, part, "tests", "fake_cuda") for part in ("", "gcc")]
        fake = next((f for f in fakes if os.path.exists(f + "/libnvidia-ml.so.1")), None)
        assert fake, "tests/fake_cuda is not built: run ./dev check first"
        if self.cards is not None:
            self.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel "
                       f"Module for x86_64  {self.module}  Release Build\n")
            more["FAKE_CUDA_STATE"] = str(self.write("cards", "driver 580.95.05\ncuda 13000\n" +
                                                     self.cards))
        return subprocess.run(
            [*prefix, os.path.join(BUILD, "tidemark"), "doctor", *arguments],
            capture_output=True, text=True, check=False, timeout=240, env={
                **environment(), "HOME": str(self.folder), "PATH": str(self.folder / "bin"),
                "LD_LIBRARY_PATH": fake, "TIDEMARK_PROC_DIR": str(self.folder / "proc"),
                "TIDEMARK_SYS_DIR": str(self.folder / "sys"), **more})

    def rows(self, *arguments, **more):
        """{name: (grade, text, fix)}"""
        done = self.doctor("--json", *arguments, **more)
        checks = json.loads(done.stdout)["checks"]
        bad = any(check["grade"] == "bad" for check in checks)
        assert done.returncode == (1 if bad else 0) and not done.stderr
        return {check["name"]: (check["grade"], check["text"], check["fix"]) for check in checks}

    def python(self, cuda, version="2.11.0", hip="None"):
        """The path of a Python with such a torch."""
        self.write("env/lib/python3.12/site-packages/torch/version.py",
                   "from typing import Optional\n__all__ = ['__version__', 'debug', 'cuda']\n"
                   f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {cuda}\n"
                   f"git_version = 'abc'\nhip: Optional[str] = {hip}\n")
        program = self.write("env/bin/python", "#!/bin/sh\nexit 99\n")
        program.chmod(0o755)
        return str(program)


@pytest.fixture(name="machine")
def fixture_machine(tmp_path):
    return Machine(tmp_path)


# ---- cards

def test_no_card(machine):
    rows = machine.rows()
    assert rows["NVIDIA driver"] == ("ok", "no NVIDIA GPU here", None)
    assert rows["host memory"] == ("ok", "4.00 GiB of 16.00 GiB used", None)
    assert rows["memory limit"] == ("ok", "none by a control group", None)
    assert rows["torch"] == ("ok", "none for a Python: there is none on PATH", None)
    assert not any(name.startswith("device") or name == "NVML" for name in rows)


def test_eight_cards(machine):
    machine.cards = "".join(f"device {80 * GIB} NVIDIA A100\nreserved {GIB // 2}\nmigmode 0\n"
                            f"process {100 + i} {i * GIB}\n" for i in range(8))
    for i in range(4):
        machine.write(f"proc/{100 + i}/status", f"Name:\tpython\nNSpid:\t{100 + i}\t{i + 1}\n")
    rows = machine.rows()
    assert rows["NVIDIA driver"] == ("ok", "580.95.05", None)
    assert rows["NVML"] == ("ok", "580.95.05, runs CUDA up to 13.0, 8 GPUs", None)
    assert rows["device 3"] == (
        "ok", "NVIDIA A100, 3.00 GiB of 80.00 GiB used by 1 process, reserved 512.0 MiB; "
        "compute mode default; MIG off", None)
    assert "by 1 process (1 not visible from here), " in rows["device 7"][1]
    assert [name for name in rows if name.startswith("device")] == [f"device {i}" for i in range(8)]


def test_parts(machine):
    machine.cards = (f"device {80 * GIB} A100\nmigmode 1\nmig {10 * GIB} A100 MIG 1g.10gb\n"
                     f"uuid MIG-77\nprocess 5 {GIB}\ndevice {80 * GIB} A100\nmigmode 1\n")
    rows = machine.rows()
    assert rows["device 0"][0] == "ok" and rows["device 0"][1].endswith("; MIG on, 1 part")
    assert rows["device 0:0"] == (
        "ok", "A100 MIG 1g.10gb, 1.00 GiB of 10.00 GiB used by 1 process (1 not visible from "
        "here); compute mode default; MIG-77", None)
    assert rows["device 1"][0] == "bad" and rows["device 1"][1].endswith("; MIG on, 0 parts")
    assert rows["device 1"][2].startswith("no program can use it: sudo nvidia-smi -i 1 -mig 0")


@pytest.mark.parametrize("details,grade,advice", [
    ("mode 2\n", "bad", "no program may use it: sudo nvidia-smi -i 0 -c DEFAULT"),
    ("mode 3\n", "ok", None),
    ("mode 3\nprocess 7 5\n", "fair",
     "taken by one process; to share it: sudo nvidia-smi -i 0 -c DEFAULT"),
    (f"process 7 {73 * GIB}\n", "fair",
     "almost full: another program will soon run out of memory here"),
    (f"process 7 {71 * GIB}\n", "ok", None),
    (f"process 7 5\nhidden {GIB}\n", "ok", None),
    (f"process 7 5\nhidden {3 * GIB}\n", "fair",
     "3.00 GiB are used by processes that cannot be seen from here; in a container: start it with "
     "--pid=host"),
    (f"process 7 -\nhidden {3 * GIB}\n", "ok", None),
    ("fail nvmlDeviceGetHandleByIndex_v2 15\n", "bad",
     "see what dmesg says of it; a lost GPU needs a restart of the machine"),
])
def test_card_in_trouble(machine, details, grade, advice):
    machine.cards = f"device {80 * GIB} A100\n{details}"
    found = machine.rows()["device 0"]
    assert (found[0], found[2]) == (grade, advice)


def test_card_in_the_hosts_memory(machine):
    machine.cards = ("device 1000 NVIDIA GB10\nprocess 7 30\nfail nvmlDeviceGetMemoryInfo 3\n"
                     "fail nvmlDeviceGetMemoryInfo_v2 3\n")
    assert machine.rows()["device 0"] == (
        "ok", "NVIDIA GB10, in the host's memory, used by 1 process (1 not visible from here); "
        "compute mode default", None)


def test_amd(machine):
    machine.write("sys/class/drm/card1/device/mem_info_vram_total", f"{64 * GIB}\n")
    machine.write("sys/class/drm/card1/device/mem_info_vram_used", f"{GIB}\n")
    machine.write("sys/class/drm/card1/device/product_name", "AMD Instinct MI210\n")
    rows = machine.rows("--python", machine.python("None"))
    assert rows["AMD GPU1"] == (
        "ok", "AMD Instinct MI210, 1.00 GiB of 64.00 GiB used by 0 processes", None)
    assert rows["torch"][0] == "fair" and "install one for ROCm" in rows["torch"][2]


# ---- driver

@pytest.mark.parametrize("code,grade,text,advice", [
    (18, "bad", "the kernel runs module 580.65.06, but the library is of driver 580.95.05",
     "the driver was updated while it ran: restart the machine (a container: start it anew)"),
    (4, "bad", "this user may not open /dev/nvidiactl",
     "ls -l /dev/nvidia*, then join that group: sudo usermod -aG GROUP $USER, and log in again"),
    (9, "fair", "the module is loaded, but its device files cannot be seen from here",
     "in a container: start it with --gpus all; else: sudo nvidia-modprobe -c 0 -u"),
    (999, "bad", "NVML does not start: Unknown Error (999)",
     "see what nvidia-smi says, and dmesg | grep NVRM"),
])
def test_driver_in_trouble(machine, code, grade, text, advice):
    machine.cards, machine.module = f"fail nvmlInit_v2 {code}\n", "580.65.06"
    rows = machine.rows()
    assert rows["NVIDIA driver"] == ("ok", "580.65.06", None)
    assert rows["NVML"] == (grade, text, advice)


def test_driver_without_cards(machine):
    machine.cards = "fail nvmlSystemGetDriverVersion 999\nfail nvmlSystemGetCudaDriverVersion 999\n"
    assert machine.rows()["NVML"] == ("fair", "580.95.05, 0 GPUs",
                                      "see what nvidia-smi says, and dmesg | grep NVRM")
    machine.cards += "fail nvmlDeviceGetCount_v2 4\n"
    assert machine.rows()["NVML"][:2] == (
        "bad", "NVML does not count the GPUs: Insufficient Permissions (4)")


def test_driver_not_loaded(machine):
    machine.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    machine.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    assert machine.rows()["NVIDIA driver"] == (
        "fair", "a GPU is there, but its module is not loaded",
        "install NVIDIA's driver; if it is installed: sudo modprobe nvidia")


# ---- attach

def ptrace_scope():
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as setting:
            return int(setting.read())
    except FileNotFoundError:
        return 0


@pytest.mark.skipif(ptrace_scope() == 3, reason="ptrace_scope is 3: nobody may attach")
def test_attach(machine):
    """With the capability and without it, by this machine's setting."""
    with open("/proc/self/status", encoding="ascii") as status:
        capable = next(int(line.split()[1], 16) >> 19 & 1 for line in status
                       if line.startswith("CapEff:"))
    text = ["to any program of this user", "only to programs under `tidemark run`, and as root to "
            "any", "as root only"][ptrace_scope()]
    fix = "sudo sysctl kernel.yama.ptrace_scope=0, or: sudo tidemark attach PID"
    plain = ("fair", text, fix) if ptrace_scope() else ("ok", text, None)
    assert machine.rows()["attach"] == (("ok", "to any program", None) if capable else plain)
    if capable:
        assert machine.rows(prefix=["/usr/bin/setpriv", "--bounding-set=-sys_ptrace",
                                    "--inh-caps=-sys_ptrace"])["attach"] == plain


# ---- the host

def test_host_in_trouble(machine):
    machine.write("proc/pressure/memory", "some avg10=31.50 avg60=0.00 avg300=0.00 total=1\n")
    machine.write("proc/self/cgroup", "0::/job\n")
    machine.write("sys/fs/cgroup/job/memory.max", f"{2 * GIB}\n")
    machine.write("sys/fs/cgroup/job/memory.current", f"{2 * GIB}\n")
    rows = machine.rows()
    assert rows["host memory"][:2] == (
        "fair", "4.00 GiB of 16.00 GiB used; programs wait for memory 31 % of the time")
    assert rows["memory limit"][:2] == ("fair", "2.00 GiB by the control group, used 2.00 GiB")
    machine.write("sys/fs/cgroup/job/memory.stat", f"inactive_file {GIB}\n")
    assert machine.rows()["memory limit"] == (
        "ok", "2.00 GiB by the control group, used 1.00 GiB", None)


# ---- torch

@pytest.mark.parametrize("cuda,grade,advice", [
    ("'13.0'", "ok", None),
    ("'12.8'", "ok", None),
    ("'13.2'", "fair", "the driver runs CUDA up to 13.0; most works, kernels compiled at run time "
     "may not: update it, or install a torch for CUDA 13.0 or older"),
    ("'14.0'", "bad", "the driver runs CUDA up to 13.0: update it, or install a torch for CUDA "
     "13.0 or older"),
    ("None", "fair",
     "it cannot use the GPU here: install one for CUDA (pytorch.org, Get Started)"),
])
def test_torch_against_driver(machine, cuda, grade, advice):
    machine.cards = f"device {80 * GIB} A100\n"
    python = machine.python(cuda)
    kind = f"for CUDA {cuda[1:-1]}" if cuda != "None" else "for the CPU"
    assert machine.rows("--python", python)["torch"] == (grade, f"2.11.0 {kind}, of {python}",
                                                         advice)


def test_torch_is_found(machine):
    """In the environment that is active, in what it stands on, and on PATH; Debian's place too."""
    python = machine.python("None", version="9.8.7")
    env = str(machine.folder / "env")
    assert machine.rows(VIRTUAL_ENV=env)["torch"][1] == f"9.8.7 for the CPU, of {python}"
    assert machine.rows(CONDA_PREFIX=env)["torch"][1] == f"9.8.7 for the CPU, of {python}"
    path = f"{machine.folder}/bin:{env}/bin"
    assert machine.rows(PATH=path)["torch"][1].endswith(f", of {python}")
    inner = machine.write("inner/bin/python", "")
    inner.chmod(0o755)
    machine.write("inner/pyvenv.cfg", f"home = {env}/bin\ninclude-system-site-packages = true\n")
    assert machine.rows("--python", str(inner))["torch"][1].startswith("9.8.7 ")
    machine.write("inner/pyvenv.cfg", f"home = {env}/bin\ninclude-system-site-packages = false\n")
    assert machine.rows("--python", str(inner))["torch"] == (
        "bad", f"none for {inner}", "name the program that runs the training: --python PROGRAM")
    installed = {}
    with open("/usr/lib/python3/dist-packages/torch/version.py", encoding="utf-8") as source:
        exec(source.read(), installed)
    found = machine.rows("--python", "/usr/bin/python3")["torch"][1]
    assert found == f"{installed['__version__']} for the CPU, of /usr/bin/python3"


def test_python_and_torch_elsewhere(machine):
    """pyenv's scripts stand for the program that they start; another Python on PATH may have torch."""
    shim = machine.write("pyenv/shims/python3", "#!/bin/sh\n")
    shim.chmod(0o755)
    machine.write("pyenv/version", "3.8.5\n3.12.1\n")
    for version in ("3.8.5", "3.12.1"):
        minor = version.rsplit(".", 1)[0]
        real = machine.write(f"pyenv/versions/{version}/bin/python{minor}", "")
        real.chmod(0o755)
        (real.parent / "python3").symlink_to(real.name)
    old, new = (str(machine.folder / f"pyenv/versions/{v}/bin/python3") for v in ("3.8.5", "3.12.1"))
    path = f"{machine.folder}/pyenv/shims"
    rows = machine.rows(PATH=path)
    assert rows["Python"] == ("fair", f"3.8, {old}: stacks have no Python lines",
                              "use Python 3.9 to 3.14")
    assert rows["torch"] == ("ok", f"none for {old}", None)
    rows = machine.rows(PATH=path, PYENV_VERSION="3.12.1")
    assert rows["Python"] == ("ok", f"3.12, {new}", None)
    python = machine.python("None", version="1.9.1")
    (machine.folder / "env/bin/python3").symlink_to("python")
    rows = machine.rows(PATH=f"{path}:{machine.folder}/env/bin")
    assert rows["torch"] == ("ok", f"none for {old}, but 1.9.1 for {python}3",
                             f"train with that one: tidemark run -- {python}3 TRAIN.py")
    assert machine.rows("--python", python)["torch"] == (
        "fair", f"1.9.1 for the CPU, of {python}",
        "older than what tidemark is tried with: torch 1.13 or later")


# ---- what is around

def test_container(machine):
    assert machine.rows()["container"][0] == "ok"
    identity = "c" * 64
    machine.write("proc/self/cgroup", f"0::/kubepods/burstable/podx/{identity}\n")
    assert machine.rows()["container"] == ("ok", "Kubernetes", None)
    (machine.folder / "proc/self/ns").mkdir()
    (machine.folder / "proc/self/ns/pid").symlink_to("pid:[4026531999]")
    (machine.folder / "proc/self/ns/user").symlink_to("user:[4026531837]")
    assert machine.rows()["container"] == (
        "ok", "Kubernetes; PIDs of its own: a job is named by the PID that it has here", None)


@pytest.mark.parametrize("limit,grade,text,advice", [
    ("-n 512", "fair", "open files 512, locked memory ",
     "too few open files for a run of many ranks: ulimit -n 1024"),
    ("-n 2048", "ok", "open files 2,048, locked memory ", None),
    ("-l 64", "ok", ", locked memory 64.0 KiB, core files off", None),
    ("-v 900000", "bad", "a program may have only 878.9 MiB of address space: nothing is recorded",
     "ulimit -v unlimited"),
])
def test_limits(machine, limit, grade, text, advice):
    rows = machine.rows(prefix=["/bin/bash", "-c", f'ulimit -S -c 0; ulimit -S {limit}; exec "$@"', "-"])
    assert (rows["limits"][0], rows["limits"][2]) == (grade, advice) and text in rows["limits"][1]


@pytest.mark.parametrize("settings,grade,text,advice", [
    ({"LC_ALL": "C.UTF-8"}, "ok", "C.UTF-8", None),
    ({"LC_ALL": "C"}, "fair", "C (ANSI_X3.4-1968): lines and graphs of top may be drawn in ASCII",
     "export LC_ALL=C.UTF-8"),
    ({"LC_ALL": "", "LANG": "xx_YY.UTF-8"}, "fair", "xx_YY.UTF-8 is not installed on this machine",
     "export LC_ALL=C.UTF-8"),
])
def test_locale(machine, settings, grade, text, advice):
    assert machine.rows(**settings)["locale"] == (grade, text, advice)


def libraries_of(*programs):
    """The files that the loader takes, by ldd."""
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    return {word for line in listed.splitlines() for word in line.split()
            if word.startswith("/") and not word.endswith(":")}


def bare_root(folder):
    """A root folder with the programs, their libraries and nothing else."""
    programs = [os.path.join(BUILD, name) for name in ("tidemark", "tinytrain", "libtidemark.so")]
    places = {path: path for path in libraries_of(*programs)}
    places |= {path: "/bin/" + os.path.basename(path) for path in programs}
    for path, place in places.items():
        target = folder / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(pathlib.Path(path).read_bytes())
        target.chmod(0o755)
    return folder


def everything_in(folder):
    return sorted((str(path), path.lstat().st_size) for path in pathlib.Path(folder).rglob("*"))


def in_namespaces(*flags):
    """unshare with these, where this machine lets us; else the test is skipped, loudly."""
    command = ["/usr/bin/unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), *flags]
    if subprocess.run([*command, "/bin/true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let us make namespaces")
    return command


@pytest.mark.parametrize("mounts,exit_status,expected", [
    ([], 1, {
        "attach": "unknown: there is no /proc, which attach needs",
        "seccomp": "unknown: there is no /proc, which counts filters",
        "container": "unknown: there is no /proc here",
        "memory limit": "unknown: there is no /proc",
        "NVIDIA driver": "unknown: no driver, and there is no /sys to find a GPU in",
        "/dev/shm": "there is no /dev/shm: DataLoader workers and NCCL need it, too",
        "recording": "not tried: without /proc the recorder cannot see seccomp filters, and records "
                     "nothing"}),
    (["mount -t proc proc proc"], 0, {"recording": "not tried: no folder for files: /tmp"}),
    (["mount -t proc proc proc", "mount -t tmpfs tmpfs tmp"], 0, {
        "pictures": "SVG only: libcairo.so.2: cannot open shared object file: No such file or directory",
        "Python": "none on PATH", "torch": "none for a Python: there is none on PATH",
        "recording": "one step of tinytrain, 819 events, verified"}),
])
def test_bare_root(tmp_path, mounts, exit_status, expected):
    """No shell, no coreutils, no /dev, and of /proc and /tmp what is mounted."""
    root = bare_root(tmp_path / "root")
    for mount in mounts:
        (root / mount.split()[-1]).mkdir()
    before = everything_in(root)
    script = " && ".join([f"cd {root}", *mounts, "exec /usr/sbin/chroot . /bin/tidemark doctor --json"])
    done = subprocess.run([*in_namespaces("--mount", "--pid", "--fork"), "/bin/sh", "-c", script],
                          capture_output=True, text=True, check=False, timeout=60, env={})
    rows = {row["name"]: row["text"] for row in json.loads(done.stdout)["checks"]}
    assert done.stderr == ""
    assert {name: rows[name] for name in expected} == expected
    assert done.returncode == exit_status
    assert everything_in(root) == before


def test_leaves_nothing(tmp_path):
    """In /tmp, in /dev/shm, in the user's folder and in the one that it is started in."""
    script = (f"mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs -o mode=700 tmpfs {tmp_path} && "
              f"mkdir {tmp_path}/home {tmp_path}/tmp && cd {tmp_path}/home && "
              f"list() {{ find {tmp_path} /dev/shm -printf '%p %s\\n' | sort; }}; before=$(list); "
              f"{BUILD}/tidemark doctor --json; status=$?; [ \"$before\" = \"$(list)\" ] || list >&2; "
              "exit $status")
    done = subprocess.run([*in_namespaces("--mount"), "/bin/sh", "-c", script], capture_output=True,
                          text=True, check=False, timeout=60, env={
                              "PATH": "/usr/bin:/bin", "HOME": f"{tmp_path}/home",
                              "TMPDIR": f"{tmp_path}/tmp"})
    assert (done.returncode, done.stderr) == (0, "")
    rows = {row["name"]: row["text"] for row in json.loads(done.stdout)["checks"]}
    assert rows["recording"] == "one step of tinytrain, 819 events, verified"


# ---- for a bug report

def test_report(machine):
    """A block, without the user's folder."""
    done = machine.doctor("--report", "--python", machine.python("None"))
    lines = done.stdout.splitlines()
    assert lines[0] == lines[-1] == "```" and lines[1].startswith("tidemark 0.")
    assert ", Linux " in lines[2] and ", glibc 2." in lines[2]
    assert "ok      torch           2.11.0 for the CPU, of ~/env/bin/python" in lines
    assert str(machine.folder) not in done.stdout
