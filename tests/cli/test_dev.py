# SPDX-License-Identifier: MIT
"""`./dev test` says which suite died, why, and where its log is. The script runs here with
stand-ins for meson, ninja and timeout, which starts pytest. `tools/sum_tests --self-check` has more
ways to die."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
MESON = """
[ "$1" = setup ] || [ -z "$results" ] || { mkdir -p "$3/meson-logs"; echo "$results" >"$3/meson-logs/testlog.json"; }
[ "$1" = setup ] || [ -n "$results" ] || { echo "meson: no such folder"; exit 1; }
"""
RESULTS = '{"name": "tidemark:unit / peak", "result": "OK", "stdout": "[  PASSED  ] 3 test(s)."}'
JUNIT = '<testsuite errors="0" failures="0" skipped="0" tests="4"></testsuite>'


@pytest.fixture(name="run_dev")
def fixture_run_dev(tmp_path):
    tree, bin_folder = tmp_path / "tree", tmp_path / "bin"
    (tree / "tools").mkdir(parents=True)
    bin_folder.mkdir()
    shutil.copy(REPO / "dev", tree / "dev")
    shutil.copy(REPO / "tools" / "sum_tests", tree / "tools" / "sum_tests")

    def run_dev(*arguments, **scripts):
        for name, script in {"meson": MESON, "ninja": "", **scripts}.items():
            (bin_folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            (bin_folder / name).chmod(0o755)
        return subprocess.run(["./dev", *arguments], cwd=tree, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"})

    return run_dev


def test_all_is_well(run_dev):
    done = run_dev("test", "plain", "pytest", meson=f"results='{RESULTS}'{MESON}",
                   timeout=f"echo '4 passed in 1 s'; echo '{JUNIT}' >build/pytest.xml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "7 passed, 0 failed"
    assert "dev: test plain (suite 1 of 2)" in done.stderr
    assert "dev: test pytest (suite 2 of 2)" in done.stderr
    assert "its log is build/logs/plain.log" in done.stderr
    assert "died" not in done.stderr


def test_suites_that_die(run_dev):
    """Without results there is nothing but what they said."""
    done = run_dev("test", "plain", "pytest", timeout='echo "Fatal Python error: Aborted"; ulimit -c 0; kill -ABRT $$')
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 2 failed"
    assert "plain died: exit status 1, no results in build/gcc/meson-logs/testlog.json\n" \
        "build/logs/plain.log ends with:\n    | meson: no such folder\n" in done.stderr
    assert "pytest died: killed by SIGABRT, no results in build/pytest.xml\nbuild/logs/pytest.log ends with:\n" \
        in done.stderr
    assert "    | Fatal Python error: Aborted\n" in done.stderr


def test_limit_of_pytest(run_dev):
    """What had passed by then counts."""
    done = run_dev("test", "pytest", timeout=f"echo 'KeyboardInterrupt'; echo '{JUNIT}' >build/pytest.xml; exit 124")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "4 passed, 1 failed")
    assert "pytest died: ran past its limit\n" in done.stderr
    assert "    | KeyboardInterrupt\n    | dev: test pytest: interrupted at its limit of 1500 s\n" in done.stderr


def test_build_that_fails(run_dev):
    done = run_dev("test", "pytest", ninja="echo 'error: expected ;'; exit 1", timeout="exit 0")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed")
    assert "    | error: expected ;\n    | dev: test pytest: the build failed\n" in done.stderr


@pytest.mark.parametrize("arguments, said", [
    (("test", "nothing"), "there is no suite 'nothing', but: checks plain asan tsan pytest fuzz"),
    (("try",), "try what?"),
])
def test_wrong_words(run_dev, arguments, said):
    done = run_dev(*arguments)
    assert done.returncode == 1
    assert said in done.stderr
