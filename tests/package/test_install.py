# SPDX-License-Identifier: MIT
"""`./dev install` and `./dev uninstall` in a PREFIX of their own: what is there, that man and the shells find it, and that
what is not ours stays."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
LIMIT_S = 240


def dev(verb, prefix, status=0, **more):
    done = subprocess.run(["./dev", verb], cwd=REPO, text=True, capture_output=True, timeout=LIMIT_S, check=False,
                          env={**os.environ, "PREFIX": str(prefix), **{name: str(value) for name, value in more.items()}})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def shell(line, prefix, *command):
    """Run a line in a shell that has only the PREFIX besides the system."""
    env = {"PATH": f"{prefix}/bin:/usr/bin:/bin", "HOME": str(prefix), "TERM": "xterm", "MANPAGER": "cat", "LANG": "C.UTF-8"}
    return subprocess.run([*(command or ("bash", "-c")), line], cwd=prefix, env=env, text=True, capture_output=True,
                          timeout=60, check=True).stdout


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture(scope="module", name="prefix")
def fixture_prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("install") / "prefix"
    said = dev("install", folder)
    assert f"{folder}/bin/tidemark " in said and f"now try:\n  {folder}/bin/tidemark demo\n" in said
    return folder


def test_all_is_there(prefix):
    there = files_below(prefix)
    assert {"bin/tidemark", "bin/tinytrain", "lib/libtidemark.so", "include/tidemark/tidemark.h", "share/doc/tidemark/LICENSE",
            "share/doc/tidemark/docs/install.md", "lib/tidemark/python/tidemark/__init__.py"} <= there
    assert there == {line for line in (prefix / "share/tidemark/manifest").read_text().splitlines() if line[-1] != "/"}
    assert os.access(prefix / "bin/tidemark", os.X_OK) and not os.access(prefix / "share/man/man1/tidemark.1", os.X_OK)


def test_a_page_for_every_command(prefix):
    """share/meson.build lists the commands once more: here it is compared with the program."""
    overview = shell("tidemark --help", prefix)
    commands = re.findall(r"^  ([a-z]+) ", overview, re.M)
    pages = {path.name for path in (prefix / "share/man/man1").iterdir()}
    assert pages == {"tidemark.1"} | {f"tidemark-{name}.1" for name in commands if name != "tidemark"}


def test_man_finds_it(prefix):
    """By the PATH alone."""
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    assert shell("man -w tidemark-run", prefix) == f"{prefix}/share/man/man1/tidemark-run.1\n"
    assert "show what uses GPU memory" in shell("man tidemark", prefix)


def test_shells_find_it(prefix):
    loader = Path("/usr/share/bash-completion/bash_completion")
    if not loader.exists():
        pytest.skip("bash-completion is not installed")
    asked = ('. /usr/share/bash-completion/bash_completion; XDG_DATA_HOME=share; __load_completion tidemark; '
             'COMP_WORDS=(tidemark pea); COMP_CWORD=1; _tidemark; echo "${COMPREPLY[@]}"')
    assert shell(asked, prefix) == "peak\n"
    if shutil.which("fish"):
        (prefix / "data").mkdir()
        os.symlink(prefix / "share/fish", prefix / "data/fish")
        line = 'set -gx XDG_DATA_HOME $HOME/data; fish -c "complete -C \'tidemark pea\'"'
        found = shell(line, prefix, "fish", "-c")
        shutil.rmtree(prefix / "data")
        for left in (".config", ".cache", ".local"):
            shutil.rmtree(prefix / left, ignore_errors=True)
        assert found.startswith("peak\t")


def test_it_runs(prefix):
    shell("tidemark run -q -o \"$HOME/a.tmk\" -- tinytrain --steps 2 --quiet", prefix)
    assert "tidemark" in shell("PYTHONPATH=$HOME/lib/tidemark/python TIDEMARK=0 /usr/bin/python3 -B -c "
                               "'import tidemark; print(tidemark.__name__)'", prefix)
    shutil.rmtree(prefix / "a.tmk")


def test_again_and_away(prefix):
    """Files of an older version go, a program that runs keeps its file, and what is not ours stays."""
    manifest, before = prefix / "share/tidemark/manifest", files_below(prefix)
    (prefix / "lib/tidemark/old.py").touch()
    with manifest.open("a", encoding="utf-8") as out:
        out.write("lib/tidemark/old.py\n../outside\n/etc/passwd-of-nobody\n")
    (prefix.parent / "outside").touch()
    (prefix / "bin/theirs").touch()
    inode = (prefix / "lib/libtidemark.so").stat().st_ino
    with (prefix / "lib/libtidemark.so").open("rb") as held:
        dev("install", prefix)
        assert os.fstat(held.fileno()).st_ino == inode != (prefix / "lib/libtidemark.so").stat().st_ino
    assert files_below(prefix) == before | {"bin/theirs"}
    (prefix / "lib/tidemark/python/tidemark/__pycache__").mkdir()
    (prefix / "lib/tidemark/python/tidemark/__pycache__/x.cpython-311.pyc").touch()
    said = dev("uninstall", prefix)
    assert f"{prefix}/bin/ stays: it has files that are not ours" in said
    assert {path.relative_to(prefix).as_posix() for path in prefix.rglob("*")} == {"bin", "bin/theirs"}
    assert (prefix.parent / "outside").exists()
    assert "nothing to remove" in dev("uninstall", prefix)


def test_destdir(tmp_path):
    """For packagers: all of it below DESTDIR, and folders that were there stay."""
    (tmp_path / "usr/share").mkdir(parents=True)
    dev("install", "/usr", DESTDIR=tmp_path)
    assert {"usr/bin/tidemark", "usr/share/man/man1/tidemark.1", "usr/share/tidemark/manifest"} <= files_below(tmp_path)
    dev("uninstall", "/usr", DESTDIR=tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")} == {"usr", "usr/share"}


@pytest.mark.parametrize("prefix,said", [("here", "PREFIX is an absolute path"), ("/tmp/a prefix", "no space and no colon")])
def test_no_prefix(prefix, said):
    assert said in dev("install", prefix, status=1)
