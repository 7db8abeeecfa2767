# SPDX-License-Identifier: MIT
"""A sweep whose repeats differ: page, console, files and pictures say the same of each configuration, the largest
peak of its repeats. The sweep is made up; nothing is run."""
import csv
import itertools
import json
import re

import pytest
from pictures import bytes_of_y, groups_of, texts_of
from test_golden import shell

MIB = 1 << 20
SEQS, BATCHES = (128, 256, 512), (1, 2, 8)  # the batch does more than the sequence
GRID = list(itertools.product(SEQS, BATCHES))
MIXED = (256, 2)  # its first repeat ran out of memory


def largest_of(seq, batch):
    """8 MiB, and 10 KiB for each token."""
    return 8 * MIB + seq * batch * 10240


def peak_of(seq, batch, repeat):
    """The large one is the first repeat of some and the second of others; the other one has less than a third of it."""
    is_large = repeat == (1 if (seq, batch) == MIXED else (GRID.index((seq, batch)) + 1) % 2)
    return largest_of(seq, batch) if is_large else largest_of(seq, batch) * 3 // 10


def cell_line(number):
    (seq, batch), repeat = GRID[number // 2], number % 2
    is_oom = (seq, batch) == MIXED and repeat == 0
    peak = None if is_oom else peak_of(seq, batch, repeat)
    shares = {} if is_oom else {"activation": peak}
    return json.dumps({
        "cell": number, "params": {"seq": str(seq), "batch": str(batch)}, "repeat": repeat,
        "outcome": "oom" if is_oom else "done", "exit_status": int(is_oom), "message": None, "ns": 10**9, "run": None,
        "log": None, "device": "cuda:0", "capacity": 24 << 30, "peak_allocated": peak, "peak_reserved": peak,
        "peak_device": None, "peak_step": 1, "n_steps": 3, "categories": shares, "components": shares,
        "at_stage": shares, "stages": [] if is_oom else [{
            "name": "forward", "peak": peak, "end": peak, "allocated": peak, "times": 3, "ns": 5000}], "ranks": []})


@pytest.fixture(scope="module", name="sweep")
def make_sweep(tmp_path_factory):
    """The folder, and what the console said of it."""
    folder = tmp_path_factory.mktemp("repeats") / "s"
    folder.mkdir()
    head = {"tidemark_sweep": 1, "title": "train", "where": [], "repeats": 2, "command": ["train"], "options": [],
            "params": [{"name": "seq", "values": [str(seq) for seq in SEQS]},
                       {"name": "batch", "values": [str(batch) for batch in BATCHES]}]}
    lines = [json.dumps(head), *(cell_line(i) for i in range(2 * len(GRID)))]
    (folder / "sweep.jsonl").write_text("\n".join(lines) + "\n")
    done = shell("tidemark sweep --no-pictures --resume s", folder.parent)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def text_of(size):
    return f"{size / MIB:.1f} MiB"


def as_read(text):
    """Without line breaks."""
    return re.sub(r"\s+", " ", text)


def test_heat_table_of_the_page(sweep):
    page = (sweep[0] / "index.html").read_text(encoding="utf-8")
    table = page.split('<table class="heat">')[1].split("</table>")[0]
    assert "<tr><th>batch ↓ seq →</th>" in table
    rows = [re.findall(r'<td class="n[^>]*>(.*?)</td>', row) for row in table.split("<tr>")[2:]]
    assert rows == [[text_of(largest_of(seq, batch)) +
                     (' <span class="bad">1 of 2</span>' if (seq, batch) == MIXED else "") for seq in SEQS]
                    for batch in BATCHES]


def test_charts_of_the_page(sweep):
    page = (sweep[0] / "index.html").read_text(encoding="utf-8")
    charts = page.split('<svg class="chart"')[1:]
    assert len(charts) == 2
    for chart in charts:
        points = re.findall(r"<title>seq=(\d+) batch=(\d+) repeat \d of 2: ([^<,]*)"
                            r"(?:, 1 of 2 repeats ended well)?</title>", chart.split("</div>")[0])
        assert sorted((int(seq), int(batch), size) for seq, batch, size in points) == [
            (*key, text_of(largest_of(*key))) for key in GRID]
    assert "Crosses" not in page and "Hollow" not in page  # each configuration was measured


def test_console(sweep):
    said, most = as_read(sweep[1]), text_of(largest_of(512, 8))
    assert f"The largest peak that ended well: {most}, seq=512 batch=8 repeat 2 of 2." in said
    assert f"Peak of the largest configuration, seq=512 batch=8 repeat 2 of 2: {most[:-4]}0 MB" in said
    assert f"{text_of(largest_of(128, 8))} at 128, {most} at 512" in said
    assert f"{text_of(largest_of(512, 1))} at 1, {most} at 8" in said
    assert "without a measured peak" not in said


def test_files(sweep):
    """Rows are cells. The sentences are about configurations."""
    document = json.loads((sweep[0] / "memory_profile_results.json").read_text())
    with open(sweep[0] / "memory_profile_summary.csv", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for number, (result, row) in enumerate(zip(document["results"], rows)):
        (seq, batch), repeat = GRID[number // 2], number % 2
        peak = None if (seq, batch) == MIXED and repeat == 0 else peak_of(seq, batch, repeat)
        assert result["peak_allocated"] == peak and row["peak_allocated"] == ("" if peak is None else str(peak))
    most = text_of(largest_of(512, 8))
    texts = {i["parameter"]: i["text"] for i in document["influence"]}
    assert f"{text_of(largest_of(128, 8))} at 128, {most} at 512" in texts["seq"]
    assert f"{text_of(largest_of(512, 1))} at 1, {most} at 8" in texts["batch"]


def picture_of(folder, kind):
    path = folder.parent / "p.svg"
    done = shell(f"tidemark plot s --kind {kind} -o p.svg", folder.parent)
    assert done.returncode == 0, done.stderr
    return path


def test_overview_picture(sweep):
    """A disc for each configuration of the first graph, as high as its largest repeat."""
    path = picture_of(sweep[0], "overview")
    zero, scale = bytes_of_y(path)
    discs = [(title, float(shapes[0].get("cy"))) for title, shapes in groups_of(path)
             if shapes and shapes[0].tag.endswith("circle")][:len(SEQS) * len(BATCHES)]
    assert [title for title, _ in discs] == [
        f"seq={seq} batch={batch}: {text_of(largest_of(seq, batch))}" for seq in SEQS for batch in BATCHES]
    for (_, y), (seq, batch) in zip(discs, ((seq, batch) for seq in SEQS for batch in BATCHES)):
        assert (zero - y) * scale == pytest.approx(largest_of(seq, batch), abs=0.15 * scale)


def test_heatmap_picture(sweep):
    path = picture_of(sweep[0], "heatmap")
    cells = {title: shapes[0].get("fill") for title, shapes in groups_of(path)}
    assert set(cells) == {f"seq={seq} batch={batch}" for seq in SEQS for batch in BATCHES}
    assert len(set(cells.values())) == len({largest_of(seq, batch) for seq in SEQS for batch in BATCHES})
    found = texts_of(path)
    for seq, batch in GRID:
        value = largest_of(seq, batch) / MIB
        assert f"{value:.{2 if value < 10 else 1 if value < 1000 else 0}f}" in found
    assert found.count("1 of 2") == 1


@pytest.mark.parametrize("kind", ["components", "operations"])
def test_bars_of_the_pictures(sweep, kind):
    found = " ".join(texts_of(picture_of(sweep[0], kind)))
    for seq, batch in GRID:
        assert text_of(largest_of(seq, batch)) in found, (seq, batch)
