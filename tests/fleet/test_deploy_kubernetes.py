# SPDX-License-Identifier: MIT
"""deploy/kubernetes: what the files promise each other and Prometheus; their agents, really run with the
rights that they ask for, beside a job in namespaces as a pod has them."""
import re
import shlex

import pytest
import yaml
from agent_kit import REPO, Agent, Machine, Watched, program
from deploy_kit import VERSION, PodAgent, in_pod, install, needs_root, run, with_rights

FILES = REPO / "deploy" / "kubernetes"
AGENTS = ("agent-hostpid.yml", "agent.yml")
PODS = ("training-pod.yml", "training-pod-sidecar.yml")


def documents(name):
    return {item["kind"]: item for item in yaml.safe_load_all((FILES / name).read_text(encoding="utf-8"))}


def pod_of(name):
    found = documents(name)
    return found["DaemonSet"]["spec"]["template"]["spec"] if "DaemonSet" in found else found["Pod"]["spec"]


def containers_of(pod):
    return pod.get("initContainers", []) + pod["containers"]


def agent_of(name):
    return next(container for container in containers_of(pod_of(name)) if container["name"] == "agent")


def agent_arguments(container):
    """Its arguments with the variables filled in as Kubernetes does, at a free port of loopback."""
    known = {item["name"] for item in container.get("env", [])}
    words = [re.sub(r"\$\((\w+)\)", lambda m: "node-7" if m[1] in known else m[0], word) for word in container["args"]]
    assert words[0] == "agent"
    return ["127.0.0.1:0" if word == f":{container['ports'][0]['containerPort']}" else word for word in words[1:]]


@pytest.mark.parametrize("name", AGENTS + PODS)
def test_names_agree(name):
    pod = pod_of(name)
    volumes = [volume["name"] for volume in pod.get("volumes", [])]
    assert len(volumes) == len(set(volumes))
    mounted = {mount["name"] for container in containers_of(pod) for mount in container.get("volumeMounts", [])}
    assert mounted == set(volumes)
    for container in containers_of(pod):
        if "tidemark" in (container["name"], container["image"].split(":")[0]) or container["name"] == "agent":
            assert container["image"] == f"tidemark:{VERSION}"
        used = set(re.findall(r"\$\(([A-Z_]+)\)", " ".join(container.get("args", []))))
        assert used <= {item["name"] for item in container.get("env", [])}
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        for probe in ("livenessProbe", "readinessProbe"):
            if probe in container:
                assert container[probe]["httpGet"] == {"path": "/healthz", "port": "metrics"}
                assert "metrics" in ports


@pytest.mark.parametrize("name", AGENTS)
def test_prometheus_finds_the_agents(name):
    """The label and the port that scrape-kubernetes.yml and the PodMonitor ask for."""
    daemon = documents(name)["DaemonSet"]
    labels = daemon["spec"]["template"]["metadata"]["labels"]
    assert labels == daemon["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": "tidemark-agent"}
    assert agent_of(name)["ports"] == [{"name": "metrics", "containerPort": 9742}]
    assert daemon["spec"]["template"]["spec"]["serviceAccountName"] == documents(name)["ServiceAccount"]["metadata"]["name"]
    monitor = documents("pod-monitor.yml")["PodMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"] == labels
    assert [(end["port"], end["honorLabels"]) for end in monitor["podMetricsEndpoints"]] == [("metrics", True)]
    config = yaml.safe_load((REPO / "deploy/prometheus/scrape-kubernetes.yml").read_text(encoding="utf-8"))
    agents, sidecars = config["scrape_configs"]
    assert {"source_labels": ["__meta_kubernetes_pod_label_app_kubernetes_io_name"], "regex": "tidemark-agent",
            "action": "keep"} in agents["relabel_configs"]
    assert {"source_labels": ["__meta_kubernetes_pod_container_port_name"], "regex": "metrics",
            "action": "keep"} in agents["relabel_configs"]
    pod = documents("training-pod-sidecar.yml")["Pod"]
    assert pod["metadata"]["labels"] == {"tidemark.agent": "sidecar"}
    assert agent_of("training-pod-sidecar.yml")["ports"] == [{"name": "tidemark", "containerPort": 9742}]
    kept = {item["source_labels"][0]: item["regex"] for item in sidecars["relabel_configs"] if item.get("action") == "keep"}
    assert kept == {"__meta_kubernetes_pod_label_tidemark_agent": "sidecar",
                    "__meta_kubernetes_pod_container_port_name": "tidemark"}


def test_rights():
    """One file asks for rights, the others for none."""
    asked = agent_of("agent-hostpid.yml")["securityContext"]
    assert pod_of("agent-hostpid.yml")["hostPID"] is True
    assert asked["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE", "DAC_READ_SEARCH"]}
    for name in ("agent.yml", "training-pod-sidecar.yml"):
        pod = pod_of(name)
        assert not {"hostPID", "hostNetwork", "hostIPC"} & pod.keys()
        assert not [volume for volume in pod.get("volumes", []) if "hostPath" in volume]
        for container in containers_of(pod):
            context = {**pod.get("securityContext", {}), **container["securityContext"]}
            assert context["runAsNonRoot"] is True and context["runAsUser"] > 0
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}


# ---- run

@pytest.fixture(name="machine")
def machine_fixture(place):
    machine = Machine(place)
    machine.cards(["uuid GPU-aa"])
    return machine


@pytest.fixture(name="job")
def job_fixture(machine):
    """A job of user 1000 with files, and PIDs, that only its pod has."""
    folders = [machine.folder / name for name in ("rings", "runs")]
    for folder in folders:
        folder.mkdir()
    watched = Watched(machine.folder, "runs/pod.tmk",
                      {**machine.environment(), "TIDEMARK_RING_DIR": str(folders[0]), "TIDEMARK_JOB": "in-a-pod"},
                      prefix=(*in_pod(folders, own_processes=True), *with_rights(1000, [])))
    assert watched.pid < 10 and not list(folders[1].iterdir())
    watched.do("alloc 0 0 5000 1")
    yield watched
    watched.end()


def blind_agents(machine, container):
    """Agents that must not see the job: one right of the container's less each, and that of agent.yml."""
    rights = container["securityContext"]["capabilities"]["add"]
    assert len(rights) == 2
    for right in rights:
        yield Agent(prefix=(*in_pod([], own_processes=False), *with_rights(0, [right])), environment=machine.environment())
    other = agent_of("agent.yml")
    prefix = (*in_pod([], own_processes=True), *with_rights(other["securityContext"]["runAsUser"], []))
    yield PodAgent(*agent_arguments(other), prefix=prefix, environment=machine.environment())


@needs_root
def test_daemon_sets(machine, job):
    """With its rights the agent reads the pod's job; without one of them it does not, and sees devices."""
    container = agent_of("agent-hostpid.yml")
    context = container["securityContext"]
    blind = list(blind_agents(machine, container))
    prefix = (*in_pod([], own_processes=False), *with_rights(context["runAsUser"], context["capabilities"]["add"]))
    agent = Agent(*agent_arguments(container), prefix=prefix, environment=machine.environment())
    metrics = agent.wait_metrics("the job", lambda m: m.of("tidemark_job_allocated_bytes", job="in-a-pod", gpu="0"))
    labels, value = metrics.of("tidemark_job_allocated_bytes", job="in-a-pod", gpu="0")[0]
    assert (value, labels["host"], labels["uuid"]) == (5000, "node-7", "GPU-aa")
    assert int(labels["pid"]) != job.pid
    assert agent.curl("/healthz")[0] == 200
    for other in blind:
        metrics = other.metrics()
        assert not metrics.of("tidemark_job_steps_total", job="in-a-pod")
        assert metrics.value("tidemark_gpu_memory_total_bytes", gpu="0") == 16 << 30
        assert other.curl("/healthz")[0] == 200
        assert other.end() == (0, "")
    job.do("oom 0 100")
    job.end()
    metrics = agent.wait_metrics("its end", lambda m: m.of("tidemark_job_ooms_total", job="in-a-pod") and
                                 not m.of("tidemark_job_allocated_bytes", job="in-a-pod"))
    assert metrics.value("tidemark_job_ooms_total", job="in-a-pod") == 1
    assert agent.end() == (0, "")


@needs_root
def test_sidecar(machine):
    """Two containers of a pod: files of their own, the same processes, the same user, no rights."""
    pod = pod_of("training-pod-sidecar.yml")
    assert pod["shareProcessNamespace"] is True
    user = pod["securityContext"]["runAsUser"]
    folders = [machine.folder / name for name in ("rings", "runs")]
    for folder in folders:
        folder.mkdir()
    job = Watched(machine.folder, "runs/pod.tmk",
                  {**machine.environment(), "TIDEMARK_RING_DIR": str(folders[0]), "TIDEMARK_JOB": "beside"},
                  prefix=(*in_pod(folders, own_processes=False), *with_rights(user, [])))
    job.do("alloc 0 0 5000 1")
    agent = Agent(*agent_arguments(agent_of("training-pod-sidecar.yml")), environment=machine.environment(),
                  prefix=(*in_pod(folders, own_processes=False), *with_rights(user, [])))
    metrics = agent.wait_metrics("the job", lambda m: m.of("tidemark_job_allocated_bytes", job="beside"))
    assert metrics.value("tidemark_job_allocated_bytes", job="beside", pid=str(job.pid)) == 5000
    assert agent.end() == (0, "")
    job.end()


@pytest.mark.parametrize("name", PODS)
def test_a_training_is_watched(place, name):
    """The init container's command and the training's, as the files have them, in other folders."""
    pod = pod_of(name)
    source = install(place / "opt" / "tidemark")
    for folder in ("tidemark", "runs", "rings"):
        (place / folder).mkdir()
    places = {"/opt/tidemark": str(source), "/tidemark": str(place / "tidemark"), "/runs": str(place / "runs")}

    def placed(word):
        return re.sub(r"/opt/tidemark|(?<![\w/])/(?:tidemark|runs)(?=/|$)", lambda m: places[m[0]], word)

    bring = next(container for container in pod["initContainers"] if container["name"] == "tidemark")
    assert run(*[placed(word) for word in bring["command"]]).returncode == 0
    train = pod["containers"][0]
    mounts = {mount["mountPath"] for mount in train["volumeMounts"]}
    assert {"/tidemark", "/runs", "/dev/shm"} == mounts
    command = [placed(word) for word in train["command"]]
    assert command[-1].endswith("exec python train.py")
    command[-1] = command[-1].replace("python train.py", shlex.join([program("tinytrain"), "--steps", "3"]))
    variables = {item["name"]: item.get("value", "train-0") for item in train["env"]}
    done = run(*command, env={**variables, "PATH": "/usr/bin:/bin", "TIDEMARK_RING_DIR": str(place / "rings")})
    assert done.returncode == 0, done.stderr
    said = run(program("tidemark"), "report", place / "runs" / "train-0.tmk", "--format", "line").stdout
    assert re.fullmatch(r"peak [\d.]+ MiB of [\d.]+ GiB of CPU memory in process \d+\n", said)
