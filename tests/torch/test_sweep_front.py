# SPDX-License-Identifier: MIT
"""python -m tidemark.sweep: what it makes of its arguments, what it refuses, and what it says of a model."""
import json
import re
import ssl
import subprocess

import pytest
from torch_kit import PYTHON, REPO, environment

SHAPE = "--hidden_size 32 --intermediate_size 64 --num_hidden_layers 1 --num_attention_heads 2 " \
        "--num_key_value_heads 1 --vocab_size 64"
HOST = {"device": "host", "kind": "host", "name": "host", "id": None, "total": 60 << 30}


def cards(*ids, name="H200", gib=140):
    return [{"device": str(i), "kind": "nvidia", "name": name, "id": "GPU-" + card, "total": gib << 30}
            for i, card in enumerate(ids)] + [HOST]


MACHINES = {"cpu": [HOST], "small": cards("aa1", name="RTX", gib=8), "large": cards("aa1"),
            "two_small": cards("aa1", "bb2", name="RTX", gib=8), "two": cards("aa1", "bb2"),
            "four": cards("aa1", "bb2", "cc3", "dd4")}
PROGRAM = """#!/bin/sh
if [ "$1" = top ]; then cat {devices}; exit; fi
echo "HF_TOKEN=$HF_TOKEN HF_HUB_OFFLINE=$HF_HUB_OFFLINE CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
printf '%s\\n' "$@"
"""
HUB = """
class Refused(Exception):
    pass
class HfApi:
    def model_info(self, name, token=None, timeout=None):
        assert timeout == 10
        status = {status!r}
        if status == "cached":
            raise ConnectionError("no route")
        if isinstance(status, BaseException):
            try:
                raise OSError("what came of it, with a screen full of words")
            except OSError as reason:
                raise status
        if status != 200:
            reason = Refused("said " + str(token))
            reason.response = type("Response", (), dict(status_code=status))
            raise reason
def snapshot_download(name, token=None, allow_patterns=None):
    assert "*.safetensors" in allow_patterns
def try_to_load_from_cache(name, file):
    return {cache!r} if {status!r} == "cached" else None
"""
NO_ROUTE = ConnectionError(113, "No route to host")
FULL = OSError(28, "No space left on device")
CERTIFICATE = ssl.SSLCertVerificationError(1, "certificate verify failed")


@pytest.fixture
def front(tmp_path):
    """front(words, machine, hub): status, lines of the program's arguments, what was said. hub: what it answers."""
    def ask(words, machine="cpu", hub=None, **variables):
        (tmp_path / "devices.json").write_text(json.dumps({"devices": MACHINES[machine]}), encoding="utf-8")
        program = tmp_path / "tidemark"
        program.write_text(PROGRAM.replace("{devices}", str(tmp_path / "devices.json")), encoding="utf-8")
        program.chmod(0o755)
        paths = [str(REPO / "python")]
        if hub is not None:
            fakes = tmp_path / "fakes"
            fakes.mkdir(exist_ok=True)
            (fakes / "transformers.py").write_text("")
            (fakes / "huggingface_hub.py").write_text("import ssl\n" + HUB.replace(
                "{status!r}", ("ssl." if isinstance(hub, ssl.SSLError) else "") + repr(hub)).replace(
                "{cache!r}", repr(str(tmp_path / "cache" / "config.json"))))
            paths.append(str(fakes))
        env = environment(TIDEMARK_PROGRAM=str(program), PYTHONPATH=":".join(paths), **variables)
        done = subprocess.run([PYTHON, "-m", "tidemark.sweep", *words.split()], cwd=tmp_path, capture_output=True,
                              text=True, env=env, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr
    return ask


def test_becomes_the_program(front, tmp_path):
    """Every argument in its place; the token in the environment alone."""
    status, (environment_line, *words), said = front(
        f"{SHAPE} --token hf_abc --seq-lengths 16 8 --batch_sizes 4 2 --max_physical_batch_sizes 1 4 --lora_ranks 2 "
        "--num_steps 2 --results_dir out --timeout 90 --jobs 2 --capacity 24GiB --privacy builtin --skip_hopeless --dry-run")
    assert status == 0
    assert environment_line == "HF_TOKEN=hf_abc HF_HUB_OFFLINE= CUDA_VISIBLE_DEVICES="
    at = words.index("--")
    assert words[:at] == [
        "sweep", "--param", "seq_length=8,16", "--param", "batch_size=2,4", "--param", "max_physical_batch_size=1,4",
        "--param", "lora_rank=2", "--where", "max_physical_batch_size<=batch_size", "-o", "out", "--redact",
        "env:HF_TOKEN", "--title", "LoRA of a Llama of its own shape, fp32, DP-SGD by the built-in engine",
        "--jobs", "2", "--timeout", "90s", "--capacity", str(24 << 30), "--skip-hopeless", "--dry-run"]
    assert words[at + 1:] == [
        PYTHON, "-m", "tidemark.sweep_training", "--seq_length", "{seq_length}", "--batch_size", "{batch_size}",
        "--max_physical_batch_size", "{max_physical_batch_size}", "--lora_rank", "{lora_rank}", "--num_steps", "2",
        *SHAPE.split(), "--precision", "fp32", "--privacy", "builtin", "--max_grad_norm", "1.0",
        "--noise_multiplier", "1.0"]
    assert "skipped, as max_physical_batch_size > batch_size: 4 > 2\n" in said
    assert not any("hf_abc" in text for text in (*words, said))
    assert {path.name for path in tmp_path.iterdir()} == {"devices.json", "tidemark"}  # nothing is recorded


def test_defaults(front):
    """S4's documented sizes; a token that is none; several GPUs for one configuration."""
    _, lines, said = front("--token YOUR_HF_TOKEN --detailed")
    assert lines[0] == "HF_TOKEN= HF_HUB_OFFLINE= CUDA_VISIBLE_DEVICES="
    assert lines[1:14] == ["sweep", "--param", "seq_length=128,256", "--param", "batch_size=8,16", "--param",
                           "max_physical_batch_size=1,2", "--param", "lora_rank=8", "--where",
                           "max_physical_batch_size<=batch_size", "-o", "./detailed_results"]
    assert "the token is the documentation's placeholder" in said
    assert "Llama-3.1-8B-Instruct has weights of 29.9 GiB and there is no GPU here: a small Llama" in said
    _, lines, said = front(f"{SHAPE} --devices all --privacy off", machine="two")
    assert lines[lines.index("--devices") + 1] == "all"
    _, lines, said = front("--ranks 2")  # DDP, as there is no GPU
    assert "has weights of 29.9 GiB and there is no GPU here" in said
    _, lines, said = front(f"{SHAPE} --privacy off --ranks 2")
    assert lines[-4:] == ["--ranks", "2", "--parallel", "fsdp"]
    _, lines, _ = front("--resume --results_dir there --retry_failed")
    assert lines == ["HF_TOKEN= HF_HUB_OFFLINE=1 CUDA_VISIBLE_DEVICES=", "sweep", "--resume", "there", "--redact",
                     "env:HF_TOKEN", "--retry-failed"]


@pytest.mark.parametrize("words, machine, visible, expected", [
    ("--ranks 2 --devices 2,3", "four", None, "GPU-cc3,GPU-dd4"),  # as the driver counts, with ranks as without
    ("--ranks 2 --devices all", "two", None, "GPU-aa1,GPU-bb2"),
    ("--ranks 2 --devices all", "four", "2,3", "GPU-cc3,GPU-dd4"),
    ("--ranks 2 --devices all", "four", "GPU-d,0,9,1", "GPU-aa1,GPU-dd4"),
    ("--ranks 2", "four", "2,3", "2,3"),
    ("--devices all", "four", "2,3", "2,3"),  # the program itself takes those
    ("--ranks 3 --devices all", "four", "2,3", "--ranks 3: each rank needs a GPU of its own, and there are 2"),
    ("--ranks 2 --devices 0,3", "four", "2,3", "--devices: 0 is not among those of CUDA_VISIBLE_DEVICES=2,3; name"),
    ("--ranks 2 --devices 0,7", "four", None, "--devices: there is no device '7'; there is: 0, 1, 2, 3"),
    ("--devices all", "four", "", "--devices: there is no GPU here"),
])
def test_devices(front, words, machine, visible, expected):
    """Ranks get cards by their ids; only those that a cluster has given to the job."""
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    status, lines, said = front(f"{SHAPE} {words}", machine, **variables)
    if status == 0:
        assert lines[0].partition(" CUDA_VISIBLE_DEVICES=")[2] == expected
        assert ("--devices" in lines) == ("--ranks" not in words)
    else:
        assert status == 2 and expected in said and lines == []


@pytest.mark.parametrize("words, machine, hub, expected", [
    ("--seq_lengths 0", "cpu", None, "argument --seq_lengths: '0' is not a whole number from 1 on"),
    ("--seq_lengths 1", "cpu", None, "at least 2"),
    ("--batch_sizes 2 --max_physical_batch_sizes 4 8", "cpu", None, "(4 > 2): nothing is left to run"),
    ("--capacity much", "cpu", None, "'much' is not a size, such as 24GiB"),
    ("--capacity inf", "cpu", None, "argument --capacity: 'inf' is not a size"),
    ("--capacity 0", "cpu", None, "argument --capacity: '0' is not a size"),
    ("--limit_memory -1G", "cpu", None, "argument --limit_memory: "),
    ("--ranks 0", "cpu", None, "argument --ranks: '0' is not a whole number from 1 on"),
    ("--ranks -1", "cpu", None, "argument --ranks: '-1' is not a whole number from 1 on"),
    ("--lora_ranks 8 -8", "cpu", None, "argument --lora_ranks: '-8' is not a whole number from 1 on"),
    ("--batch_sizes 4294967296", "cpu", None, "argument --batch_sizes: '4294967296' is not a whole number"),
    ("--max_grad_norm -1", "cpu", None, "argument --max_grad_norm: '-1' is not a number above 0"),
    ("--noise_multiplier nan", "cpu", None, "argument --noise_multiplier: 'nan' is not a number from 0 on"),
    ("--tokn hf_bad --seq_lengths 8", "cpu", None, "not known: --tokn (did you mean --token?)"),
    ("--tok=hf_bad", "cpu", None, "not known: --tok (did you mean --token?)"),
    ("-token hf_bad", "cpu", None, "error: not known: -token (did you mean --token?)\n"),
    ("--privacy opacus", "cpu", None, "pip install opacus, or use --privacy builtin"),
    ("--hidden_size 32 --model_name a/b", "cpu", None, "give one or the other"),
    ("--hidden_size 33", "cpu", None, "hidden_size (33) is to be an even multiple of num_attention_heads (8)"),
    ("--model_name ./nowhere", "cpu", None, "./nowhere: there is no such folder"),
    ("--model_name some/model", "cpu", None, "its shape is not known here; name a folder with its config.json"),
    ("--model_name meta-llama/Llama-3.1-8B", "small", None, "take 15.0 GiB in bf16, and RTX has 8.0 GiB"),
    ("--model_name meta-llama/Llama-3.1-70B --ranks 2", "two", None,
     "ranks makes the model in the host's memory first, 2 times 131.4 GiB, and there is 60.0 GiB"),
    ("--model_name meta-llama/Llama-3.1-8B --ranks 2 --precision fp32", "two_small", None,
     "take 29.9 GiB (15.0 GiB a rank) in fp32, and RTX has 8.0 GiB"),
    ("--model_name meta-llama/Llama-3.1-8B --ranks 2 --parallel ddp", "two_small", None,
     "take 15.0 GiB in bf16, and RTX has 8.0 GiB"),
    ("--limit_memory 24GiB", "cpu", None, "--limit_memory is for GPUs, and there is none here"),
    ("--ranks 2", "large", None, "--ranks 2: each rank needs a GPU of its own, and there is one"),
    ("--token hf_bad", "large", 401, "the hub refuses the token: check that it is valid"),
    ("", "large", 403, "gated, or not there: accept its terms on https://huggingface.co/meta-llama/Llama-3.1-8B-Inst"),
    ("--model_name no/such", "large", 404, "no/such: there is no such model on the hub"),
    ("", "large", 500, "the hub answers with status 500; try again later"),
    ("--model_name some/model", "large", NO_ROUTE, "some/model: the hub cannot be reached: No route to host, and the model "
     "is not in its cache, and its shape is not known"),
    ("--token hf_bad", "large", FULL, "could not be fetched from the hub: No space left on device; set HF_HUB_OFFLINE=1"),
    ("--token hf_bad", "large", ValueError("not hf_bad"), "from the hub: ValueError: not [token]; set HF_HUB_OFFLINE=1"),
])
def test_refusals(front, words, machine, hub, expected):
    status, lines, said = front(words, machine, hub)
    assert status == 2 and expected in said and lines == []
    assert "Traceback" not in said and "hf_bad" not in said


@pytest.mark.parametrize("words, machine, hub, said, offline, model", [
    ("", "large", 200, "model: meta-llama/Llama-3.1-8B-Instruct, from the hub", "1", True),
    ("", "large", NO_ROUTE, "the hub cannot be reached: No route to host, and the model is not in its cache; a Llama of "
     "its shape with random weights stands in", "1", True),
    ("", "large", CERTIFICATE, "the hub cannot be reached: certificate verify failed, and", "1", True),
    ("", "large", None, "transformers is not installed (pip install transformers peft); a Llama of its", "1", True),
    ("--ranks 2", "two_small", 200, "model: meta-llama/Llama-3.1-8B-Instruct, from the hub", "1", True),  # spread
    ("", "small", 200, "weights of 15.0 GiB and RTX has 8.0 GiB: a small Llama of the same form", "", False),
])
def test_where_the_model_comes_from(front, words, machine, hub, said, offline, model):
    status, lines, told = front(words, machine, hub)
    assert status == 0 and said in told
    assert f"HF_HUB_OFFLINE={offline} " in lines[0] and ("--model_name" in lines) == model
    assert lines[lines.index("--precision") + 1] == "bf16"


def test_model_in_the_cache(front, tmp_path):
    """What the training will load is what is said: all of its weights are there, or random ones are used."""
    (tmp_path / "cache").mkdir()
    for name in ("config.json", "a.safetensors"):
        (tmp_path / "cache" / name).touch()
    _, lines, said = front("", "large", "cached")
    assert "model: meta-llama/Llama-3.1-8B-Instruct, of the hub's cache (the hub cannot be reached: ConnectionError: no route)" in said
    assert "HF_HUB_OFFLINE=1 " in lines[0]
    _, lines, said = front("", "large", "cached", HF_HUB_OFFLINE="1")
    assert "Instruct, of the hub's cache (HF_HUB_OFFLINE is set)" in said
    index = tmp_path / "cache" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}), encoding="utf-8")
    _, lines, said = front("", "large", "cached", HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE is set, and the model is not in its cache; a Llama of its shape with random weights" in said


def test_another_sweep_in_the_folder(front, tmp_path):
    """What differs is said, by the names of this command's options; the same sweep goes on."""
    words = f"{SHAPE} --privacy builtin --results_dir there --seq_lengths 8 16 --num_steps 2"
    _, lines, _ = front(words)
    values = [word.split("=") for word in lines if re.match(r"\w+=[0-9,]+$", word)]
    header = {"tidemark_sweep": 1, "params": [{"name": name, "values": text.split(",")} for name, text in values],
              "where": ["max_physical_batch_size<=batch_size"], "repeats": 1,
              "command": lines[lines.index("--") + 1:], "options": []}
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "sweep.jsonl").write_text(json.dumps(header) + "\n", encoding="utf-8")
    assert front(words)[0] == 0
    status, lines, said = front(words.replace("8 16", "8").replace("--num_steps 2", "--num_steps 3") +
                                " --gradient_checkpointing --repeats 2")
    assert status == 2 and lines == []
    assert "error: there belongs to another sweep: --seq_lengths was 8 16, is 8; --num_steps was 2, is 3; --repeats was 1, " \
        "is 2; --gradient_checkpointing was not given, is on. Give another --results_dir, or go on with that one by " \
        "--resume\n" in said


def test_documentation(front):
    """Each command of docs/sweep.md is taken as it stands there."""
    text = (REPO / "docs" / "sweep.md").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"^python (?:-m tidemark\.sweep|examples/\w+[.]py) (.*)$", text, re.M)
    assert len(commands) >= 6
    for command in commands:
        status, lines, said = front(command, "four")
        assert status == 0 and lines[1] == "sweep", (command, said)


@pytest.mark.parametrize("end, status", [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137), ("", 0)])
def test_ranks_end_together(tmp_path, end, status):
    """When one fails, the others, which would wait for it, are ended; the status is its own."""
    rank = f"""
import os, sys, time
open(os.environ["RANK"] + "-of-" + os.environ["WORLD_SIZE"], "w").close()
open(os.environ["TIDEMARK_RANKS_MEET"], "a").close()  # one place for all, of this launch alone
assert "MASTER_PORT" not in os.environ
if os.environ["RANK"] == "1":
    {end or 'pass'}
elif {bool(end)}:
    time.sleep(600)
"""
    source = f"import sys; from tidemark import _ranks; sys.exit(_ranks.launch(3, [sys.executable, '-c', {rank!r}]))"
    done = subprocess.run([PYTHON, "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
                          env=environment(TIDEMARK="0", PYTHONPATH=str(REPO / "python"), TMPDIR=str(tmp_path)))
    assert done.returncode == status, done.stderr
    assert not list(tmp_path.glob("tidemark-ranks-*"))  # nothing is left behind
    assert ("rank 1 failed; the others are ended" in done.stderr) == (status != 0)
    assert status != 0 or {path.name for path in tmp_path.iterdir()} == {"0-of-3", "1-of-3", "2-of-3"}
