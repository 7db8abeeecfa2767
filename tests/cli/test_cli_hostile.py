# SPDX-License-Identifier: MIT
"""Texts of strangers in what readers print: escapes, marks that turn the direction of writing and
bytes that are not UTF-8 are made visible; cells that begin a formula are quoted on request; SQL
reads and does nothing else.
"""
import csv
import io
import json
import os
import re
import shutil
import subprocess
import unicodedata
from xml.etree import ElementTree

import pytest
from test_cli_limits import dict_of, list_of, number, text
from test_golden import BUILD, environment

TIDEMARK = os.path.join(BUILD, "tidemark")
# Clears the screen, sets the title, turns the direction round, hides, breaks lines and UTF-8.
NASTY = ("\x1b[2J\x1b]0;owned\x07\u202eevil\u2066\u2069\u200b\u200f\u061c\u2028\x9b31m\ufeff\r\n\t"
         "\U000e0041").encode() + b"\xff\xc3(\xed\xa0\x80"
ALLOWED = {"\n"}


def nasty(before=b"", after=b""):
    raw = before + NASTY + after
    return b"X" + len(raw).to_bytes(4, "little") + raw


def event(action, address, size, time, **more):
    return dict_of(action=text(action), addr=number(address), size=number(size),
                   time_us=number(time), **more)


def snapshot():
    frames = list_of(dict_of(filename=nasty(b"/home/", b".py"), line=b"K\x05", name=nasty(b"f")))
    events = []
    for i in range(12):
        events += [event("alloc", (1 << 32) + i * 512, 512, 10 * i + 1, frames=frames,
                         user_metadata=nasty(b"=1+1"))]
    events += [event("oom", 0, 1 << 20, 200, frames=frames)]
    annotations = list_of(dict_of(name=nasty(b"@step"), stage=text("START"), device=b"K\x00",
                                  time_us=number(5)),
                          dict_of(name=nasty(b"@step"), stage=text("END"), device=b"K\x00",
                                  time_us=number(190)))
    segments = list_of(dict_of(address=number(1 << 32), total_size=number(2 << 20),
                               device=b"K\x00", frames=frames, blocks=b"]"))
    return b"\x80\x02" + dict_of(segments=segments, device_traces=list_of(list_of(*events)),
                                 external_annotations=annotations) + b"."


def tidemark(*args, cwd):
    done = subprocess.run([TIDEMARK, *args], cwd=cwd, env=environment(), capture_output=True,
                          timeout=240, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def check_visible(raw, allowed=frozenset(ALLOWED)):
    """Nothing in it drives a terminal, turns the text round or is not UTF-8."""
    shown = raw.decode("utf-8")
    bad = {repr(c) for c in shown if c not in allowed
           and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert not bad, shown[:2000]
    return shown


@pytest.fixture(scope="module", name="folder")
def folder_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    name = os.fsencode(folder) + b"/in " + NASTY.replace(b"/", b"")
    with open(name, "wb") as file:
        file.write(snapshot())
    done = subprocess.run([TIDEMARK, "import", name, "-o", "a.tmk"], cwd=folder, check=False,
                          env=environment(), capture_output=True)
    assert done.returncode == 0, done.stderr
    (folder / "said").write_bytes(done.stderr)
    (trace,) = os.listdir(folder / "a.tmk")
    os.rename(folder / "a.tmk" / trace, os.fsencode(folder / "a.tmk") + b"/x" + NASTY + b".trace")
    shutil.copytree(folder / "a.tmk", folder / "b.tmk")
    return folder


TEXTS = [
    ["report", "a.tmk"], ["report", "a.tmk", "--format", "md"],
    *[["peak", "a.tmk", "--by", by] for by in
      ("category", "module", "stage", "tensor", "stack", "component", "step")],
    ["check", "a.tmk"], ["leak", "a.tmk"], ["diff", "a.tmk", "b.tmk"], ["frag", "a.tmk"],
    ["explain", "a.tmk"], ["whatif", "a.tmk"],
    ["query", "a.tmk", "SELECT * FROM frames"], ["query", "a.tmk", "SELECT * FROM processes"],
    ["query", "a.tmk", "SELECT * FROM ranges"], ["query", "a.tmk", "SELECT * FROM tensors"],
    ["export", "a.tmk", "--to", "folded", "-o", "-"],
]


def test_import(folder):
    assert "owned" in check_visible((folder / "said").read_bytes())


@pytest.mark.parametrize("args", TEXTS, ids=" ".join)
def test_texts(folder, args):
    status, out, said = tidemark(*args, cwd=folder)
    assert status in (0, 1), said
    check_visible(out)
    check_visible(said)


def test_markdown_shows_where_something_was(folder):
    _, out, _ = tidemark("report", "a.tmk", "--format", "md", cwd=folder)
    shown = out.decode()
    assert "\ufffd[2J\ufffd]0;owned\ufffd\ufffdevil" in shown.replace("\\", "")
    assert "in \ufffd[2J" in shown.replace("\\", "") # the command


def test_markdown_is_only_text(folder, tmp_path):
    """No link, picture, HTML or mention comes of a name (kit/markdown.h)."""
    name = "![x](www.evil) [log in](x) @root fixes #1 <b>&amp; a|b"
    with open(tmp_path / name, "wb") as file:
        file.write(snapshot())
    status, _, said = tidemark("import", name, "-o", name + ".tmk", cwd=tmp_path)
    assert status == 0, said
    _, out, _ = tidemark("report", name + ".tmk", "--format", "md", cwd=tmp_path)
    shown = "!\\[x\\](www&#8203;.evil) \\[log in\\](x) @&#8203;root fixes \\#&#8203;1 \\<b\\>\\&amp; a\\|b"
    lines = out.decode().splitlines()
    assert lines[0] == f"# tidemark report: {shown}.tmk"
    assert [line for line in lines[1:] if "www" in line] == [
        f"next: tidemark explain '{shown}.tmk'", f"| program | torch snapshot {shown} |",
        f"everything: tidemark report '{shown}.tmk' --full"]


CSVS = [
    ["report", "a.tmk", "--format", "csv"],
    ["query", "a.tmk", "SELECT * FROM frames", "--format", "csv"],
    ["query", "a.tmk", "SELECT * FROM tensors", "--format", "csv"],
    ["query", "a.tmk", "SELECT * FROM processes", "--format", "csv"],
    ["export", "a.tmk", "--to", "csv", "--table", "frames", "-o", "-"],
]


@pytest.mark.parametrize("args", CSVS, ids=" ".join)
def test_csv(folder, args):
    """Line ends and tabs may stand in a quoted cell; everything else is made visible."""
    status, out, said = tidemark(*args, cwd=folder)
    assert status == 0, said
    shown = check_visible(out, frozenset("\n\r\t"))
    rows = list(csv.reader(io.StringIO(shown, newline="")))
    assert len({len(row) for row in rows}) == 1
    assert any("\ufffd[2J\ufffd]0;owned" in cell for row in rows for cell in row)


def test_junit(folder):
    """The names of both runs stand in it."""
    name = b"in " + NASTY + b".tmk"
    os.symlink("a.tmk", os.fsencode(folder) + b"/" + name)
    status, _, said = tidemark("diff", name, "b.tmk", "--fail-if", "peak>5%", "--junit", "out.xml",
                               cwd=folder)
    assert status == 0, said
    shown = check_visible((folder / "out.xml").read_bytes())
    assert "in \ufffd[2J\ufffd]0;owned" in ElementTree.fromstring(shown).get("name")


def texts_in(value):
    """All texts of a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [found for part in inner for found in texts_in(part)]


@pytest.mark.parametrize("args", [["report", "a.tmk", "--json"], ["check", "a.tmk", "--json"],
                                  ["query", "a.tmk", "SELECT * FROM frames", "--json"]],
                         ids=" ".join)
def test_json_is_exact(folder, args):
    """Escapes keep what was there; only bytes that are not UTF-8 are lost."""
    status, out, said = tidemark(*args, cwd=folder)
    assert status == 0, said
    check_visible(out)
    exact = NASTY.decode(errors="ignore").split("(")[0]
    assert any(exact in found for found in texts_in(json.loads(out)))


def test_names_in_messages(tmp_path):
    missing = b"no" + NASTY
    for args in (["report", missing], ["check", missing], ["import", missing], ["model", missing],
                 ["query", missing, "SELECT 1"], ["run", "-o", b"x.tmk", "--", missing],
                 [missing], ["report", b"--" + NASTY]):
        status, out, said = tidemark(*args, cwd=tmp_path)
        assert status != 0
        check_visible(out)
        assert "owned" in check_visible(said)


def test_sql_in_messages(folder):
    status, out, said = tidemark("query", "a.tmk", b"SELECT " + NASTY, cwd=folder)
    assert status == 2 and out == b""
    check_visible(said)
    status, out, said = tidemark("query", "a.tmk", b"SELECT 1; " + NASTY, cwd=folder)
    assert status == 2 and out == b"1\n1\n"
    check_visible(said)


def test_names_of_tensors(tmp_path):
    header = json.dumps({NASTY.decode(errors="ignore"): {
        "dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    status, out, said = tidemark("model", "a.safetensors", cwd=tmp_path)
    assert status == 0, said
    assert "owned" in check_visible(out)


# ---- formulas in CSV

def rows_of(raw):
    return list(csv.reader(io.StringIO(raw.decode(), newline="")))


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\uff1d", "\uff0b",
                                   "\uff0d", "\uff20"])
def test_cells_that_begin_a_formula(folder, begin):
    sql = f"SELECT '{begin}1+1' AS a, -5 AS b, -2.5 AS c, 'plain' AS d, '' AS e, NULL AS f"
    _, plain, _ = tidemark("query", "a.tmk", sql, "--format", "csv", cwd=folder)
    assert rows_of(plain)[1] == [f"{begin}1+1", "-5", "-2.5", "plain", "", ""]
    status, safe, said = tidemark("query", "a.tmk", sql, "--format", "csv", "--csv-safe",
                                  cwd=folder)
    assert status == 0, said
    shown = "\ufffd" if begin in "\r\n" else begin
    assert rows_of(safe)[1] == [f"'{shown}1+1", "-5", "-2.5", "plain", "", ""]
    assert safe.decode().split("\n", 1)[1].startswith(f'"\'{shown}')


@pytest.mark.parametrize("args", CSVS, ids=" ".join)
def test_safe_rows_are_lines(folder, args):
    """Line ends of a text would begin a row where a reader goes by lines."""
    _, plain, _ = tidemark(*args, cwd=folder)
    status, safe, said = tidemark(*args, "--csv-safe", cwd=folder)
    assert status == 0, said
    check_visible(safe, frozenset("\n\t"))
    assert safe.count(b"\n") == len(rows_of(plain)) == len(rows_of(safe))
    assert b"\r\n" in plain and b"\r" not in safe


def test_safe_cells_of_reports_and_exports(folder):
    for args in (["report", "a.tmk", "--format", "csv"],
                 ["export", "a.tmk", "--to", "csv", "--table", "tensors", "-o", "-"],
                 ["export", "a.tmk", "--to", "csv", "--table", "ranges", "-o", "-"]):
        _, plain, _ = tidemark(*args, cwd=folder)
        status, safe, said = tidemark(*args, "--csv-safe", cwd=folder)
        assert status == 0, said
        pairs = [(a, b) for before, after in zip(rows_of(plain), rows_of(safe), strict=True)
                 for a, b in zip(before, after, strict=True)]
        changed = {(a, b) for a, b in pairs if a != b}
        lines = {(re.sub("[\r\n]", "\ufffd", a), b) for a, b in changed}
        assert changed and all(b == "'" + a and a[0] in "=@" for a, b in lines if a != b)
        assert not any(b[:1] in ("=", "+", "@") for _, b in pairs)


def test_safe_cells_are_of_csv(folder):
    for args, reason in ((["report", "a.tmk"], b"needs --format csv"),
                         (["query", "a.tmk", "SELECT 1"], b"needs --format csv"),
                         (["export", "a.tmk", "--to", "folded", "-o", "-"], b"means nothing for folded")):
        status, out, said = tidemark(*args, "--csv-safe", cwd=folder)
        assert status == 2 and out == b""
        assert b"--csv-safe " + reason in said


@pytest.mark.parametrize("sql, wrong", [
    ("SELECT 1; -- a\n SELECT nope1", "no such column: nope1"),
    ("SELECT 1; /* a */ x", 'near "x": syntax error'),
    ("SELECT 1; /", 'near "/": syntax error'),
    ("SELECT 1; DROP TABLE peak; SELECT 2", "query only reads: DROP is refused"),
])
def test_statements_in_turn(folder, sql, wrong):
    """Up to the first that fails."""
    status, out, said = tidemark("query", "a.tmk", sql, cwd=folder)
    assert status == 2 and out == b"1\n1\n"
    assert wrong.encode() in said


@pytest.mark.parametrize("sql", ["", ";", "-- a", "/* a */ ; -- b"])
def test_no_query(folder, sql):
    status, out, said = tidemark("query", "a.tmk", sql, cwd=folder)
    assert status == 2 and out == b""
    assert b"that is no query" in said


# ---- SQL reads only

WRITES = [
    "ATTACH 'out.db' AS o",
    "ATTACH ':memory:' AS o",
    "DETACH python",
    "VACUUM",
    "VACUUM INTO 'out.db'",
    "CREATE TABLE t(a)",
    "CREATE TEMP TABLE t(a)",
    "CREATE TABLE t AS SELECT * FROM peak",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE TEMP TRIGGER t AFTER INSERT ON peak BEGIN SELECT 1; END",
    "CREATE INDEX i ON peak(size)",
    "CREATE VIRTUAL TABLE t USING fts5(a)",
    "CREATE VIRTUAL TABLE temp.t USING fts4(a)",
    "CREATE VIRTUAL TABLE t USING rtree(a, b, c)",
    "DROP TABLE peak",
    "ALTER TABLE peak RENAME TO p",
    "INSERT INTO peak VALUES (1)",
    "UPDATE peak SET size = 1",
    "DELETE FROM peak",
    "DELETE FROM sqlite_schema",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "SAVEPOINT a",
    "SELECT load_extension('./evil.so')",
    "SELECT writefile('out.db', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT edit('a')",
    "PRAGMA writable_schema = 1",
    "PRAGMA journal_mode = WAL",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA data_store_directory = '/tmp'",
    "PRAGMA user_version = 5",
    "PRAGMA wal_checkpoint",
    "PRAGMA optimize",
    "PRAGMA incremental_vacuum",
    "SELECT * FROM pragma_journal_mode('WAL')",
    "EXPLAIN CREATE TABLE t(a)",
]


@pytest.mark.parametrize("sql", WRITES)
def test_query_reads_only(folder, tmp_path, sql):
    shutil.copytree(folder / "b.tmk", tmp_path / "a.tmk")
    status, out, said = tidemark("query", "a.tmk", sql, cwd=tmp_path)
    assert status == 2 and out == b"", (out, said)
    assert os.listdir(tmp_path) == ["a.tmk"]
    if "fts" not in sql and not sql.startswith("SELECT"):
        assert (b"query only reads: " in said or b" may not be " in said
                or b"on virtual tables" in said), said


@pytest.mark.parametrize("sql, name", [
    ("ANALYZE", "ANALYZE"),
    ("analyze peak", "ANALYZE"),
    ("/* a */ ANALYZE -- b", "ANALYZE"),
    ("EXPLAIN ANALYZE", "ANALYZE"),
    ("CREATE TABLE t(a)", "CREATE"),
    ("CREATE TEMP TABLE t(a)", "CREATE"),
    ("CREATE TABLE t AS SELECT 1", "CREATE"),
    ("CREATE VIEW v AS SELECT 1", "CREATE"),
    ("CREATE VIRTUAL TABLE t USING fts5(a)", "CREATE"),
    ("DROP TABLE peak", "DROP"),
    ("REINDEX", "REINDEX"),
    ("VACUUM", "VACUUM"),
    ("INSERT INTO peak VALUES (1)", "INSERT"),
    ("ATTACH 'a' AS b", "ATTACH"),
    ("PRAGMA optimize", "PRAGMA optimize"),
])
def test_query_names_what_it_refuses(folder, sql, name):
    status, _, said = tidemark("query", "a.tmk", sql, cwd=folder)
    assert status == 2
    assert f"query only reads: {name} is refused".encode() in said, said


@pytest.mark.parametrize("sql", [
    "INSERT INTO sqlite_schema VALUES ('table', 't', 't', 0, 'CREATE TABLE t(a)')",
    "EXPLAIN INSERT INTO sqlite_schema VALUES ('table', 't', 't', 0, 'CREATE TABLE t(a)')",
    "INSERT INTO temp.sqlite_schema VALUES ('table', 't', 't', 0, 'CREATE TABLE t(a)')",
    "UPDATE sqlite_schema SET sql = ''",
])
def test_query_keeps_the_schema(folder, sql):
    status, out, said = tidemark("query", "a.tmk", sql, cwd=folder)
    assert status == 2 and out == b""
    assert b"may not be modified" in said, said


READS = [
    "SELECT 1",
    "VALUES (1, 2)",
    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
    "WITH b AS (SELECT device, sum(size) AS s FROM allocations GROUP BY device) SELECT * FROM b",
    "SELECT * FROM live_at(1000000000)",
    "SELECT json_extract('{\"a\": 1}', '$.a'), upper('a'), round(1.5), printf('%d', 3)",
    "SELECT value FROM json_each('[1, 2]')",
    "SELECT row_number() OVER (ORDER BY size) FROM allocations",
    "SELECT a.size FROM allocations a JOIN stacks s ON s.id = a.stack_id ORDER BY 1 LIMIT 3",
    "SELECT DISTINCT device FROM allocations ORDER BY device",
    "SELECT count(*) FROM (SELECT size FROM allocations UNION SELECT size FROM segments)",
    "SELECT * FROM python.torch_trace",
    "EXPLAIN SELECT * FROM peak",
    "EXPLAIN QUERY PLAN SELECT * FROM allocations WHERE size > 5",
    "PRAGMA table_info(allocations)",
    "PRAGMA table_xinfo(allocations)",
    "PRAGMA function_list",
    "PRAGMA compile_options",
    "SELECT name FROM pragma_table_info('peak')",
    "SELECT name FROM sqlite_schema",
    "SELECT sqlite_version()",
    "SELECT 1; -- a comment",
    "SELECT 1;; ;\n-- one\n-- two\n/* three */ ; /* open",
    "-- one\n/* two */; SELECT 1 -- three",
    "SELECT '-- a; /* b' /* c; */",
]


@pytest.mark.parametrize("sql", READS)
def test_queries_that_read(folder, sql):
    status, out, said = tidemark("query", "a.tmk", sql, "--format", "csv", cwd=folder)
    assert status == 0 and said == b"", said
    assert out.count(b"\n") >= 1
