# SPDX-License-Identifier: MIT
"""What people read in Chinese: the catalogue is whole, screens fit their width, and data stays as it is."""
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import unicodedata

import pytest
from test_golden import BUILD, ROOT, environment, need, workshop

sys.path.insert(0, os.path.join(ROOT, "tools"))
import c_messages  # noqa: E402
import po_file  # noqa: E402

PO = os.path.join(ROOT, "po", "zh_CN.po")
TRANSLATIONS = os.path.join(ROOT, "tools", "translations")
OOM = os.path.join(ROOT, "tests", "data", "ooms", "fragmentation.trace")
WIDE = "WF"


def tidemark(*words, columns="80", **settings):
    for word in words:
        if word in ("a.tmk", "leak.tmk", "ranks.tmk"):
            need(word)
    own = {name: value for name, value in environment().items() if name not in ("LC_ALL", "LANG")}
    done = subprocess.run([os.path.join(BUILD, "tidemark"), *words], cwd=workshop().name, capture_output=True,
                          env={"LANG": "C.UTF-8", **own, "COLUMNS": columns, **settings}, timeout=60, check=False,
                          stdin=subprocess.DEVNULL)
    return done


def test_catalogue():
    """If this fails: tools/translations update, then translate what tools/translations list shows."""
    done = subprocess.run([sys.executable, "-B", TRANSLATIONS, "check", os.path.join(BUILD, "tidemark")],
                          capture_output=True, text=True, check=False)
    assert done.stdout == "" and done.returncode == 0, done.stdout + done.stderr


def test_gettext_reads_it():
    """It is a catalogue as gettext has them: msgfmt takes it, and finds no mistake in its formats."""
    assert shutil.which("msgfmt"), "apt-get install gettext"
    done = subprocess.run(["msgfmt", "--check", "--output-file=/dev/null", PO], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


def entry(msgid, msgstr, *flags):
    made = po_file.Entry()
    made.msgid, made.msgstr, made.flags = msgid, msgstr, set(flags)
    return made


def test_po_is_read_as_written():
    made = entry('a "b"\n\tc\\', "甲\n乙", "c-format")
    read = po_file.read_po(po_file.write_entry(made) + "\n" + po_file.write_entry(entry("x", "y")))
    assert [(one.msgid, one.msgstr) for one in read] == [(made.msgid, made.msgstr), ("x", "y")]


def mistake_of(english, chinese):
    code = ("import importlib.machinery, importlib.util, sys; sys.path.insert(0, sys.argv[1]);"
            "loader = importlib.machinery.SourceFileLoader('translations', sys.argv[1] + '/translations');"
            "module = importlib.util.module_from_spec(importlib.util.spec_from_loader('translations', loader));"
            "loader.exec_module(module); print(module.format_mistake(sys.argv[2], sys.argv[3]) or '')")
    return subprocess.run([sys.executable, "-B", "-c", code, os.path.join(ROOT, "tools"), english, chinese],
                          capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("english, chinese, is_right", [
    ("%s of %d", "%s，%d", True), ("%s of %d", "%2$d：%1$s", True), ("%s block%s", "%s 个块%.0s", True),
    ("%s of %d", "%d，%s", False), ("%s of %d", "%2$d", False), ("%s", "%s %s", False),
    ("%s of %d", "%1$s，%d", False), ("%<PRIu64> %%", "%<PRIu64> %%", True), ("%<PRIu64>", "%<PRIu32>", False)])
def test_formats(english, chinese, is_right):
    assert (mistake_of(english, chinese) == "") == is_right


def test_texts_are_found():
    """By call, by argument, on both sides of a choice, joined with macros; and what nothing translates."""
    source = textwrap.dedent('''
    #define NAME "a name"
    /* tmk_say("not this") */
    tmk_say(n == 1 ? "one" : "some %" PRIu64 " of "
            "them", n, "no message");
    tmk_fail(err, RC, ("in brackets"));
    printf(tmk_plural("thing", "things", n), NAME);
    fputs("Forgotten words.", out);
    ''')
    found, rest = c_messages.messages_of({"src/x.c": source})
    assert sorted(found) == ["in brackets", "one", "some %<PRIu64> of them", "thing"]
    assert found["thing"].several == "things"
    assert [text.value for text in rest["src/x.c"]] == ["a name", "no message", "a name", "Forgotten words."]


# ---- languages

@pytest.mark.parametrize("settings, is_chinese", [
    ({"LANG": "zh_CN.UTF-8"}, True), ({"LANG": "zh_CN"}, True), ({"LANG": "zh_SG.UTF-8"}, True),
    ({"LANG": "C.UTF-8", "LANGUAGE": "zh_CN:en"}, True), ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh"}, True),
    ({"LANG": "C", "TIDEMARK_LANG": "zh"}, True), ({"LANG": "zh_CN.UTF-8", "TIDEMARK_LANG": "en"}, False),
    ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, False), ({"LANG": "xx_YY.UTF-8"}, False),
    ({"LANG": "zh_TW.UTF-8"}, False), ({"LANG": "zh_CN.GB18030"}, False), ({"LANG": "C", "LANGUAGE": "zh"}, False)])
def test_language(settings, is_chinese):
    text = tidemark("peak", "--help", **settings).stdout.decode()
    assert ("用法：" in text) == is_chinese and ("usage:" in text) != is_chinese


@pytest.mark.parametrize("words", [("--lang", "zh", "peak", "--help"), ("peak", "--lang=zh", "--help"),
                                   ("--lang", "zh", "frobnicate")])
def test_option(words):
    done = tidemark(*words, LANG="C.UTF-8")
    assert re.search("[一-鿿]", (done.stdout + done.stderr).decode())


def test_run_leaves_the_programs_own_option():
    done = tidemark("run", "-q", "-o", "lang.tmk", "--", "sh", "-c", 'echo "$@"', "sh", "--lang", "zh")
    assert done.stdout == b"--lang zh\n"


# ---- screens

def columns_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in WIDE else 1 for c in line)


SCREENS = [("--help",), ("report", "leak.tmk"), ("report", "leak.tmk", "--full"), ("report", OOM), ("report", "ranks.tmk"),
           ("explain", OOM), ("leak", "leak.tmk"), ("leak", "a.tmk"), ("peak", "a.tmk"),
           ("peak", "a.tmk", "--by", "module"), ("frag", OOM), ("whatif", OOM), ("diff", "a.tmk", "leak.tmk"), ("tables",),
           *((command, "--help") for command in ("run", "peak", "leak", "sweep", "fleet", "monitor"))]


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_screen(words, columns):
    """It is in Chinese, and no line is wider than the screen, counted in columns."""
    done = tidemark(*words, columns=columns, TIDEMARK_LANG="zh")
    text = done.stdout.decode()
    assert len(re.findall("[一-鿿]", text)) > 5, text + done.stderr.decode()
    english = tidemark(*words, columns=columns).stdout.decode()
    widest = max(map(columns_of, english.splitlines()))
    for line in text.splitlines():
        assert columns_of(line) <= max(int(columns), widest), line


def test_table_is_aligned():
    """The columns of a table stand below each other, wide characters counted as two columns."""
    lines = tidemark("peak", "a.tmk", TIDEMARK_LANG="zh").stdout.decode().splitlines()
    rows = [line for line in lines if re.match(r"  (激活|参数|梯度|优化器状态|临时) ", line)]
    assert len(rows) == 5
    assert len({columns_of(re.match(r".*?[KMG]iB", row)[0]) for row in rows}) == 1


def test_top():
    """Chinese on a screen that has it; English, not question marks, on one in ASCII."""
    assert re.search("[一-鿿]", tidemark("top", "--once", TIDEMARK_LANG="zh").stdout.decode())
    assert "?" not in tidemark("top", "--once", TIDEMARK_LANG="zh", LC_ALL="C").stdout.decode()


# ---- data

DATA = [("peak", "a.tmk", "--json"), ("leak", "leak.tmk", "--json"), ("explain", OOM, "--json"), ("frag", OOM, "--json"),
        ("whatif", OOM, "--json"), ("diff", "a.tmk", "leak.tmk", "--json"), ("report", OOM, "--format", "json"),
        ("report", "leak.tmk", "--format", "csv"), ("check", OOM, "--json"), ("tables", "--json"),
        ("query", OOM, "SELECT * FROM explanations"), ("query", "leak.tmk", "SELECT * FROM leaks", "--format", "csv"),
        ("query", OOM, "SELECT * FROM forecast", "--format", "json"), ("completion", "bash"),
        ("export", "a.tmk", "--to", "csv", "-o", "-"), ("help", "--markdown")]


@pytest.mark.parametrize("words", DATA, ids=lambda words: " ".join(words[:3]))
def test_data_has_no_language(words):
    english, chinese = tidemark(*words), tidemark(*words, TIDEMARK_LANG="zh")
    assert chinese.stdout == english.stdout and english.stdout
    assert chinese.returncode == english.returncode


def test_sweep_files_have_no_language():
    """A sweep's screen is in Chinese, and its files are not; a parameter's name is nobody's word."""
    done = tidemark("sweep", "--param", "step=1,2,3", "-o", "zh", "--no-pictures", "--", "tinytrain", "--quiet",
                    "--steps", "{step}", TIDEMARK_LANG="zh")
    screen = done.stdout.decode()
    assert done.returncode == 0 and "配置" in screen and re.search(r"^ *step +结果 +峰值", screen, re.M), screen
    folder = os.path.join(workshop().name, "zh")
    for name in ("memory_profile_results.json", "memory_profile_summary.csv", "index.html", "sweep.jsonl"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            assert not re.search("[一-鿿]", file.read()), name


def test_monitors_report_has_no_language():
    done = tidemark("profile", "--duration", "0.2", "--output", "zh.json", TIDEMARK_LANG="zh")
    assert "设备" in done.stdout.decode()
    with open(os.path.join(workshop().name, "zh.json"), encoding="utf-8") as file:
        assert not re.search("[一-鿿]", file.read())


def test_errors_beside_data_are_translated():
    done = tidemark("peak", "nosuch.tmk", "--json", TIDEMARK_LANG="zh")
    assert done.stdout == b"" and "tidemark run -o NAME.tmk" in done.stderr.decode()
    assert re.search("[一-鿿]", done.stderr.decode())


def test_messages_are_json():
    texts = json.loads(tidemark("help", "--messages").stdout)
    assert len(texts) > 500 and all(isinstance(text, str) for text in texts)
