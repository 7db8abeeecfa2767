# SPDX-License-Identifier: MIT
"""python -m tidemark.sweep, really run: S4's two commands, by the scripts of their names, with a tiny Llama, and one
configuration over two ranks."""
import csv
import json
import re
import subprocess

from seeds_kit import SEEDS
from torch_kit import LIBRARY, PYTHON, REPO, TIDEMARK, environment

TOKEN = "hf_tOpSeCrEtTokenOfATest"
SHAPE = "--hidden_size 32 --intermediate_size 96 --num_hidden_layers 2 --num_attention_heads 2 " \
        "--num_key_value_heads 1 --vocab_size 128"
BASE_FILES = {"memory_profile_results.json", "memory_profile_summary.csv", "memory_analysis_overview.png",
              "memory_heatmap.png", "index.html", "sweep.jsonl"}
DETAILED_FILES = {"detailed_memory_results.json", "detailed_memory_analysis.png", "operation_level_breakdown.png"}
STAGES = ["model_load", "data", "optimizer_setup", "privacy_setup", "forward", "backward", "privacy", "optimizer"]


def resized(words, sizes):
    """The words of a command with other values of these options."""
    words = list(words)
    for option, values in sizes.items():
        at = words.index(option) + 1
        end = next((i for i in range(at, len(words)) if words[i].startswith("--")), len(words))
        words[at:end] = values.split()
    return words


def s4_command(program, sizes):
    """Its words as its documentation has them, but for smaller sizes."""
    text = (SEEDS / "s4.md").read_text(encoding="utf-8")
    (block,) = [found for found in re.findall(r"```bash\n(.*?)```", text, re.S) if f"python {program}" in found]
    words = block.replace("\\\n", " ").split()
    assert words[:4] == ["python", program, "--token", "YOUR_HF_TOKEN"]
    assert words[1:] in documented("examples/")  # our own documentation has the same
    words[3] = TOKEN
    return resized(words[2:], sizes)


def documented(program="-m tidemark.sweep "):
    """Words of the commands of docs/sweep.md that begin with `python` and this."""
    text = (REPO / "docs" / "sweep.md").read_text(encoding="utf-8").replace("\\\n", " ")
    return [found.split() for found in re.findall(rf"^python {re.escape(program)}(.*)$", text, re.M)]


def sweep(words, folder, rings, program=("-m", "tidemark.sweep")):
    env = environment(TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=LIBRARY,
                      TIDEMARK_PROGRAM=TIDEMARK, LC_ALL="C.UTF-8")
    done = subprocess.run([PYTHON, *program, *words, *SHAPE.split()], cwd=folder, env=env,
                          capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def results(folder, name="memory_profile_results.json"):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def check_cells(folder, found):
    """Shares add up, stages are there, and the peak is what the training itself counted."""
    for cell in found["results"]:
        if cell["outcome"] == "excluded":
            assert cell["config"]["max_physical_batch_size"] > cell["config"]["batch_size"]
            continue
        assert cell["outcome"] == "done", cell
        for by in ("by_category", "by_component", "by_stage"):
            assert sum(cell[by].values()) == cell["peak_allocated"], cell
        names = [stage["name"] for stage in cell["stages"] if stage["name"] != "other"]
        assert names == STAGES
        log = (folder / cell["log"]).read_text(encoding="utf-8")
        told = json.loads([line for line in log.splitlines() if line.startswith("{")][-1])
        assert told["max_allocated"] == cell["peak_allocated"] and len(told["losses"]) == cell["steps"] == 2
        assert told["config"]["r"] == cell["config"].get("lora_rank", 2)


def check_largest(folder, found, rings):
    """What is said to fit on a card half as large again does; one sample more than is said to be possible does not."""
    room = int(1.5 * max(cell["peak_allocated"] for cell in found["results"] if cell["outcome"] == "done"))
    env = environment(TIDEMARK_RING_DIR=str(rings), PYTHONPATH=str(REPO / "python"), TIDEMARK_LIBRARY=LIBRARY,
                      TIDEMARK_OFF="1")
    subprocess.run([TIDEMARK, "sweep", "--resume", str(folder), "--capacity", str(room), "--no-pictures"], env=env,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    (limit,) = [limit for limit in results(folder)["largest_that_fits"] if limit["capacity"] == room and
                limit["parameter"] == "max_physical_batch_size" and limit["config"].get("seq_length") == 32]
    numbers = [limit["value"], limit["possible"] + 1]
    given = [PYTHON, "-m", "tidemark.sweep_training", *SHAPE.split(), "--seq_length", "32", "--lora_rank", "2",
             "--num_steps", "2"]
    tried = [subprocess.Popen([*given, "--batch_size", str(n), "--max_physical_batch_size", str(n)], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for n in numbers]
    took = [json.loads(process.communicate(timeout=120)[0])["max_allocated"] for process in tried]
    assert took[0] <= room < took[1], (limit, room, took)


def check_documented(folder, rings):
    """What else docs/sweep.md has and needs no GPU."""
    (resume,) = [words for words in documented() if "--resume" in words]
    assert "have ended already" in sweep(resume, folder, rings).stderr
    (other,) = [words for words in documented() if "--privacy" in words]
    sweep([*resized(other, {"--seq_lengths": "16", "--batch_sizes": "2", "--max_physical_batch_sizes": "1 4"}),
           "--lora_ranks", "2", "--num_steps", "1", "--no_pictures", "--results_dir", "without"], folder, rings)
    (cell,) = [cell for cell in results(folder / "without")["results"] if cell["outcome"] != "excluded"]
    assert cell["outcome"] == "done" and "privacy" not in [stage["name"] for stage in cell["stages"]]


def test_s4s_commands(tmp_path, rings):
    """Both run to the end and write their files; the token is in none of them, nor said."""
    words = s4_command("gpu_memory_profiler.py", {
        "--seq_lengths": "16 32", "--batch_sizes": "2 4", "--max_physical_batch_sizes": "1 4", "--lora_ranks": "2",
        "--num_steps": "2"})
    base = sweep([*words, "--jobs", "2"], tmp_path, rings, [str(REPO / "examples" / "gpu_memory_profiler.py")])
    words = s4_command("detailed_memory_profiler.py", {
        "--seq_lengths": "16", "--batch_sizes": "4", "--max_physical_batch_sizes": "1 2", "--num_steps": "2"})
    detailed = sweep([*words, "--lora_ranks", "2", "--jobs", "2"], tmp_path, rings,
                     [str(REPO / "examples" / "detailed_memory_profiler.py")])
    assert {path.name for path in tmp_path.iterdir()} == {"memory_results", "detailed_results"}
    folder, second = tmp_path / "memory_results", tmp_path / "detailed_results"
    found = results(folder)
    assert {"done": 6, "excluded": 2}.items() <= found["counts"].items()
    check_cells(folder, found)
    written = {path.name for path in folder.iterdir()}
    assert BASE_FILES <= written and not DETAILED_FILES & written
    assert sum(name.startswith("memory_timeline_config_") for name in written) == 6
    assert "Component breakdown:\n" in base.stdout and "  mlp: " in base.stdout
    assert "skipped, as max_physical_batch_size > batch_size: 4 > 2" in base.stderr
    check_largest(folder, found, rings)
    check_documented(tmp_path, rings)
    check_cells(second, results(second))
    assert BASE_FILES | DETAILED_FILES <= {path.name for path in second.iterdir()}
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes(), path
    assert TOKEN not in base.stdout + base.stderr + detailed.stdout + detailed.stderr


def test_two_ranks(tmp_path, rings):
    """Both ranks' peaks, in JSON and CSV; FSDP, the default, is for GPUs."""
    sweep(["--seq_lengths", "16", "--batch_sizes", "4", "--max_physical_batch_sizes", "2", "--lora_ranks", "2",
           "--num_steps", "2", "--ranks", "2", "--results_dir", "out"], tmp_path, rings)
    assert "FSDP is for GPUs, and this is cpu; DDP is used" in (tmp_path / "out/logs/0001.log").read_text()
    (cell,) = results(tmp_path / "out")["results"]
    assert [rank["rank"] for rank in cell["ranks"]] == [0, 1]
    peaks = [rank["peak_allocated"] for rank in cell["ranks"]]
    assert max(peaks) == cell["peak_allocated"] and min(peaks) > 0.9 * max(peaks)
    assert "wrap" in [stage["name"] for stage in cell["stages"]]
    with open(tmp_path / "out" / "memory_profile_summary.csv", encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert [int(row[f"rank{i}_peak_allocated"]) for i in (0, 1)] == peaks
