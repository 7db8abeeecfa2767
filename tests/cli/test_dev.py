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
        return subprocess.run(["./dev", *arguments], cwd=tree, capture_output=True, text=True, timeout=240, check=False,
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
    assert "    | KeyboardInterrupt\n    | dev: test pytest: interrupted at its limit of 2400 s\n" in done.stderr


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


#: Stand-ins for Debian's tools. apt-get notes what it finds of the policy, and brings what is missing; `here` is the folder
#: of the stand-ins.
APT = """
here=$(dirname "$0")
echo "apt-get $* $(cat "$here/policy-rc.d" 2>/dev/null | tr '\\n' ' ')" >>"$here/said"
[ "$1" = update ] || for name in promtool-elsewhere sshd; do printf '#!/bin/sh\\n' >"$here/$name"; chmod +x "$here/$name"; done
"""
NOTES = 'echo "$(basename "$0") $*" >>"$(dirname "$0")/said"'


def without_two(folder, text):
    """The script, on a machine that lacks the packages with services, and with its policy elsewhere."""
    for before, after in (("promtool\n", "promtool-elsewhere\n"), ("/usr/sbin/sshd\n", f"{folder}/bin/sshd\n"),
                          ("policy=/usr/sbin/policy-rc.d\n", f"policy={folder}/bin/policy-rc.d\n")):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


@pytest.mark.parametrize("has_policy", (False, True))
def test_services_stay_off(run_dev, tmp_path, has_policy):
    """Those of packages that only tests use: nothing is started, and nothing is left that would keep one from starting."""
    script, policy = tmp_path / "tree" / "dev", tmp_path / "bin" / "policy-rc.d"
    script.write_text(without_two(tmp_path, script.read_text(encoding="utf-8")), encoding="utf-8")
    if has_policy:
        policy.write_text("exit 104", encoding="utf-8")
    done = run_dev("test", "pytest", timeout="exit 0", systemctl=NOTES, sudo='exec "$@"', **{"apt-get": APT, "apt-cache": "",
                                                                                          "update-rc.d": NOTES})
    said = (tmp_path / "bin" / "said").read_text(encoding="utf-8").splitlines()
    assert said[1].startswith("apt-get install -y --no-install-recommends prometheus openssh-server ")
    assert said[1].endswith(" exit 104" if has_policy else " #!/bin/sh exit 101 ")
    assert said[2:] == ["systemctl --quiet disable prometheus.service", "systemctl --quiet disable ssh.service ssh.socket"]
    assert policy.exists() == has_policy
    assert "dev: prometheus is for tests, which start their own: its service stays off\n" in done.stderr
    assert "dev: openssh-server is for tests, which start their own: its service stays off\n" in done.stderr
