# SPDX-License-Identifier: MIT
"""tidemark_build - how pip builds tidemark: the hooks of PEP 517 and PEP 660.

    pip install .                     compile in a temporary folder, pack a wheel, install it
    pip install -e .                  compile in build/, as ./dev build does; the package stays in python/
    python3 tools/tidemark_build.py BUILD_DIR WHEEL_DIR TAG    a wheel of what BUILD_DIR has (./dev package)

A wheel is the Python package with the C programs and the library inside it, in folders as under a PREFIX, so
that the program finds its library in ../lib and the package both in itself. No C is compiled against Python,
so one wheel serves every Python 3.

Standard library only, so that nothing has to be fetched: neither setuptools nor meson-python is asked for, and
Debian's meson and ninja are used where there are any (else pip is told to bring them). Settings, given to pip
as --config-settings KEY=VALUE: build-dir, a meson folder to use instead of a temporary one; platform-tag.
"""
import base64
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.search(r"^ *version: '(.*)',$", (ROOT / "meson.build").read_text(encoding="utf-8"), re.M)[1]
NAME = f"tidemark-{VERSION}"
#: Of what `meson install` puts under the prefix, what goes into the package.
BUILT = ("bin/tidemark", "bin/tinytrain", "lib/libtidemark.so", "include/tidemark/tidemark.h")
#: Of the same, what pip puts under the environment's own prefix: where man and the shells look.
SHARED = ("share/man", "share/bash-completion", "share/zsh", "share/fish")
SETTINGS = ("build-dir", "platform-tag")
EXTRAS = {
    "torch": ["torch>=1.13"],
    "lora": ["torch>=1.13", "transformers", "peft"],
    "privacy": ["torch>=1.13", "opacus"],
    "pytest": ["pytest>=7"],
}
ENTRY_POINTS = """[console_scripts]
tidemark = tidemark.__main__:main

[pytest11]
tidemark = tidemark_pytest
"""


class CannotBuild(SystemExit):
    """What is wrong and what to do, without a traceback above it."""


# ---- what the package is called and needs

def metadata():
    lines = ["Metadata-Version: 2.1", "Name: tidemark", f"Version: {VERSION}",
             "Summary: What fills the memory of a training: every allocation recorded, peaks, leaks and OOMs explained",
             "License: MIT", "License-File: LICENSE", "Requires-Python: >=3.9",
             "Classifier: License :: OSI Approved :: MIT License", "Classifier: Operating System :: POSIX :: Linux",
             "Classifier: Programming Language :: C", "Classifier: Programming Language :: Python :: 3"]
    for extra, packages in EXTRAS.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {package}; extra == "{extra}"' for package in packages]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / "README.md").read_text(encoding="utf-8")]
    return "\n".join(lines)


def platform_tag():
    return re.sub(r"[-.]", "_", sysconfig.get_platform())


def dist_info(tag):
    """{name in the wheel: bytes}, but for RECORD."""
    wheel = f"Wheel-Version: 1.0\nGenerator: tidemark_build\nRoot-Is-Purelib: false\nTag: {tag}\n"
    return {f"{NAME}.dist-info/{name}": text.encode() for name, text in {
        "METADATA": metadata(), "WHEEL": wheel, "entry_points.txt": ENTRY_POINTS,
        "licenses/LICENSE": (ROOT / "LICENSE").read_text(encoding="utf-8")}.items()}


def setting(settings, key):
    unknown = set(settings or {}) - set(SETTINGS)
    if unknown:
        raise CannotBuild(f"tidemark: no such setting: {', '.join(sorted(unknown))}; there are {', '.join(SETTINGS)}")
    return (settings or {}).get(key)


# ---- compiling

def environment():
    """One in which meson and ninja start, or None. pip's isolation hides the modules of the system's Python, meson's
    among them, from every Python that is started with its PYTHONPATH."""
    as_it_is = dict(os.environ)
    for env in (as_it_is, {name: value for name, value in as_it_is.items() if name != "PYTHONPATH"}):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            for tool in ("meson", "ninja"):
                subprocess.run([tool, "--version"], env=env, check=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
            return env
    return None


def run(*command, env):
    """What it says goes to stderr: stdout is the caller's."""
    print("+", *command, file=sys.stderr, flush=True)
    if subprocess.run(command, cwd=ROOT, env=env, stdout=sys.stderr, check=False).returncode != 0:
        raise CannotBuild(f"tidemark: `{command[0]} {command[1]}` failed; what it said stands above. On Debian and Ubuntu "
                          f"`./dev build` installs what a build needs: run it once in {ROOT}, then try again.")


def compile_in(folder, *options):
    """Configure, unless it is, and compile; the environment that this took."""
    env = environment()
    if env is None:
        raise CannotBuild("tidemark: meson and ninja are needed to build. On Debian and Ubuntu `./dev build` installs them; "
                          "elsewhere: pip install meson ninja")
    if not (folder / "build.ninja").exists():
        run("meson", "setup", str(folder), *options, env=env)
    run("ninja", "-C", str(folder), env=env)
    return env


def installed(folder, into, env):
    """What `meson install` makes of a compiled folder: the prefix, below `into`."""
    run("meson", "install", "-C", str(folder), "--no-rebuild", "--quiet", "--destdir", str(into), env=env)
    options = json.loads((folder / "meson-info/intro-buildoptions.json").read_text(encoding="utf-8"))
    prefix = next(option["value"] for option in options if option["name"] == "prefix")
    return into / prefix.lstrip("/")


# ---- packing

def package_files():
    """The Python files: {name in the wheel: path}."""
    found = [path for path in (ROOT / "python").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(ROOT / "python").as_posix(): path for path in sorted(found)}


def timestamp():
    """Of the files in a wheel; the format begins in 1980."""
    now = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return max(time.gmtime(now)[:6], (1980, 1, 1, 0, 0, 0))


def write_wheel(folder, tag, files):
    """A wheel of {name: path or bytes}; its file name."""
    files = {**files, **dist_info(tag)}
    when, record = timestamp(), []
    name = f"{NAME}-{tag}.whl"
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        def put(entry, data, mode=0o644):
            info = zipfile.ZipInfo(entry, when)
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, data)

        for entry, source in files.items():
            data = source if isinstance(source, bytes) else source.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{entry},sha256={digest},{len(data)}\n")
            put(entry, data, 0o755 if "/bin/" in entry or entry.endswith(".so") else 0o644)
        put(f"{NAME}.dist-info/RECORD", "".join([*record, f"{NAME}.dist-info/RECORD,,\n"]))
    return name


def wheel_of(build, wheel_directory, tag, *options):
    """Compile in the folder `build` and pack what comes of it."""
    env = compile_in(build, *options)
    with tempfile.TemporaryDirectory(prefix="tidemark-install-") as place:
        prefix = installed(build, Path(place), env)
        built = {f"tidemark/{name}": prefix / name for name in BUILT}
        for path in sorted(path for folder in SHARED for path in (prefix / folder).rglob("*") if path.is_file()):
            built[f"{NAME}.data/data/{path.relative_to(prefix).as_posix()}"] = path
        return write_wheel(wheel_directory, f"py3-none-{tag}", {**package_files(), **built})


# ---- the hooks

def get_requires_for_build_wheel(config_settings=None):
    """Those of meson and ninja that are not here."""
    return [] if environment() else ["meson>=0.61", "ninja"]


def get_requires_for_build_editable(config_settings=None):
    """None: build/ stays, and must not need a meson that is gone when pip has ended."""
    return []


get_requires_for_build_sdist = get_requires_for_build_editable


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    tag = f"py3-none-{setting(config_settings, 'platform-tag') or platform_tag()}"
    for name, data in dist_info(tag).items():
        path = Path(metadata_directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return f"{NAME}.dist-info"


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tag = setting(config_settings, "platform-tag") or platform_tag()
    named = setting(config_settings, "build-dir")
    if named:
        return wheel_of(ROOT / named, wheel_directory, tag)
    with tempfile.TemporaryDirectory(prefix="tidemark-build-") as folder:
        return wheel_of(Path(folder), wheel_directory, tag, "--prefix=/", "-Dstrip=true")


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    compile_in(ROOT / "build")  # where the package in python/ looks
    link = f"{ROOT / 'python'}\n".encode()
    return write_wheel(wheel_directory, f"py3-none-{platform_tag()}", {"tidemark.pth": link})


def source_files():
    """What git knows, or, where there is no git, all but what a build makes."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return sorted(str(path) for path in found
                  if path.parts[0] not in ("build", ".git") and "__pycache__" not in path.parts)


def build_sdist(sdist_directory, config_settings=None):
    name = f"{NAME}.tar.gz"
    with tarfile.open(Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in source_files():
            if path != "PKG-INFO":
                archive.add(ROOT / path, f"{NAME}/{path}")
        data = metadata().encode()
        about = tarfile.TarInfo(f"{NAME}/PKG-INFO")
        about.size, about.mtime = len(data), int(time.time())
        archive.addfile(about, io.BytesIO(data))
    return name


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(wheel_of(Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]))
