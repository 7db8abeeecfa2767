# SPDX-License-Identifier: MIT
"""Completion, by the shells themselves: bash by its function, fish by `complete -C`, zsh in a terminal."""
import os
import shutil
import subprocess
import time

import pytest
from test_golden import environment, shell

#: By these the process of this test is found among those of others.
STEPS = str(900000 + os.getpid() % 90000)
needs = {name: pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed")
         for name in ("zsh", "fish", "tmux")}


@pytest.fixture(scope="module", name="place")
def fixture_place(tmp_path_factory):
    """A folder with a run and other files."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "train.tmk").mkdir()
    (folder / "results").mkdir()
    for name in ("train.py", "oom.pickle", "one.trace"):
        (folder / name).touch()
    return folder


@pytest.fixture(scope="module", name="pid")
def fixture_pid(place):
    """The PID of a process that is recorded."""
    line = ["tidemark", "run", "-q", "-o", "live.tmk", "--", "tinytrain", "--steps", STEPS, "--quiet"]
    with subprocess.Popen(line, cwd=place, env=environment(), start_new_session=True) as run:
        try:
            end = time.monotonic() + 15
            own = []
            while not own and time.monotonic() < end:
                assert run.poll() is None
                own = [line for line in shell("tidemark completion pids", place).stdout.splitlines() if STEPS in line]
            yield own[0].split("\t")
        finally:
            run.terminate()
    shutil.rmtree(place / "live.tmk")


def bash(words, place, setup=""):
    """What bash offers for the last of `words`, which are as readline breaks them."""
    script = (f'eval "$(tidemark completion bash)"; {setup} COMP_WORDS=({words}); '
              'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tidemark; printf "%s\\n" "${COMPREPLY[@]}"')
    done = shell(script, place)
    assert not done.stderr
    return sorted(set(done.stdout.split("\n")) - {""})


@pytest.mark.parametrize("words,offers", [
    ("tidemark re", ["report"]),
    ("tidemark --v", []),
    ("tidemark --lang z", ["zh"]),
    ("tidemark --lang zh pe", ["peak"]),
    ("tidemark peak --b", ["--by"]),
    ("tidemark peak --by st", ["stack", "stage", "step"]),
    ("tidemark peak --by = st", ["stack", "stage", "step"]),
    ("tidemark peak --by stack t", ["train.tmk"]),
    ("tidemark peak --at ''", []),
    ("tidemark peak train.tmk r", []),
    ("tidemark diff train.tmk t", ["train.tmk"]),
    ("tidemark report --format ''", ["csv", "html", "json", "line", "md", "text"]),
    ("tidemark completion z", ["zsh"]),
    ("tidemark help do", ["doctor"]),
    ("tidemark check t", ["train.tmk"]),
    ("tidemark check o", ["one.trace"]),
    ("tidemark check re", ["results"]),
    ("tidemark import oo", ["oom.pickle"]),
    ("tidemark run --m", ["--max-size"]),
    ("tidemark run -o t", ["train.tmk"]),
    ("tidemark oom --mo", ["--monitor"]),
    ("tidemark run -- tinytra", ["tinytrain"]),
    ("tidemark run -q tinytra", ["tinytrain"]),
    ("tidemark run -- tinytrain tr", ["train.py", "train.tmk"]),
    ("tidemark tables alloc", ["allocations"]),
    ("tidemark export train.tmk --table alloc", ["allocations"]),
])
def test_bash(words, offers, place):
    if words == "tidemark --v":
        offers = ["--version"]
    found = bash(words, place)
    assert [word for word in found if word != "tinytrain.p"] == offers


def test_bash_pids(place, pid):
    number, command = pid
    assert command.startswith(f"tinytrain --steps {STEPS}")
    for line in ("detach", "eval", "report", "monitor --follow --process"):
        assert number in bash(f"tidemark {line} {number[:-1]}", place)
    assert bash("tidemark detach 1x", place) == []
    # A second one, so that there is a list.
    two = "tidemark() { command tidemark \"$@\"; printf '1%s\\tpython a.py\\n' 7 7; }; COMP_TYPE=63;"
    assert "17  python a.py" in bash("tidemark detach ''", place, two)


def test_bash_program_of_its_own(place):
    """Where bash-completion is loaded, the program's own completion is asked."""
    setup = "_command_offset() { COMPREPLY=(\"offset$1\"); };"
    assert bash("tidemark run -q -o x -- git st", place, setup) == ["offset6"]
    assert bash("tidemark run -q git st", place, setup) == ["offset3"]


def test_bash_is_clean(tmp_path):
    (tmp_path / "tidemark").write_text(shell("tidemark completion bash", tmp_path).stdout, encoding="utf-8")
    subprocess.run(["bash", "-n", "tidemark"], cwd=tmp_path, check=True)
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", "-s", "bash", "tidemark"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.stdout == ""


# ---- fish

def fish(line, place):
    """What fish offers, with what it says of each."""
    done = subprocess.run(["fish", "--no-config", "-c", f"tidemark completion fish | source; complete -C '{line}'"],
                          cwd=place, env={**environment(), "HOME": str(place)}, text=True, capture_output=True, check=False)
    assert not done.stderr
    return dict((line.split("\t") + [""])[:2] for line in done.stdout.splitlines())


@needs["fish"]
def test_fish(place, pid):
    number, command = pid
    assert fish("tidemark pe", place) == {"peak": "Show what was live at the peak of memory"}
    assert list(fish("tidemark peak --by st", place)) == ["stack", "stage", "step"]
    assert list(fish("tidemark peak --fo", place)) == []
    assert "train.tmk/" in fish("tidemark peak tr", place)
    assert fish("tidemark detach ", place)[number] == command
    assert list(fish("tidemark tables alloc", place)) == ["allocations"]
    assert "oom.pickle" in fish("tidemark import oo", place)
    assert "tinytrain" in fish("tidemark run -- tinytra", place)
    assert "tinytrain" in fish("tidemark run tinytra", place)
    assert "train.py" in fish("tidemark run -- cat tr", place)
    assert list(fish("tidemark --lang z", place)) == ["zh"]


# ---- zsh

class Zsh:
    """A zsh in a terminal of its own."""

    def __init__(self, place):
        self.tmux = ["tmux", "-S", str(place / "tmux"), "-f", "/dev/null"]
        self.env = {**environment(), "ZDOTDIR": str(place), "PS1": "> "}
        self.call("new-session", "-d", "-x", "120", "-y", "40", "zsh", "-f")
        self.call("send-keys", "-l", "cd . && PS1='%# ' && autoload -Uz compinit && compinit -u -D && "
                  "source <(tidemark completion zsh) && echo rea''dy")
        self.call("send-keys", "Enter")
        self.wait(lambda text: "ready" in text.splitlines())

    def call(self, *words):
        return subprocess.run([*self.tmux, *words], env=self.env, text=True, capture_output=True, check=True).stdout

    def wait(self, is_there):
        end = time.monotonic() + 15
        while not is_there(text := self.call("capture-pane", "-p")):
            assert time.monotonic() < end, text
            time.sleep(0.02)
        return text

    def offers(self, line, *wanted):
        """Type the line and a tab; wait until all that is wanted is on the screen."""
        self.call("send-keys", "C-u", "C-l")
        self.call("send-keys", "-l", line + "\t")
        return self.wait(lambda text: all(word in text for word in wanted))


@needs["zsh"]
@needs["tmux"]
def test_zsh(place, pid, monkeypatch):
    number, command = pid
    monkeypatch.chdir(place)
    zsh = Zsh(place)
    try:
        zsh.offers("tidemark pea", "tidemark peak")
        zsh.offers("tidemark p", "-- Show what was live at the peak of memory", "-- List the processes that are being recorded")
        zsh.offers("tidemark peak --by st", "stack  stage  step")
        zsh.offers("tidemark check t", "tidemark check train.tmk/")
        zsh.offers(f"tidemark detach {number[:-1]}", number)
        zsh.offers("tidemark report ", "train.tmk", command)
        zsh.offers("tidemark tables alloc", "tidemark tables allocations")
        zsh.offers("tidemark import oo", "tidemark import oom.pickle")
        zsh.offers("tidemark run -q -- mktem", "tidemark run -q -- mktemp")
        zsh.offers("tidemark run -- cat train.p", "tidemark run -- cat train.py")
        zsh.offers("tidemark plot -", "--theme", "-- light (default) or dark")
    finally:
        zsh.call("kill-server")


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_script_is_good(name, tmp_path):
    """The shell itself finds nothing wrong."""
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    checked = subprocess.run([name, "-n"], input=shell(f"tidemark completion {name}", tmp_path).stdout, text=True,
                             capture_output=True, check=False)
    assert checked.returncode == 0 and not checked.stderr

