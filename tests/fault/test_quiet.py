# SPDX-License-Identifier: MIT
"""In a program that reports nothing, the library does nothing: no file, no output, no thread."""
import subprocess

import pytest
from fault_kit import has_tidemark

SCRIPTS = {
    "bash": "ls /; gcc --version",
    "pipe": "seq 1 1000 | sort -r | head -n 3; exit 3",
    "fork": "for i in 1 2 3; do (echo $i) & done; wait",
    "python": "/usr/bin/python3 -c 'import subprocess; print(subprocess.run([\"true\"]).returncode)'",
}


def unwatched(watch, script):
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        cwd=watch.folder,
        env=watch.environment(preload=False),
    )
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_preloaded(watch, name):
    before = unwatched(watch, SCRIPTS[name])
    done = watch("bash", "-c", SCRIPTS[name], alone=True, cwd=watch.folder)
    assert (done.returncode, sorted(done.stdout.splitlines()), done.stderr) == before
    assert list(watch.folder.iterdir()) == []
    assert list(watch.rings.iterdir()) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_under_run(watch, name):
    if not has_tidemark():
        pytest.skip("build/tidemark is not built")
    before = unwatched(watch, SCRIPTS[name])
    done = watch("bash", "-c", SCRIPTS[name], cwd=watch.folder)
    assert (done.returncode, sorted(done.stdout.splitlines())) == before[:2]
    assert list(watch.folder.rglob("*.trace")) == []
    assert list(watch.rings.iterdir()) == []


def test_no_thread(watch):
    """Nothing is started before the first event."""
    script = "grep Threads /proc/self/status; ls /proc/self/fd | wc -l"
    done = watch("sh", "-c", script, alone=True)
    assert done.stdout.split() == ["Threads:", "1", unwatched(watch, script)[1][0]]


