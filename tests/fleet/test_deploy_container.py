# SPDX-License-Identifier: MIT
"""deploy/container: what the recipe copies is in the package, and in a root that has only that and glibc the
agent starts as the recipe says, and its health check tells whether it answers."""
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from agent_kit import LIMIT_S, REPO, wait_for
from deploy_kit import VERSION, install, needs_root, run

TEXT = (REPO / "deploy" / "container" / "Containerfile").read_text(encoding="utf-8")
UP = 'ip link set lo up && mount --bind /proc "$0/proc" && exec "$@"'


@pytest.fixture(name="recipe", scope="module")
def recipe_fixture():
    """[(instruction, arguments)], lines joined."""
    lines = re.sub(r"^#.*\n", "", TEXT, flags=re.M).replace("\\\n", "")
    return [tuple(line.split(maxsplit=1)) for line in lines.splitlines() if line]


def arguments_of(recipe, instruction):
    found = [rest for word, rest in recipe if word == instruction]
    assert len(found) == 1, instruction
    return found[0]


@pytest.fixture(name="root")
def root_fixture(recipe, place):
    """The image's files: those copied, and what the dynamic linker wants."""
    package, root = install(place / "package"), place / "root"
    (root / "proc").mkdir(parents=True)
    for word, rest in recipe:
        if word == "COPY":
            source, target = rest.split()
            copy = shutil.copytree if (package / source).is_dir() else shutil.copy
            (root / target[1:]).parent.mkdir(parents=True, exist_ok=True)
            copy(package / source, root / target[1:])
    needed = run("ldd", root / "opt/tidemark/bin/tidemark").stdout
    for path in re.findall(r"(/\S+) \(0x", needed):
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])
    return root


def test_sources_are_in_the_package(recipe, place):
    package = install(place / "package")
    sources = [rest.split()[0] for word, rest in recipe if word == "COPY"]
    assert sources == ["bin", "lib", "share", "LICENSE"]
    assert [source for source in sources if not (package / source).exists()] == []
    dev = (REPO / "dev").read_text(encoding="utf-8")
    assert 'cp -R docs README.md README.zh.md LICENSE "$root"' in dev
    meson = (REPO / "meson.build").read_text(encoding="utf-8")
    assert "install_subdir('deploy', install_dir: 'share/tidemark')" in meson
    assert f"-t tidemark:{VERSION} " in TEXT and f"tidemark-{VERSION}-linux-x86_64" in TEXT


def test_agrees_with_kubernetes(recipe):
    daemon = list(yaml.safe_load_all((REPO / "deploy/kubernetes/agent.yml").read_text(encoding="utf-8")))[-1]
    container = daemon["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"tidemark:{VERSION}"
    user = container["securityContext"]["runAsUser"], container["securityContext"]["runAsGroup"]
    assert arguments_of(recipe, "USER") == "%d:%d" % user
    assert arguments_of(recipe, "EXPOSE") == str(container["ports"][0]["containerPort"])


@needs_root
def test_it_starts_and_is_healthy(recipe, root):
    """In a network of its own, so that the port is the recipe's."""
    command = json.loads(arguments_of(recipe, "ENTRYPOINT")) + json.loads(arguments_of(recipe, "CMD"))
    user = arguments_of(recipe, "USER")
    agent = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", UP, str(root), "chroot", f"--userspec={user}", str(root), *command],
        stderr=subprocess.PIPE, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    try:
        said = agent.stderr.readline()
        assert said == "tidemark: metrics are at http://[::]:9742/metrics\n", said + agent.stderr.read()
        check = arguments_of(recipe, "HEALTHCHECK")
        words = json.loads(check[check.index("["):])
        inside = ["nsenter", f"--net=/proc/{agent.pid}/ns/net", *words]
        wait_for("the health check", lambda: run(*inside).returncode == 0)
        status = Path(f"/proc/{agent.pid}/status").read_text(encoding="ascii")
        assert re.search(r"^Uid:\t65532\t65532\t65532\t65532$", status, re.M)
        assert run("nsenter", f"--net=/proc/{agent.pid}/ns/net", *words[:-1],
                   words[-1].replace("/healthz", "/nothing")).returncode != 0
        assert run(*words[:-1], words[-1].replace("9742", "1")).returncode != 0
    finally:
        agent.terminate()
        agent.communicate(timeout=LIMIT_S)
    assert agent.returncode == 0
