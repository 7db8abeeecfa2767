# SPDX-License-Identifier: MIT
"""Pictures: that they say what they should, are not blank, and take no orders from names."""
import collections
import itertools
import json
import random
import re
import shlex

import pytest
from pictures import (bytes_of_y, colours_at, columns_of, full_texts_of, groups_of, legend_colours, overlaps, points_of, read_png,
                      text_boxes, texts_of)
from test_golden import ROOT, shell

RUNS = [
    "tidemark run -q -o a.tmk -- tinytrain --steps 12 --quiet",
    "tidemark run -q -o oom.tmk -- tinytrain --spike 5 --capacity 12MiB --quiet",
    "tidemark run -q -o ranks.tmk -- sh -c 'for r in 0 1 2; do RANK=$r WORLD_SIZE=3 tinytrain "
    "--quiet --steps 2 --batch $((8 + 4 * r)); done'",
    "tidemark run -q -o one.tmk -- tinytrain --quiet --steps 1",
]


@pytest.fixture(scope="module", name="runs")
def make_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot")
    for line in RUNS:
        shell(line, folder)
    return folder


def plot(folder, words, output="p.svg", status=0):
    done = shell(f"tidemark plot {words} -o {output}", folder)
    assert done.returncode == status, done.stderr
    assert not done.stdout
    if status == 0:
        assert done.stderr.endswith(f"tidemark: picture written to {output}\n")
    return done.stderr


def texts(folder, words):
    """All texts of the picture, as a browser would show them."""
    plot(folder, words)
    return texts_of(folder / "p.svg")


# ---- of a run

def test_timeline(runs):
    found = texts(runs, "a.tmk")
    assert re.fullmatch(r"a\.tmk, cpu: allocated by category, at most 7\.\d MiB", found[0])
    for text in ("MiB", "step", "before", "parameter", "gradient", "optimizer_state", "activation", "10"):
        assert text in found, found
    found = texts(runs, "a.tmk --axis time --by module")
    assert "blocks.0.attn" in " ".join(found)
    assert any(text.endswith("seconds since the start of the run") for text in found)
    found = texts(runs, "a.tmk --steps 3-4")
    assert "3" in found and "4" in found and "10" not in found and "before" not in found
    assert "forward" in found  # there is room for names of stages


def live_bytes(folder, run, n_parts):
    """What the trace says of each part of a time axis: [{category: bytes}] at the part's most filled moment."""
    rows = json.loads(shell(f"tidemark query {run} --json 'SELECT alloc_ns, free_ns, size, category FROM allocations'",
                            folder).stdout)["rows"]
    end = json.loads(shell(f"tidemark query {run} --json 'SELECT end_ns FROM processes'", folder).stdout)["rows"][0]
    end = end["end_ns"] if isinstance(end, dict) else end[0]
    rows = [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows]
    start = min(row[0] for row in rows)
    changes = sorted([(born, 1, size, key) for born, _, size, key in rows] +
                     [(freed, 0, -size, key) for _, freed, size, key in rows if freed is not None])
    now, parts, at = collections.Counter(), [], 0
    for i in range(n_parts):
        best = dict(now)
        limit = start + (end - start) * (i + 1) / n_parts
        while at < len(changes) and (changes[at][0] < limit or i == n_parts - 1):
            now[changes[at][3]] += changes[at][2]
            if sum(now.values()) > sum(best.values()):
                best = dict(now)
            at += 1
        parts.append(best)
    return parts


def stairs_of(shape, left, right, n_parts):
    """The height of an area's top in the middle of each part."""
    points, heights = points_of(shape.get("d"))[:-2], []
    at = 0
    for i in range(n_parts):
        x = left + (right - left) * (i + 0.5) / n_parts
        while at + 1 < len(points) and points[at + 1][0] <= x:
            at += 1
        heights.append(points[at][1])
    return heights


def test_areas_are_the_bytes(runs):
    """Each layer of each part is as high as the blocks of its category are large, to a tenth of a point."""
    plot(runs, "one.tmk --axis time")
    zero, scale = bytes_of_y(runs / "p.svg")
    areas = [(title.split(":")[0], shapes[0]) for title, shapes in groups_of(runs / "p.svg")]
    points = points_of(areas[0][1].get("d"))
    left, right, n_parts = points[-1][0], points[-2][0], 720
    expected = live_bytes(runs, "one.tmk", n_parts)
    tops = {key: stairs_of(shape, left, right, n_parts) for key, shape in areas}
    keys = [key for key, _ in areas]  # the uppermost first
    wrong = 0
    for i, live in enumerate(expected):
        named = {key: live.get(key, 0) for key in keys if key != "other"}
        if "other" in keys:
            named["other"] = sum(live.values()) - sum(named.values())
        for k, key in enumerate(keys):
            below = zero if k + 1 == len(keys) else tops[keys[k + 1]][i]
            wrong += abs(below - tops[key][i] - named[key] / scale) > 0.15  # two edges, and the numbers at the left
    assert wrong == 0
    assert len(keys) >= 4


def test_timeline_is_as_high_as_the_peak(runs):
    for words in ("a.tmk", "a.tmk --axis time", "a.tmk --by component"):
        plot(runs, words)
        zero, scale = bytes_of_y(runs / "p.svg")
        top = min(y for _, shapes in groups_of(runs / "p.svg") for _, y in points_of(shapes[0].get("d")))
        peak = json.loads(shell("tidemark peak a.tmk --json", runs).stdout)["allocated"]
        assert zero - top == pytest.approx(peak / scale, abs=0.11)


def test_timeline_of_one_that_ran_out(runs):
    found = texts(runs, "oom.tmk")
    assert sum(bool(re.fullmatch(r"out of memory: .* requested, tinytrain_model\.c:\d+", text)) for text in found) == 1, found
    boxes = {box[0]: box for box in text_boxes(runs / "p.svg")}
    oom = next(box for text, box in boxes.items() if text.startswith("out of memory: "))
    zero, scale = bytes_of_y(runs / "p.svg")
    assert oom[4] < zero - (12 << 20) / scale  # above all that is drawn
    assert "limit" in found and "12.0 MiB" in found
    assert not overlaps(runs / "p.svg")
    assert not any("out of memory" in text for text in texts(runs, "oom.tmk --steps 1-2"))


OOMS = ("leak", "oom_growth", "demand", "fragmentation", "other_process", "outlier", "churn", "churn_expandable")


@pytest.mark.parametrize("name", OOMS)
def test_runs_of_a_gpu_that_ran_out(runs, name):
    """All pictures of them mark it with the line of code, the timeline says the same peak as `peak`."""
    trace = f"{ROOT}/tests/data/ooms/{name}.trace"
    line = re.compile(r"out of memory: [\d.]+ .iB requested, \w+\.py:\d+")
    for kind in ("timeline", "heatmap", "components", "operations", "forecast"):
        found = texts(runs, f"{trace} --kind {kind}")
        assert any(line.match(text) for text in found), (kind, found)
        assert not overlaps(runs / "p.svg"), kind
    peak = json.loads(shell(f"tidemark peak {trace} --json", runs).stdout)
    size = f"{peak['allocated'] / (1 << 30):.2f} GiB" if peak["allocated"] >= GIB else \
        f"{peak['allocated'] / (1 << 20):.1f} MiB"
    step = "" if peak["step"] is None else f", in step {peak['step']}"
    assert f"peak {size}{step}" in texts(runs, trace)
    assert "out of memory: " in " ".join(texts(runs, f"{trace} --kind ranks"))


@pytest.mark.parametrize("kind", ["heatmap", "components", "operations", "ranks", "forecast"])
def test_every_picture_says_that_it_ran_out(runs, kind):
    assert "out of memory" in " ".join(texts(runs, f"oom.tmk --kind {kind}"))
    assert not overlaps(runs / "p.svg")
    assert "out of memory" not in " ".join(texts(runs, f"a.tmk --kind {kind}"))
    assert not overlaps(runs / "p.svg")


def test_heatmap(runs):
    found = texts(runs, "a.tmk --kind heatmap")
    assert any(re.match(r"a\.tmk, cpu: allocated by module in step \d+, at most 7\.\d MiB", text)
               for text in found)
    for text in ("forward", "backward", "embed"):
        assert text in found, found
    assert not overlaps(runs / "p.svg")
    assert "parameter" in texts(runs, "a.tmk --kind heatmap --by category --steps 2")


def test_components(runs):
    peak = json.loads(shell("tidemark peak a.tmk --by component --json", runs).stdout)
    found = texts(runs, "a.tmk --kind components")
    whole = peak["allocated"]
    for row in peak["by"]:
        assert row["key"] in found
        if row["bytes"] >= 1 << 20 and row["bytes"] * 100 > whole:
            note = f"{row['bytes'] / (1 << 20):.1f} MiB {int(row['bytes'] * 100 / whole + 0.5)} %"
            assert note in found, (note, found)
    assert f"{whole / (1 << 20):.1f} MiB at the peak by component" in " ".join(found)
    pieces = {title.rsplit(":")[0]: float(shapes[0].get("width")) for title, shapes in groups_of(runs / "p.svg")}
    scale = sum(pieces.values()) / whole
    for row in peak["by"]:
        drawn = sum(width for name, width in pieces.items() if name.startswith(row["key"] + ", "))
        assert drawn == pytest.approx(row["bytes"] * scale, abs=1), row
    assert "forward" in texts(runs, "a.tmk --kind components --by stage")


def test_operations(runs):
    found = texts(runs, "a.tmk --kind operations")
    for stage in ("forward", "backward", "optimizer"):
        assert any(text.startswith(f"{stage}, 12 times ") for text in found), found
    assert "requested, each time, MiB" in found


def test_ranks(runs):
    peaks = json.loads(shell("tidemark report ranks.tmk --json", runs).stdout)["processes"]
    found = texts(runs, "ranks.tmk --kind ranks")
    for process in peaks:
        assert f"rank {process['rank']}" in found
        assert f"{process['peak']['allocated'] / (1 << 20):.1f} MiB" in found
    mean = sum(process["peak"]["allocated"] for process in peaks) / 3
    more = max(process["peak"]["allocated"] for process in peaks) / mean - 1
    assert f"rank 2 has {100 * more:.0f} % more" in " ".join(found)


def test_forecast(runs):
    found = texts(runs, "a.tmk --kind forecast")
    assert "peak of each step" in found and "step" in found
    found = texts(runs, "oom.tmk --kind forecast")  # five steps, and nothing between them
    assert {"0", "1", "2", "3", "4"} <= set(found) and not any(re.fullmatch(r"\d\.\d", text) for text in found)
    assert plot(runs, "one.tmk --kind forecast", status=1).endswith(
        "no forecast for cpu: it has no finished step, and the driver was not asked either\n")


# ---- how it looks

def test_forecast_of_huge_steps(tmp_path):
    """Steps numbered by a clock: a double no longer tells one from the next."""
    (tmp_path / "job.py").write_text("""if True:
        import ctypes
        recorder = ctypes.CDLL(None)
        recorder.tidemark_record_alloc.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
        for i in range(40):
            recorder.tidemark_record_step(ctypes.c_int64(2**60 + i))
            recorder.tidemark_record_alloc(0, 4096 + (i << 24), 1 << 22, None)
""", encoding="utf-8")
    assert shell("tidemark run -q -o huge.tmk -- /usr/bin/python3 job.py", tmp_path).returncode == 0
    assert "1.1529215e+18" in texts(tmp_path, "huge.tmk --kind forecast")


def test_png(runs):
    plot(runs, "a.tmk --theme dark", "p.png")
    width, height, pixels = read_png(runs / "p.png")
    (runs / "p.png").unlink()
    assert (width, height) == (2000, 960)
    colours = collections.Counter(pixels.values())
    assert b"\xff\xff\xff" not in colours and colours[b"\x16\x18\x1d"] > 1000 and len(colours) > 20
    expected = {bytes.fromhex(colour) for colour in ("49b477", "d9a420", "d6604d", "1a71e3")}
    assert expected <= colours.keys()  # parameters, optimizer's, activations, gradients


def test_png_and_svg_are_the_same_picture(runs):
    """In the middle of each layer, at many moments: the colour that the SVG says."""
    plot(runs, "one.tmk --axis time")
    plot(runs, "one.tmk --axis time", "same.png")
    zero, _ = bytes_of_y(runs / "p.svg")
    areas = [shapes[0] for _, shapes in groups_of(runs / "p.svg")]
    corners = points_of(areas[0].get("d"))
    left, right = corners[-1][0], corners[-2][0]
    tops = [stairs_of(area, left, right, 720) for area in areas] + [[zero] * 720]
    points, colours = [], []
    for i in range(3, 720, 7):
        for k, area in enumerate(areas):
            is_flat = all(abs(tops[j][i + d] - tops[j][i]) < 0.1 for j in (k, k + 1) for d in (-1, 1))
            if is_flat and tops[k + 1][i] - tops[k][i] > 6 and tops[k][i] - tops[0][i] > 6:
                points.append((left + (right - left) * (i + 0.5) / 720, (tops[k][i] + tops[k + 1][i]) / 2))
                colours.append(bytes.fromhex(area.get("fill")[1:]))
    assert len(points) > 100 and len(set(colours)) >= 3
    assert colours_at(runs / "same.png", points) == colours


def test_themes(runs):
    """Another background, the same colours for the same things."""
    plot(runs, "a.tmk")
    light = (runs / "p.svg").read_text(encoding="utf-8").lower()
    plot(runs, "a.tmk --theme dark")
    dark = (runs / "p.svg").read_text(encoding="utf-8").lower()
    assert "#ffffff" in light and "#16181d" not in light
    assert "#16181d" in dark and "#ffffff" not in dark
    for colour in ("#49b477", "#d6604d"):
        assert colour in light and colour in dark


def test_pdf(runs):
    plot(runs, "a.tmk --kind components", "p.PDF")
    assert (runs / "p.PDF").read_bytes().startswith(b"%PDF")


def test_chinese(runs):
    assert texts(runs, "a.tmk --title '显存时间线：训练'")[0] == "显存时间线：训练"
    plot(runs, "a.tmk --title '显存时间线'", "zh.png")


HOSTILE = "a'b\"`touch pwned`$(touch pwned)\\n' ; set output 'pwned' # <b>&amp;"


def test_names_are_only_texts(runs):
    """Of the run, of the title: in an XML file."""
    (runs / HOSTILE.replace("/", "_")).symlink_to("a.tmk")
    quoted = "'" + HOSTILE.replace("'", "'\\''") + "'"
    assert texts(runs, quoted)[0].startswith(re.sub(r"\s+", " ", HOSTILE)[:40])
    broken = "$'two\\nlines\\tand \\xff\\x1b[31m'"
    assert texts(runs, f"a.tmk --title {broken}")[0] == "two\ufffdlines\ufffdand \ufffd\ufffd[31m"
    assert not (runs / "pwned").exists()


# ---- what cannot be drawn

@pytest.mark.parametrize("words,status,said", [
    ("a.tmk -o p.gif", 2, "'p.gif' is not the name of a picture: it should end in .png, .svg or .pdf"),
    ("a.tmk -o nowhere/p.png", 1, "No such file or directory"),
    ("a.tmk --kind pie -o p.png", 2, "--kind"),
    ("a.tmk --kind overview -o p.png", 2, "--kind overview draws a sweep, and a.tmk is a run"),
    ("a.tmk --kind ranks --by module -o p.png", 2, "--by is not for --kind ranks"),
    ("a.tmk --kind components --by category -o p.png", 2, "it takes component|module|stage"),
    ("a.tmk --kind ranks --steps 1 -o p.png", 2, "--steps is not for --kind ranks"),
    ("a.tmk --steps 5-3 -o p.png", 2, "--steps '5-3': a step, 12, or from one to another, 10-20"),
    ("a.tmk --steps 99 -o p.png", 1, "has no such step: 99"),
    ("a.tmk --device cuda:7 -o p.png", 2, "cuda:7"),
    ("nothing.tmk -o p.png", 3, "nothing.tmk"),
])
def test_complaints(runs, words, status, said):
    done = shell(f"tidemark plot {words}", runs)
    assert done.returncode == status and said in done.stderr, done.stderr
    assert not (runs / "p.png").exists()


def test_nothing_allocated(runs):
    done = shell("tidemark run -q -o none.tmk -- tinytrain --help >/dev/null; "
                 "tidemark plot none.tmk -o p.png", runs)
    assert done.returncode in (1, 3) and done.stderr


# ---- of a sweep

PARAMS = {"seq": ["128", "256", "512"], "batch": ["1", "2", "4"], "attention": ["flash", "it's `x`"]}
GIB = 1 << 30


STAGES = "model_load data wrap optimizer_setup privacy_setup forward backward privacy optimizer other".split()
COMPONENTS = ["(cuBLAS workspace)", "(cuBLASLt workspace)",
              *"embedding attention mlp normalization lora conv expert router head other".split()]
CATEGORIES = "parameter buffer optimizer_state gradient input activation autograd_detail temporary unknown".split()


def split(whole, names):
    """In equal parts, as near as may be; None: it is not known."""
    if whole is None:
        return {}
    return {name: whole * (i + 1) // len(names) - whole * i // len(names) for i, name in enumerate(names)}


def cell_line(number, params, outcome, repeat=0):
    activation = int(params.get("seq", 64)) * int(params.get("batch", 1)) * (20 << 20)
    peak = None if outcome in ("failed", "timeout") else 4 * GIB + activation
    stages = [] if peak is None else [
        {"name": name, "peak": peak, "end": 4 * GIB, "allocated": activation, "times": 3, "ns": 5000}
        for name in STAGES]
    return json.dumps({
        "cell": number, "params": params, "repeat": repeat, "outcome": outcome, "exit_status": 0,
        "message": None, "ns": 10**9, "run": None, "log": None, "device": "cuda:0",
        "capacity": 40 * GIB, "peak_allocated": peak, "peak_reserved": peak, "peak_device": None,
        "peak_step": 1, "n_steps": 3, "categories": split(peak, CATEGORIES),
        "components": split(peak, COMPONENTS), "at_stage": split(peak, STAGES),
        "stages": stages, "ranks": []})


def write_sweep(folder, params, outcome_of, skipped=(), repeats=1):
    lines = [json.dumps({
        "tidemark_sweep": 1, "title": "train '; exit #", "where": [], "repeats": repeats,
        "params": [{"name": name, "values": values} for name, values in params.items()],
        "command": ["train"], "options": []})]
    cells = [dict(zip(params, values)) for values in itertools.product(*params.values())]
    lines += [cell_line(i, cells[i // repeats], outcome_of(i), i % repeats)
              for i in range(repeats * len(cells)) if i not in skipped]
    folder.mkdir(exist_ok=True)
    (folder / "sweep.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module", name="sweep")
def make_sweep(tmp_path_factory):
    """Cell 3 failed, 4 timed out, 17 and 16 ran out of memory, 9 was not tried yet."""
    folder = tmp_path_factory.mktemp("sweep")
    outcomes = {3: "failed", 4: "timeout", 16: "oom", 17: "oom"}
    write_sweep(folder / "s", PARAMS, lambda i: outcomes.get(i, "done"), skipped=(9,))
    return folder


def test_sweep_overview(sweep):
    found = texts(sweep, "s")
    assert "Peak memory against each parameter: train '; exit #" in found
    assert any(text.endswith("dashed capacity, 40.00 GiB") for text in found)
    for text in ("seq=128", "seq=512", "batch=4", "GiB", "flash", "it's `x`",
                 "seq, with attention=flash", "batch, with attention=flash"):
        assert text in found, found


def test_sweep_heatmap(sweep):
    found = texts(sweep, "s --kind heatmap")
    assert found.count("OOM") == 2 and found.count("failed") == 1 and found.count("timeout") == 1
    assert found.count("9.00") >= 2  # 4 GiB and 256 * 1 or 128 * 2 times 20 MiB
    assert sum(text.startswith("≈") for text in found) == 6  # those five, and the sign's meaning
    for text in ("attention=flash", "attention=it's `x`", "seq", "batch"):
        assert text in found


def test_sweep_bars(sweep):
    found = texts(sweep, "s --kind components")
    assert "by component, GiB" in found
    for name in COMPONENTS + CATEGORIES:
        assert found.count(name) == 1, name
    assert "seq=512 batch=2 attention=flash" in found and not any("largest of" in text for text in found)
    found = texts(sweep, "s --kind operations --theme dark")
    assert "most allocated in each stage, GiB" in found
    for name in STAGES:
        assert found.count(name) == 2, name


LONG = {"seq_length": ["128", "256", "512"], "batch_size": ["8", "16", "32"],
        "max_physical_batch_size": ["1", "2", "4"], "lora_rank": ["8", "16"]}
KINDS = ("overview", "heatmap", "components", "operations")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_on_another(sweep, kind, theme):
    """With ten stages and components, and names as long as those of LoRA trainings."""
    write_sweep(sweep / "long", LONG, lambda i: "oom" if i > 50 else "failed" if i == 7 else "done", skipped=(9,))
    for folder in ("s", "long"):
        found = texts(sweep, f"{folder} --kind {kind} --theme {theme}")
        assert not overlaps(sweep / "p.svg"), (folder, kind)
        assert not any(text.startswith("…") for text in found), found
    if kind in ("components", "operations"):
        rows = "rows: seq_length, batch_size, max_physical_batch_size, lora_rank the 40 largest of 49 measured"
        assert rows in [re.sub(r"\s+", " ", text) for text in found]
        assert "512, 8, 4, 16" in found


def test_many_above_the_graph(sweep):
    """Of more than have room some are named, not one on the other."""
    params = {"seq": [str(64 * i) for i in range(1, 25)], "batch": [str(i) for i in range(1, 9)]}
    write_sweep(sweep / "dense", params, lambda i: "oom" if (i // 8 + 1) * (i % 8 + 1) > 24 else "done")
    found = texts(sweep, "dense")
    assert not overlaps(sweep / "p.svg")
    assert sum(text.startswith("× ↑") for text in found) >= 6, found
    assert {"× ↑94.0", "× ↑154.0", "× ↑184.0"} <= set(found)  # 1536 tokens, of 3, 5 and 6 samples: the last value


def page_of(folder):
    """Written anew."""
    done = shell(f"tidemark sweep --no-pictures --resume {folder.name}", folder.parent)
    assert "have ended already" in done.stderr, done.stderr
    return (folder / "index.html").read_text(encoding="utf-8")


def test_above_the_graph(sweep):
    """What has no place in a graph is written at its top, and drawn nowhere."""
    params = {"seq": ["128", "256", "512"], "batch": ["1", "2", "16"]}
    write_sweep(sweep / "above", params, lambda i: "oom" if i in (5, 8) else "done")
    found = texts(sweep, "above")
    assert found.count("× ↑164.0") == 2 and sum("↑" in text for text in found) == 3, found
    assert any("× ran out of memory, at its estimate ↑ estimated above the graph" in text
               and "rings" not in text for text in found), found
    crosses = [shapes[0].get("stroke") for _, shapes in groups_of(sweep / "p.svg") if len(shapes) == 2]
    assert sorted(crosses) == ["#33a05c", "#e08214"]  # 84 GiB, in the colours of batch=16 and seq=256
    page = page_of(sweep / "above")
    assert page.count("× ↑164.0") == 1 and page.count("An arrow at the top") == 1
    assert page.count('<g class="oom">') == 1 and page.count('<g class="oom faint">') == 1  # 84 GiB
    write_sweep(sweep / "above", params, lambda i: "hopeless" if i == 5 else "done")
    assert "× too big to try, at its estimate" in " ".join(texts(sweep, "above"))
    write_sweep(sweep / "above", params, lambda i: "done")
    page = page_of(sweep / "above")
    assert not any(word in page for word in ("↑", "arrow", "Crosses", "Hollow")), page
    found = texts(sweep, "above")
    assert not any("↑" in text or "×" in text or "rings" in text for text in found), found


def test_first_of_several_as_large(sweep):
    """Page and pictures have the same one for the largest configuration: the first."""
    write_sweep(sweep / "even", PARAMS, lambda i: "done")
    assert "with seq=512 batch=4 attention=flash.</p>" in page_of(sweep / "even")
    found = texts(sweep, "even")
    assert "seq, with attention=flash" in found and "batch, with attention=flash" in found


def test_repeats_that_ran_out(sweep):
    """One repeat of three that ended well does not hide the others."""
    write_sweep(sweep / "again", {"seq": ["128", "256", "512"]}, lambda i: "oom" if i in (4, 5) else "done", repeats=3)
    for kind in KINDS:
        found = texts(sweep, f"again --kind {kind}")
        assert "n of 3: so many repeats ended well" in " ".join(found), (kind, found)
        assert any(text == "1 of 3" or text.endswith(", 1 of 3") for text in found), (kind, found)


def far(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other)) > 40 ** 2


def test_colours_can_be_told_apart(sweep):
    """Also a component's from a category's: they stand side by side."""
    for kind, n in (("components", len(COMPONENTS) + len(CATEGORIES)), ("operations", 2 * len(STAGES))):
        plot(sweep, f"s --kind {kind}")
        marks = legend_colours(sweep / "p.svg")
        assert len(marks) == n
        colours = {tuple(bytes.fromhex(mark[1:])) for mark in marks}
        assert len(colours) == (n if kind == "components" else len(STAGES))
        assert all(far(one, other) for one, other in itertools.combinations(colours, 2))


# What people see who lack the cones for red or green (Machado, Oliveira and Fernandes 2009, severity 1).
VISIONS = {"all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
           "no red": ((.152286, 1.052583, -.204868), (.114503, .786281, .099216), (-.003882, -.048116, 1.051998)),
           "no green": ((.367322, .860646, -.227968), (.280085, .672501, .047413), (-.011820, .042940, .968881))}


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def lab_of(colour, vision):
    """The colour as it is seen, in CIE L*a*b*."""
    seen = times(vision, [v / 12.92 if v <= .04045 else ((v + .055) / 1.055) ** 2.4 for v in (c / 255 for c in colour)])
    xyz = times(((.4124, .3576, .1805), (.2126, .7152, .0722), (.0193, .1192, .9505)), seen)
    x, y, z = (max(v / white, 0) ** (1 / 3) for v, white in zip(xyz, (.9505, 1, 1.089)))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("vision", VISIONS)
def test_categories_can_be_told_apart_by_all(sweep, vision):
    """A difference of 2 can just be seen, side by side."""
    plot(sweep, "s --kind components")
    colours = [bytes.fromhex(mark[1:]) for mark in legend_colours(sweep / "p.svg")[-len(CATEGORIES):]]
    seen = [lab_of(colour, VISIONS[vision]) for colour in colours]
    assert len(seen) == len(CATEGORIES)
    assert min(sum((a - b) ** 2 for a, b in zip(one, other)) ** .5 for one, other in itertools.combinations(seen, 2)) > 14


@pytest.mark.parametrize("params,name", [({}, "the command"), ({"seq": ["64"]}, "seq=64")])
def test_sweep_of_one(sweep, params, name):
    """There is nothing to compare: one point, one cell, one bar."""
    write_sweep(sweep / "only", params, lambda i: "done")
    for kind in ("overview", "components", "operations"):
        found = texts(sweep, f"only --kind {kind}")
        assert name in found, (kind, found)
    assert "5.25" in texts(sweep, "only --kind heatmap")


def test_sweep_complaints(sweep):
    assert "a sweep has no --kind ranks" in plot(sweep, "s --kind ranks", status=2)
    assert "--by is not for --kind overview" in plot(sweep, "s --by module", status=2)
    assert "--rank is for a run" in plot(sweep, "s --rank 1", status=2)
    (sweep / "bad").mkdir()
    (sweep / "bad" / "sweep.jsonl").write_text("{}\n")
    assert plot(sweep, "bad", status=3)


# ---- names of all kinds

PIECES = ["'", "''", '"', "\\", "`touch pwned`", "@x", "#", "{", "}", "$", "%", "%%", "%s", "\\n", "\\101", "\\U+0041",
          ";", "!", "0", "7", "a", "Z", " ", "é", "中", "&", "<b>", "=", "^", "_"]


@pytest.mark.parametrize("title", ["'a'", "a''b", "'", "''", "'x", "x'", '"', "\\", "a\\", "100 %", "\\047", "{/*9 a}"])
def test_titles_of_quotes(runs, title):
    found = texts(runs, f"a.tmk --title {shlex.quote(title)}")
    assert found[0] == title


def strange(source, columns):
    """As long as that; without blanks at its ends and next to another, which SVG does not keep."""
    made = ""
    while columns_of(made) < columns:
        made += source.choice(PIECES)
    while columns_of(made) > columns:
        made = made[:-1]
    return re.sub(r"\s+", " ", made).strip()


@pytest.mark.parametrize("seed", range(8))
def test_values_of_a_sweep(sweep, seed):
    """Labels of tics, of graphs, of bars, and the legend's."""
    source = random.Random(seed)
    values = sorted({strange(source, 9) for _ in range(6)})
    write_sweep(sweep / "strange", {"seq": ["1", "2", "3"], "b": values}, lambda i: "done")
    for kind in KINDS:
        found = texts(sweep, f"strange --kind {kind}")
        if kind in ("overview", "heatmap"):
            assert set(values) <= set(full_texts_of(sweep / "p.svg")), (kind, values, found)
    assert not (sweep / "pwned").exists()


def test_long_labels_of_tics(sweep):
    """They are shortened in the middle, between characters and never before an accent."""
    values = ["%", "100%" + "中" * 24, "中" * 20 + "%s" + "中" * 8, "%" + "e\u0301" * 40]
    write_sweep(sweep / "percent", {"seq": ["1", "2"], "b": values}, lambda i: "done")
    for kind in KINDS:
        found = texts(sweep, f"percent --kind {kind}")
        assert not any("\ufffd" in text for text in found)
        assert not any("…\u0301" in text for text in found)
        if kind == "heatmap":
            assert "%" in found and any(re.fullmatch("100%中*…中+", text) for text in found), found
            assert set(values) <= set(full_texts_of(sweep / "p.svg"))


# ---- where it is written

def test_to_stdout(runs):
    """An SVG, the same as in a file."""
    done = shell("tidemark plot a.tmk -o - | cat", runs)
    assert not done.stderr
    plot(runs, "a.tmk")
    assert done.stdout == (runs / "p.svg").read_text(encoding="utf-8")
    done = shell("script -qec 'tidemark plot a.tmk -o -' /dev/null", runs)
    assert "stdout, which is a terminal" in done.stdout + done.stderr


def test_stdout_as_it_is(runs):
    """What stands in the file stays, and a closed stdout is no picture."""
    shell("{ echo before; tidemark plot a.tmk -o -; echo behind; } >s.txt", runs)
    text = (runs / "s.txt").read_text(encoding="utf-8")
    assert text.startswith("before\n<svg ") and text.endswith("</svg>\nbehind\n")
    done = shell("tidemark plot a.tmk -o - >&-", runs)
    assert done.returncode == 1 and "tidemark: - could not be written: " in done.stderr


def test_own_name(runs):
    done = shell("mkdir -p elsewhere; cd elsewhere; tidemark plot ../a.tmk/ --kind heatmap", runs)
    assert done.returncode == 0 and done.stderr.endswith("tidemark: picture written to a-heatmap.png\n")
    assert read_png(runs / "elsewhere" / "a-heatmap.png")[0] == 2000


def test_without_cairo(runs):
    """An SVG is drawn all the same, and it is what is drawn when no name is given."""
    (runs / "lib").mkdir()
    (runs / "lib" / "libcairo.so.2").touch()
    for name in ("p.png", "p.pdf"):
        done = shell(f"LD_LIBRARY_PATH=lib tidemark plot a.tmk -o {name}", runs)
        assert done.returncode == 1 and not (runs / name).exists()
        assert done.stderr.startswith("tidemark: PNG and PDF are drawn with cairo and Pango, which are not there (")
        assert done.stderr.endswith("): apt-get install libpangocairo-1.0-0. An SVG needs neither: -o FILE.svg\n")
    for words in ("-o p.svg", ""):
        done = shell(f"LD_LIBRARY_PATH=lib tidemark plot a.tmk {words}", runs)
        assert done.returncode == 0, done.stderr
    assert (runs / "a-timeline.svg").read_bytes() == (runs / "p.svg").read_bytes()


def test_full_disk(runs):
    for name in ("png", "svg", "pdf"):
        (runs / f"full.{name}").symlink_to("/dev/full")
        done = shell(f"tidemark plot a.tmk -o full.{name}", runs)
        assert done.returncode == 1
        assert done.stderr == f"tidemark: full.{name} could not be written: No space left on device\n"


# ---- the pictures of the documents

@pytest.mark.parametrize("words,name", [("ooms/oom_growth.trace", "timeline-oom")] + [
    (f"sweep/{folder} --kind {kind}", f"{name}-{kind}")
    for folder, name in (("llama", "lora-sweep"), ("tinytrain", "sweep")) for kind in KINDS])
def test_pictures_of_the_documents(words, name):
    """Those of what is in the repository are what the command gives now."""
    done = shell(f"tidemark plot tests/data/{words} -o - | cmp - docs/pictures/{name}.svg", ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not overlaps(f"{ROOT}/docs/pictures/{name}.svg")


def test_picture_of_the_readme():
    """It is what the command gives now: of a run on an H200."""
    done = shell("tidemark plot tests/data/ooms/leak.trace -o - | cmp - docs/picture.svg", ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not overlaps(f"{ROOT}/docs/picture.svg")
    assert {"limit", "1018.0 MiB", "peak 1011.0 MiB, in step 66"} <= set(texts_of(f"{ROOT}/docs/picture.svg"))
