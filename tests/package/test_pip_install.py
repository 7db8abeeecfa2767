# SPDX-License-Identifier: MIT
"""Installed by pip into a fresh environment, without a network: the package, its programs, and what pytest finds.

The folder that is packed is the suite's own build, not to compile all of it once more.
"""
import base64
import csv
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TIDEMARK_BUILD", REPO / "build"))
PYTHON = "/usr/bin/python3"  # the one that has pip, pytest and torch
LIMIT_S = 100


def environment(**more):
    ours = ("LD_PRELOAD", "PYTHONPATH", "PIP_", "TIDEMARK")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**env, "PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1",
            "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **more}


def run(*command, status=0, cwd=None, **more):
    """What it prints, and what it says."""
    done = subprocess.run([str(word) for word in command], env=environment(**more), cwd=cwd, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, done.stderr


def backend(code, cwd, **more):
    """Python code with the build backend in it, as pip would import it."""
    return run(PYTHON, "-c", "import tidemark_build as b\n" + code, cwd=cwd, PYTHONPATH=str(REPO / "tools"), **more)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A fresh environment with tidemark in it; of the system's packages it sees pytest and torch."""
    folder = tmp_path_factory.mktemp("pip") / "venv"
    run(PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", folder)
    run(PYTHON, "-m", "pip", "--python", folder / "bin/python", "install", "--no-build-isolation", "--no-cache-dir",
        "--config-settings", f"build-dir={BUILD}", REPO)
    return folder


@pytest.fixture
def rings(tmp_path):
    folder = tmp_path / "rings"
    folder.mkdir()
    return str(folder)


def packages_of(place):
    (folder,) = (place / "lib").glob("python3*/site-packages")
    return folder


# ---- what is installed

def test_the_program(place, tmp_path):
    """pip's command and `python -m` are the program; neither is recorded."""
    version = run(BUILD / "tidemark", "--version")
    assert run(place / "bin/tidemark", "--version", cwd=tmp_path) == version
    assert run(place / "bin/python", "-m", "tidemark", "--version", cwd=tmp_path) == version
    assert list(tmp_path.iterdir()) == []
    run(place / "bin/tidemark", "no-such-command", status=2)


def test_the_program_finds_its_parts(place, tmp_path, rings):
    """Its library, and the training that its doctor records."""
    inner = packages_of(place) / "tidemark"
    doctor = run(place / "bin/tidemark", "doctor", cwd=tmp_path, TIDEMARK_RING_DIR=rings)[0]
    assert re.search(rf"^ok +library +{re.escape(str(inner / 'lib/libtidemark.so'))}$", doctor, re.M)
    assert re.search(r"^ok +recording +one step of tinytrain, .* verified$", doctor, re.M)
    assert (inner / "include/tidemark/tidemark.h").read_bytes() == (REPO / "include/tidemark/tidemark.h").read_bytes()


def test_watched_job_sees_nothing_of_python(place, tmp_path, rings):
    """Neither the signals that Python ignores nor the locale that it sets: it started the program, no more."""
    code = "grep SigIgn /proc/self/status; echo ${LC_CTYPE-none}"
    alone = subprocess.run(["sh", "-c", code], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=True)
    assert alone.stdout.endswith("\nnone\n")
    for command in ([place / "bin/tidemark"], [place / "bin/python", "-m", "tidemark"]):
        done = subprocess.run([*command, "run", "-q", "-o", tmp_path / "a.tmk", "--", "sh", "-c", code], capture_output=True,
                              text=True, env={"PATH": "/usr/bin:/bin", "TIDEMARK_RING_DIR": rings}, check=False)
        assert (done.returncode, done.stdout) == (0, alone.stdout), done.stderr


def test_import_records(place, tmp_path, rings):
    out = run(place / "bin/python", "-c", "import tidemark; tidemark.step(); print(tidemark.is_watched(), "
              "tidemark._library.find(), tidemark._library.program())", cwd=tmp_path, TIDEMARK_RING_DIR=rings)[0]
    inner = packages_of(place) / "tidemark"
    assert out.split() == ["True", str(inner / "lib/libtidemark.so"), str(inner / "bin/tidemark")]
    (folder,) = tmp_path.glob("*.tmk")
    assert re.fullmatch(r"python-\d{8}-\d{6}[.]tmk", folder.name)


def test_what_pip_knows(place):
    (found,) = importlib.metadata.distributions(name="tidemark", path=[str(packages_of(place))])
    assert run(BUILD / "tidemark", "--version")[0].splitlines()[0] == f"tidemark {found.version}"
    assert run(place / "bin/python", "-c", "import tidemark; print(tidemark.__version__)",
               TIDEMARK="0")[0] == f"{found.version}\n"
    assert found.metadata["Requires-Python"] == ">=3.9"
    assert found.metadata.get_all("Provides-Extra") == ["torch", "lora", "privacy", "pytest"]
    assert [line for line in found.requires if "lora" in line] == [
        'torch>=1.13; extra == "lora"', 'transformers; extra == "lora"', 'peft; extra == "lora"']
    assert all("extra ==" in line for line in found.requires)
    assert {(entry.group, entry.name) for entry in found.entry_points} == {
        ("console_scripts", "tidemark"), ("pytest11", "tidemark")}


def test_requirements(place):
    """What they resolve to, in an environment of pip's that hides the system's modules, meson's among them."""
    out = run(PYTHON, "-m", "pip", "--python", place / "bin/python", "install", "--dry-run", "--force-reinstall",
              "-r", "requirements.txt", cwd=REPO)[0]
    (version,) = re.findall("^Would install (.*)$", out, re.M)
    assert version == run(BUILD / "tidemark", "--version")[0].splitlines()[0].replace(" ", "-")


# ---- pytest

TESTS = """
import sys
import pytest
import torch

@pytest.mark.limit_gpu_memory("2 MiB")
def test_too_much():
    torch.empty(3 << 20, dtype=torch.uint8)

def test_peak(gpu_memory):
    torch.empty(5 << 20, dtype=torch.uint8)
    assert 5 << 20 <= gpu_memory.peak < 6 << 20
"""
OTHER_TESTS = """
import sys

def test_nothing_is_recorded():
    assert "tidemark_pytest" in sys.modules and "tidemark" not in sys.modules

def test_import_records():
    import tidemark
    assert tidemark.is_watched()
"""


def test_pytest_finds_it(place, tmp_path, rings):
    (tmp_path / "test_budgets.py").write_text(TESTS)
    out = run(place / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", "test_budgets.py",
              cwd=tmp_path, status=1, TIDEMARK_RING_DIR=rings, TMPDIR=str(tmp_path))[0]
    assert "\n3.0 MiB allocated on cpu at the peak, 1.0 MiB more than the budget of 2.0 MiB\n" in out
    assert "1 failed, 1 passed" in out


def test_other_tests_are_left_alone(place, tmp_path, rings):
    (tmp_path / "test_others.py").write_text(OTHER_TESTS)
    out = run(place / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", "test_others.py",
              cwd=tmp_path, TIDEMARK_RING_DIR=rings)[0]
    assert "2 passed" in out
    assert "limit_gpu_memory(size)" in run(place / "bin/python", "-m", "pytest", "--markers", cwd=tmp_path)[0]


# ---- wheels

def check_record(wheel):
    """Each file stands in RECORD, with its hash; its modes by name."""
    names = set(wheel.namelist())
    (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
    for name, digest, size in csv.reader(wheel.read(record).decode().splitlines()):
        names.remove(name)
        if name != record:
            data = wheel.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={found}", len(data)), name
    assert names == set()
    return {info.filename: info.external_attr >> 16 & 0o777 for info in wheel.infolist()}


def test_wheel(tmp_path):
    """As ./dev package makes it: named by what it needs, and the same bytes each time."""
    made = []
    for folder in (tmp_path / "1", tmp_path / "2"):
        folder.mkdir()
        name = run(PYTHON, REPO / "tools/tidemark_build.py", BUILD, folder, "manylinux_2_34_x86_64",
                   SOURCE_DATE_EPOCH="1700000000")[0].strip()
        made.append((folder / name).read_bytes())
    assert re.fullmatch(r"tidemark-[\d.]+-py3-none-manylinux_2_34_x86_64[.]whl", name)
    assert made[0] == made[1]
    with zipfile.ZipFile(folder / name) as wheel:
        modes = check_record(wheel)
        (about,) = (wheel.read(entry).decode() for entry in modes if entry.endswith("/WHEEL"))
    assert "\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_34_x86_64\n" in about
    assert {entry for entry, mode in modes.items() if mode == 0o755} == {
        "tidemark/bin/tidemark", "tidemark/bin/tinytrain", "tidemark/lib/libtidemark.so"}
    sources = {path.relative_to(REPO / "python").as_posix() for path in (REPO / "python").rglob("*.py")}
    assert {entry for entry in modes if entry.endswith(".py")} == sources


def test_editable(tmp_path):
    name = backend("print(b.build_editable('.'))", tmp_path)[0].strip()
    with zipfile.ZipFile(tmp_path / name) as wheel:
        check_record(wheel)
        assert wheel.read("tidemark.pth").decode() == f"{REPO / 'python'}\n"


def test_source_archive(tmp_path):
    """It is enough to build from, and has nothing that was built."""
    name = backend("print(b.build_sdist('.'))", tmp_path)[0].strip()
    with tarfile.open(tmp_path / name) as archive:
        top = {member.split("/")[1] for member in archive.getnames()}
    assert {"PKG-INFO", "pyproject.toml", "meson.build", "meson_options.txt", "src", "include", "python", "tools",
            "README.md", "LICENSE"} <= top
    assert not top & {"build", ".git"}


# ---- what is missing

def test_without_meson(tmp_path):
    """pip is asked to bring it; where it cannot, the reason says what to do."""
    nothing = str(tmp_path)
    assert backend("print(b.get_requires_for_build_wheel())", tmp_path, PATH=nothing)[0] == "['meson>=0.61', 'ninja']\n"
    said = backend("b.build_wheel('.')", tmp_path, status=1, PATH=nothing)[1]
    assert said == ("tidemark: meson and ninja are needed to build. On Debian and Ubuntu `./dev build` installs them; "
                    "elsewhere: pip install meson ninja\n")


def test_failed_build(tmp_path):
    said = backend(f"b.build_wheel('.', {{'build-dir': {str(tmp_path / 'a')!r}}})", tmp_path, status=1, CC="false")[1]
    assert said.endswith("`meson setup` failed; what it said stands above. On Debian and Ubuntu `./dev build` installs what "
                         f"a build needs: run it once in {REPO}, then try again.\n")


def test_unknown_setting(tmp_path):
    said = backend("b.build_wheel('.', {'builddir': 'x'})", tmp_path, status=1)[1]
    assert said == "tidemark: no such setting: builddir; there are build-dir, platform-tag\n"


def test_package_without_its_parts(tmp_path):
    """Said with what to do; the command that pip installed is not taken for the program, which would never end."""
    shutil.copytree(REPO / "python/tidemark", tmp_path / "alone/tidemark")
    script = tmp_path / "bin/tidemark"
    script.parent.mkdir()
    script.write_text(f"#!{PYTHON}\nfrom tidemark.__main__ import main\nmain()\n")
    script.chmod(0o755)
    for command in ([script], [PYTHON, "-m", "tidemark"]):
        said = run(*command, status=1, cwd=tmp_path, PATH=str(script.parent), PYTHONPATH=str(tmp_path / "alone"))[1]
        assert said.startswith("tidemark: tidemark is not found. In a source tree run ./dev build, or install the package "
                               "again: pip install . there, or pip install the wheel; or set TIDEMARK_PROGRAM to its path. ")
        assert said.endswith(f", {script}\n")
    assert not list(tmp_path.glob("*.tmk"))


@pytest.mark.parametrize("variable", ["TIDEMARK_LIBRARY", "TIDEMARK_LIB"])
def test_library_named_wrongly(tmp_path, variable):
    """Another is not taken in its stead; the program goes on."""
    out, said = run(PYTHON, "-c", "import tidemark; print(tidemark.is_watched())", cwd=tmp_path,
                    PYTHONPATH=str(REPO / "python"), **{variable: "/nowhere/libtidemark.so"})
    assert out == "False\n"
    assert f"tidemark does not record: {variable} says /nowhere/libtidemark.so, but there is no such file" in said


def test_program_named(tmp_path):
    code = "import os; os.environ['TIDEMARK'] = '0'; from tidemark import _library as l; print(l.program())"
    wanted = BUILD / "tinytrain"
    assert run(PYTHON, "-c", code, cwd=tmp_path, PYTHONPATH=str(REPO / "python"),
               TIDEMARK_PROGRAM=str(wanted))[0] == f"{os.path.realpath(wanted)}\n"
    said = run(PYTHON, "-m", "tidemark", cwd=tmp_path, status=1, PYTHONPATH=str(REPO / "python"),
               TIDEMARK_PROGRAM="/nowhere")[1]
    assert said == ("tidemark: TIDEMARK_PROGRAM says /nowhere, but there is no such file; set it to the right path, or not at "
                    "all\n")
