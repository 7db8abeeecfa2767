# SPDX-License-Identifier: MIT
"""The files of a sweep: what docs/sweep-files.md tells is there, what is there is told, and the figures are the
journal's. The sweeps are made up or were measured; nothing is run."""
import csv
import html.parser
import json
import os
import re
import shlex
import subprocess
import threading

import pytest
from test_golden import BUILD, ROOT, environment

GB = 1 << 30
DOCS = os.path.join(ROOT, "docs", "sweep-files.md")
HOSTILE = '<script>"&\'é'


def make_cell(number, seq, batch, outcome="done", ranks=1):
    """4000 bytes a batch and square of seq, 100,000 a batch and seq, a gigabyte of weights: to the byte."""
    activation = batch * seq * seq * 4000 + batch * seq * 100000
    peak, ended = GB + activation, outcome == "done"
    return {
        "cell": number, "params": {"seq": str(seq), "batch": str(batch), "kind": HOSTILE}, "repeat": 0,
        "outcome": outcome, "exit_status": 0 if ended else 1,
        "message": None if ended else "CUDA out of memory, <b>really</b>", "ns": 1500000000, "run": None, "log": None,
        "device": "cuda:0", "capacity": 24 * GB, "peak_allocated": peak, "peak_reserved": peak + (2 << 20),
        "peak_device": peak + (2 << 20) + (GB >> 1), "peak_step": 1, "n_steps": 5,
        "categories": {"parameter": GB, "activation": activation},
        "components": {"mlp": peak // 2, "attention": peak - peak // 2 - 1, "lora": 1},
        "at_stage": {"model_load": GB, "forward": activation},
        "stages": [{"name": "model_load", "peak": GB, "end": GB, "allocated": GB, "times": 1, "ns": 1000000000},
                   {"name": "forward", "peak": peak, "end": peak, "allocated": activation, "times": 5, "ns": 5000}],
        "ranks": [{"rank": i if ranks > 1 else None, "pid": 100 + i, "device": f"cuda:{i}",
                   "peak_allocated": peak - i, "peak_reserved": None} for i in range(ranks)]}


def make_sweep(folder):
    """3 x 3 cells, of which the last ran out of memory; two ranks."""
    head = {"tidemark_sweep": 1, "title": "train " + HOSTILE, "params": [
        {"name": "seq", "values": ["128", "256", "512"]}, {"name": "batch", "values": ["1", "2", "4"]},
        {"name": "kind", "values": [HOSTILE]}], "where": [], "repeats": 1, "command": ["true"], "options": []}
    grid = [(seq, batch) for seq in (128, 256, 512) for batch in (1, 2, 4)]
    cells = [make_cell(i, seq, batch, "oom" if i == 8 else "done", 2) for i, (seq, batch) in enumerate(grid)]
    (folder / "sweep.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *cells]))
    return cells


def write_files(folder, *options):
    line = [os.path.join(BUILD, "tidemark"), "sweep", "--resume", str(folder), "--no-pictures", *options]
    done = subprocess.run(line, env={**environment(), "TERM": "dumb"}, capture_output=True, text=True, check=False,
                          timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", name="sweep")
def make_all(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    cells = make_sweep(folder)
    shown = write_files(folder, "--detailed")
    return folder, cells, shown


def load(folder, name):
    return json.loads((folder / name).read_text())


# ---- documents

def told(section):
    """The first column of the table under that heading."""
    with open(DOCS, encoding="utf-8") as page:
        text = page.read().split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", text, re.M)


def paths_of(value, path=""):
    """Every place in a document: a.b, a[].c; keys that are data are `*`."""
    if isinstance(value, list):
        for element in value:
            yield from paths_of(element, path + "[]")
    elif isinstance(value, dict) and re.search(r"\.(config|by_category|by_component|by_stage)$", path):
        yield path + ".*"
    elif isinstance(value, dict):
        if re.search(r"(estimate_\w+|fit\.\w+)$", path):
            yield path
        for key, inner in value.items():
            yield from paths_of(inner, f"{path}.{key}" if path else key)
    else:
        yield path


@pytest.mark.parametrize("name", ["memory_profile_results.json", "detailed_memory_results.json"])
def test_all_keys_are_told(sweep, name):
    found = set(paths_of(load(sweep[0], name)))
    if name.startswith("detailed"):  # these need a trace
        found |= {f"results[].{rows}[].{key}" for rows in ("modules", "lines") for key in ("key", "bytes", "blocks")}
        found -= {"results[].modules", "results[].lines"}
    assert found == set(told(name))


def test_all_columns_are_told(sweep):
    with open(sweep[0] / "memory_profile_summary.csv", encoding="utf-8", newline="") as lines:
        columns = next(csv.reader(lines))
    for pattern in (r"category_\w+", r"component_\w+"):
        columns = [re.sub(f"^{pattern}$", pattern.replace(r"\w+", "*"), column) for column in columns]
    columns = [re.sub(r"^rank\d+_", "rank*_", column) for column in columns]
    parameters = {"seq", "batch", "kind"}
    assert parameters < set(columns)
    assert [c for c in dict.fromkeys(columns) if c not in parameters] == told("memory_profile_summary.csv")


# ---- figures

def test_results_are_the_journals(sweep):
    folder, cells, _ = sweep
    document = load(folder, "memory_profile_results.json")
    assert document["title"] == "train " + HOSTILE
    assert document["counts"] == {"cells": 9, "pending": 0, "done": 8, "oom": 1, "failed": 0, "timeout": 0,
                                  "excluded": 0, "hopeless": 0}
    for result, cell in zip(document["results"], cells):
        assert result["config"] == {"seq": int(cell["params"]["seq"]), "batch": int(cell["params"]["batch"]),
                                    "kind": HOSTILE}
        for key in ("outcome", "exit_status", "message", "device", "capacity", "peak_allocated", "peak_reserved",
                    "peak_device", "peak_step"):
            assert result[key] == cell[key], key
        assert result["by_category"] == cell["categories"]
        assert result["by_component"] == cell["components"]
        assert result["peak_allocated_gb"] == pytest.approx(cell["peak_allocated"] / GB)
        assert [rank["peak_allocated"] for rank in result["ranks"]] == [cell["peak_allocated"],
                                                                       cell["peak_allocated"] - 1]
        assert result["seconds"] == 1.5


def test_the_fit_tells_the_cell_that_did_not_fit(sweep):
    folder, cells, _ = sweep
    document = load(folder, "memory_profile_results.json")
    estimate = document["results"][8]["estimate_allocated"]
    assert estimate["bytes"] == pytest.approx(cells[8]["peak_allocated"], rel=1e-4)
    assert estimate["low"] <= cells[8]["peak_allocated"] <= estimate["high"]
    assert estimate["contradicted"]  # a card of 24 GiB has room for it
    terms = {(t["category"], t["term"]): t["coefficient"] for t in document["fit"]["allocated"]["terms"]}
    assert terms == {("parameter", "1"): pytest.approx(GB),
                     ("activation", "seq^2*batch"): pytest.approx(4000, rel=1e-3),
                     ("activation", "seq*batch"): pytest.approx(100000, rel=1e-3)}
    assert document["fit"]["allocated"]["left_out_median"] < 1e-5
    assert document["device_overhead"] == GB >> 1


def test_side_by_side(tmp_path):
    """With several configurations on a card at once, what it holds besides is not one's own."""
    make_sweep(tmp_path)
    journal = tmp_path / "sweep.jsonl"
    journal.write_text(journal.read_text().replace('"options": []', '"options": ["--jobs=2"]'))
    shown = " ".join(write_files(tmp_path).split())
    assert load(tmp_path, "memory_profile_results.json")["device_overhead"] is None
    note = ("All of a GPU is counted as free. What the CUDA context and others take of it is not known, as several "
            "configurations ran at once.")
    assert note in shown and note in (tmp_path / "index.html").read_text()


def test_the_largest_that_fits(sweep):
    document = load(sweep[0], "memory_profile_results.json")
    rows = [row for row in document["largest_that_fits"] if row["parameter"] == "batch"]
    assert {(row["config"]["seq"], row["capacity"]) for row in rows} == {
        (seq, size * GB) for seq in (128, 256, 512) for size in (16, 24, 40)}  # 80 are too far
    for row in rows:
        seq = row["config"]["seq"]
        if seq == 512 and row["capacity"] <= 24 * GB:  # where 4 ran out, whatever the fit says
            assert (row["value"], row["possible"], row["is_far"]) == (3, 3, False)
            continue
        each, room = 4000 * seq * seq + 100000 * seq, row["capacity"] - (GB >> 1) - GB - (2 << 20)
        assert row["value"] == pytest.approx(room // each, abs=1, rel=1e-5)
        assert row["is_far"] == (row["value"] > 8)
        assert row["possible"] >= row["value"]


def test_csv_has_the_same(sweep):
    folder, cells, _ = sweep
    with open(folder / "memory_profile_summary.csv", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 9
    for row, cell in zip(rows, cells):
        assert row["kind"] == HOSTILE
        assert int(row["peak_allocated"]) == cell["peak_allocated"]
        assert float(row["peak_allocated_gb"]) == pytest.approx(cell["peak_allocated"] / GB, abs=1e-6)
        assert int(row["category_activation"]) == cell["categories"]["activation"]
        assert int(row["component_mlp"]) == cell["components"]["mlp"]
        assert int(row["rank0_peak_allocated"]) == cell["peak_allocated"]
        assert int(row["rank1_peak_allocated"]) == cell["peak_allocated"] - 1
        assert row["rank1_peak_reserved"] == ""
    assert rows[8]["outcome"] == "oom" and rows[8]["message"].startswith("CUDA out of memory")


def test_detailed_has_operations(sweep):
    document = load(sweep[0], "detailed_memory_results.json")
    assert len(document["results"]) == 9
    first = document["results"][0]
    assert first["operations"] == [{"name": "forward", "peak": first["peak_allocated"],
                                    "allocated": first["by_category"]["activation"],
                                    "alive_at_peak": first["by_category"]["activation"], "times": 5, "seconds": 5e-06}]
    assert first["modules"] is None and first["lines"] is None  # there is no trace


def test_detailed_keeps_what_a_trace_told(tmp_path):
    """A trace that is gone, or was left on another machine: what was read from it stays, as long as it is of that cell."""
    make_sweep(tmp_path)
    write_files(tmp_path, "--detailed")
    document = load(tmp_path, "detailed_memory_results.json")
    modules = [{"key": HOSTILE, "bytes": 7, "blocks": 2}, {"key": None, "bytes": 5, "blocks": 1}]
    document["results"][0].update(modules=modules, lines=[])
    document["results"][1].update(modules=modules, peak_allocated=1)  # another sweep's
    (tmp_path / "detailed_memory_results.json").write_text(json.dumps(document))
    write_files(tmp_path, "--detailed")
    again = load(tmp_path, "detailed_memory_results.json")["results"]
    assert (again[0]["modules"], again[0]["lines"]) == (modules, [])
    assert again[1]["modules"] is None and again[2]["modules"] is None
    (tmp_path / "detailed_memory_results.json").write_text(json.dumps(document)[:-1])  # torn
    write_files(tmp_path, "--detailed")
    assert all(row["modules"] is None for row in load(tmp_path, "detailed_memory_results.json")["results"])


@pytest.mark.parametrize("damage", [
    [{"key": "a", "bytes": 1.5, "blocks": 1}], [{"key": "a", "bytes": 2 ** 70, "blocks": 1}],
    [{"key": "a", "bytes": -1, "blocks": 1}], [{"key": "a", "bytes": None, "blocks": 1}],
    [{"key": 1, "bytes": 1, "blocks": 1}], [{"key": "a", "bytes": 1}], [{}], [7], ["a"], [[]], {}, "a"])
def test_detailed_keeps_nothing_that_is_damaged(tmp_path, damage):
    """What is no row of ours is not made one, with zeros in it: the cell's modules and lines are unknown."""
    make_sweep(tmp_path)
    write_files(tmp_path, "--detailed")
    document = load(tmp_path, "detailed_memory_results.json")
    good = [{"key": "a", "bytes": 7, "blocks": 2}]
    document["results"][0].update(modules=good, lines=good + damage if isinstance(damage, list) else damage)
    document["results"][1].update(modules=damage, lines=good)
    document["results"][2].update(modules=good, lines=None)
    (tmp_path / "detailed_memory_results.json").write_text(json.dumps(document))
    write_files(tmp_path, "--detailed")
    again = load(tmp_path, "detailed_memory_results.json")["results"]
    assert [(row["modules"], row["lines"]) for row in again[:3]] == [(None, None), (None, None), (good, None)]


def test_detailed_keeps_nothing_of_an_unknown_peak(tmp_path):
    """Two peaks that are not known need not be the same."""
    make_sweep(tmp_path)
    journal = tmp_path / "sweep.jsonl"
    head, first, *rest = journal.read_text().splitlines()
    first = json.dumps({**json.loads(first), "peak_allocated": None})
    journal.write_text("\n".join([head, first, *rest]) + "\n")
    write_files(tmp_path, "--detailed")
    document = load(tmp_path, "detailed_memory_results.json")
    document["results"][0].update(modules=[{"key": "a", "bytes": 7, "blocks": 2}])
    for peak in (None, 2 ** 64 - 1):
        document["results"][0]["peak_allocated"] = peak
        (tmp_path / "detailed_memory_results.json").write_text(json.dumps(document))
        write_files(tmp_path, "--detailed")
        assert load(tmp_path, "detailed_memory_results.json")["results"][0]["modules"] is None


def test_detailed_into_a_fifo(tmp_path):
    """It is written to, and not waited for as if it were the file of before."""
    make_sweep(tmp_path)
    fifo = tmp_path / "detailed_memory_results.json"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()), daemon=True)
    reader.start()
    write_files(tmp_path, "--detailed")
    reader.join()
    assert len(json.loads(got[0])["results"]) == 9


def test_no_parameters(tmp_path):
    """A command that is only repeated is a sweep too; its journal has no parameters."""
    head = {"tidemark_sweep": 1, "title": "train", "params": [], "where": [], "repeats": 4, "command": ["true"], "options": []}
    cells = [{**make_cell(i, 128, 1, "oom" if i == 3 else "done"), "params": {}, "repeat": i} for i in range(4)]
    (tmp_path / "sweep.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *cells]))
    shown = write_files(tmp_path, "--detailed")
    document = load(tmp_path, "memory_profile_results.json")
    assert document["parameters"] == document["influence"] == document["largest_that_fits"] == []
    assert [row["config"] for row in document["results"]] == [{}] * 4
    assert "1 configuration that differs in numbers only; 3 are needed" in document["fit"]["none_because"]
    assert "the command repeat 1 of 4" in shown
    with open(tmp_path / "memory_profile_summary.csv", encoding="utf-8", newline="") as lines:
        assert [row["outcome"] for row in csv.DictReader(lines)] == ["done"] * 3 + ["oom"]


# ---- for people

def test_other_is_nothing_to_work_on(tmp_path):
    """Where no layer owns most of it: which layer comes first, and where to look as long as the trace is there; that
    command is one that a shell takes, whole on its line."""
    folder = tmp_path / ("it's a long name of a folder " * 4).strip()
    folder.mkdir()
    make_sweep(folder)
    journal = folder / "sweep.jsonl"
    text = journal.read_text().replace('"mlp"', '"other"').replace('"lora"', '"(cuBLAS workspace)"')
    journal.write_text(text.replace('"run": null', '"run": "runs/0008.tmk"'))
    says = ("other is the largest: 1.52 GB, 50 % of the peak. No layer owns it (in a language model: logits and loss, "
            "mostly). Of the layers attention is the largest: 1.52 GB, 50 %.")
    shown = write_files(folder)
    assert says in " ".join(shown.split()) and "tidemark peak" not in shown
    assert says in (folder / "index.html").read_text() and "tidemark peak" not in (folder / "index.html").read_text()
    (folder / "runs" / "0008.tmk").mkdir(parents=True)
    shown = write_files(folder)
    lines = shown.splitlines()
    at = lines.index("The lines that allocated what is other:")
    words = ["tidemark", "peak", f"{folder}/runs/0008.tmk", "--by", "stack"]
    assert says in " ".join(shown.split()) and shlex.split(lines[at + 1]) == words
    page = Page()
    page.feed((folder / "index.html").read_text())
    assert [shlex.split(text) for text in page.text if "tidemark peak" in text] == [words]


def test_console_says_it_as_the_seed_does(sweep):
    cells, shown = sweep[1], sweep[2]
    parts = cells[7]["components"]  # the largest of those that ended well: seq 512, batch 2
    lines = shown.split("Component breakdown:\n")[1].splitlines()
    assert lines[0] == f"  mlp: {parts['mlp'] / GB:.2f} GB (50 %)"
    assert lines[1] == f"  attention: {parts['attention'] / GB:.2f} GB (50 %)"
    assert lines[2] == "  lora: 0.00 GB (<1 %)"
    assert f"mlp is the largest: {parts['mlp'] / GB:.2f} GB, 50 % of the peak." in shown
    text = " ".join(shown.split())
    assert ("seq makes it grow quadratically: 1.15 GiB at 128, 3.05 GiB at 512; 96 % of the growth is by its square"
            in text)
    assert "batch makes it grow linearly: 2.02 GiB at 1, about 5.10 GiB at 4" in text
    table = shown.split("Largest batch that fits, by the fit\n")[1].splitlines()
    assert table[0].split() == ["seq", "16", "GiB", "24", "GiB", "40", "GiB"] and table[3].split()[:3] == ["512", "3", "3"]
    assert "1 cell ran out of memory though by the fit it would have fitted" in text
    assert re.search(r"within 0\.01 % \(the middle one; the worst 0\.01 %\), and what the allocator reserves within "
                     r"[\d.]+ % \(the worst [\d.]+ %\)\.", text)
    assert "512.0 MiB of each GPU are left to the CUDA context and others." in text


class Page(html.parser.HTMLParser):
    """Elements opened and closed, and what would be fetched or run."""
    VOID = {"meta", "line", "circle", "path", "polyline", "polygon"}

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.fetched = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.fetched += [value for key, value in attrs if key in ("src", "href") or key.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def test_page_links_to_what_is_there(tmp_path):
    """The log, the run and the picture of a cell, where they are in the folder; nothing outside of it."""
    make_sweep(tmp_path)
    journal = tmp_path / "sweep.jsonl"
    text = journal.read_text().replace('"run": null', '"run": "runs/0008.tmk", "log": "../secret.log"', 2)
    journal.write_text(text)
    (tmp_path.parent / "secret.log").write_text("")
    (tmp_path / "runs" / "0008.tmk").mkdir(parents=True)
    (tmp_path / "memory_timeline_config_2.png").write_bytes(b"")
    write_files(tmp_path)
    page = Page()
    page.feed((tmp_path / "index.html").read_text())
    assert sorted(page.fetched) == ["memory_timeline_config_2.png", "runs/0008.tmk", "runs/0008.tmk"]


def test_page_stands_alone_and_is_escaped(sweep):
    text = (sweep[0] / "index.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == [] and page.fetched == []
    assert "script" not in page.tags and "b" not in page.tags
    assert text.count('<svg class="chart"') == 2  # seq and batch; kind is no number
    assert page.tags.count("title") >= 1 + 2 * 9  # the page's, and each point's
    shown = " ".join(" ".join(page.text).split())
    assert "train " + HOSTILE in shown
    assert "estimated" in shown and "ran out of memory" in shown
    assert "Peak by seq and batch" in shown and "≈ 5.10 GiB oom" in shown
    assert "prefers-color-scheme:dark" in text


# ---- sweeps that say little

def test_of_nothing_there_is_no_fit(tmp_path):
    cells = make_sweep(tmp_path)
    lines = (tmp_path / "sweep.jsonl").read_text().splitlines()
    failed = [dict(cell, outcome="failed", exit_status=3, peak_allocated=None, peak_reserved=None, peak_device=None,
                   capacity=None, device=None, categories={}, components={}, at_stage={}, stages=[], ranks=[])
              for cell in cells]
    (tmp_path / "sweep.jsonl").write_text("\n".join([lines[0], *map(json.dumps, failed)]) + "\n")
    done = subprocess.run([os.path.join(BUILD, "tidemark"), "sweep", "--resume", str(tmp_path), "--no-pictures"],
                          env=environment(), capture_output=True, text=True, check=False)
    assert "Nothing was measured" in done.stdout
    document = load(tmp_path, "memory_profile_results.json")
    assert document["fit"] == {"none_because": "too few cells are done to say how memory grows: 0 configurations that "
                                               "differ in numbers only; 3 are needed",
                               "allocated": None, "reserved": None}
    assert document["largest_that_fits"] == [] and document["influence"] == []
    assert document["results"][0]["peak_allocated"] is None
    page = Page()
    page.feed((tmp_path / "index.html").read_text())
    assert page.open == []


# ---- the truth

def test_a_real_training_is_told_by_the_others(tmp_path):
    """A small Llama with LoRA adapters, measured once with torch on the CPU (tests/data/sweep/README.md)."""
    with open(os.path.join(ROOT, "tests", "data", "sweep", "llama", "sweep.jsonl"), encoding="utf-8") as journal:
        (tmp_path / "sweep.jsonl").write_text(journal.read())
    write_files(tmp_path)
    document = load(tmp_path, "memory_profile_results.json")
    assert document["counts"]["done"] == 42
    assert document["fit"]["allocated"]["left_out_median"] < 0.002
    shapes = {i["parameter"]: i["shape"] for i in document["influence"]}
    assert shapes.pop("batch") in ("none", "hardly")  # whether gradients wait for the next physical batch
    assert shapes == {"seq": "partly_quadratic", "physical": "linear", "rank": "hardly"}


def test_the_largest_that_fits_is_right_when_tried(tmp_path):
    """tinytrain was measured with batches of 2 to 8; on a device of 12 MiB the largest that is said to fit does, and
    what is said not to fit does not."""
    with open(os.path.join(ROOT, "tests", "data", "sweep", "tinytrain", "sweep.jsonl"), encoding="utf-8") as journal:
        (tmp_path / "sweep.jsonl").write_text(journal.read())
    write_files(tmp_path, "--capacity", "12MiB")
    limits = [row for row in load(tmp_path, "memory_profile_results.json")["largest_that_fits"]
              if row["parameter"] == "batch" and row["capacity"] == 12 << 20 and row["config"]["layers"] == 2]
    assert [row["config"]["seq"] for row in limits] == [16, 32, 64]

    def fits(row, batch):
        line = [os.path.join(BUILD, "tinytrain"), "--steps", "2", "--quiet", "--capacity", "12MiB", "--layers", "2",
                "--seq", str(row["config"]["seq"]), "--batch", str(batch)]
        return subprocess.run(line, env=environment(), capture_output=True, check=False).returncode == 0

    assert [(fits(row, row["value"]), fits(row, row["possible"] + 1)) for row in limits] == [(True, False)] * 3
