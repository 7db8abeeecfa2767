# SPDX-License-Identifier: MIT
"""`tidemark report --format html` in Chromium: what it shows is what SQL says, it asks for nothing,
names stay text, it can be zoomed and read without eyes. With TIDEMARK_SHOTS=FOLDER, pictures."""
import base64
import json
import re
import zlib

import pytest
from web_kit import BUILD, sql, tidemark

RUNS = ["tiny", "ranks", "lora", "leak", "demand", "fragmentation", "hostile"]


def shown(browser, name):
    """The exact figure behind a text."""
    return browser.js("Number(document.querySelector(`[data-value='${arguments[0]}']`).dataset.exact)", name)


def sums(browser):
    """The rows of the table of what was allocated: {name: bytes}."""
    rows = browser.js(
        "[...document.querySelectorAll('#peak [data-key]')].map((e) => [e.dataset.key, Number(e.dataset.exact)])")
    return dict(rows)


def peak_of(run):
    return sql(run, "SELECT * FROM steps ORDER BY peak_allocated DESC, start_ns LIMIT 1")[0]


@pytest.mark.parametrize("name", RUNS)
def test_every_run(browser, page, name):
    run, file = page(name)
    browser.size(1280, 720)
    browser.open(file)
    browser.settle()
    errors, asked = browser.logs()
    assert errors == []
    assert [a for a in asked if not a.startswith(f"file://{file}")] == []
    assert file.stat().st_size < 1_000_000
    browser.shot(name)
    report = json.loads(tidemark("report", run, "--json"))
    assert browser.text(".verdict") == report["health"]["text"]
    assert str(-2**63) not in browser.text("body")  # no step is no number
    assert shown(browser, "peak") == peak_of(run)["peak_allocated"]
    assert shown(browser, "total") == peak_of(run)["peak_allocated"]


def test_peak_is_that_of_sql(browser, page):
    run, file = page("tiny")
    browser.open(file)
    for by, column in {"Category": "category", "Module": "module", "Component": "component",
                       "Stage": "stage", "Tensor": "tensor"}.items():
        browser.js("[...document.querySelectorAll('#peak button')].find((b) => b.textContent === arguments[0])"
                   ".click()", by)
        wanted = {row["key"] or "not known": row["bytes"] for row in sql(
            run, f"SELECT {column} AS key, sum(size) AS bytes FROM peak GROUP BY 1 "
                 "ORDER BY 2 DESC, 1 LIMIT 40")}
        found = sums(browser)
        assert len(found) == len(wanted) or by == "Tensor"
        assert {k: v for k, v in found.items() if k in wanted} == {k: wanted[k] for k in found if k in wanted}
        assert sum(found.values()) >= sum(wanted.values()) * 0.99


@pytest.mark.parametrize("part", [0.11, 0.5, 0.93])
def test_any_moment_is_that_of_sql(browser, page, part):
    run, file = page("tiny")
    end = sql(run, "SELECT max(end_ns) AS e FROM processes")[0]["e"]
    at = round(end * part)
    browser.open(file, f"#at={at / 1e9:.9f}")
    wanted = {row["category"]: row["bytes"] for row in sql(
        run, f"SELECT category, sum(size) AS bytes FROM live_at({at}) GROUP BY 1")}
    assert sums(browser) == wanted
    assert shown(browser, "total") == sum(wanted.values())


def test_two_moments(browser, page):
    """What changed since another moment is the difference of what SQL says of both."""
    run, file = page("tiny")
    end = sql(run, "SELECT max(end_ns) AS e FROM processes")[0]["e"]
    first, second = round(end * 0.3), round(end * 0.77)
    browser.open(file, f"#at={second / 1e9:.9f}&with={first / 1e9:.9f}")
    found = dict(browser.js("[...document.querySelectorAll('#peak tbody tr')].map((r) => ["
                            "r.querySelector('[data-key]').dataset.key,"
                            " Number(r.querySelector('[data-change]').dataset.change)])"))
    wanted = sql(run, f"SELECT category, sum(bytes) AS bytes FROM (SELECT category, size AS bytes FROM "
                      f"live_at({second}) UNION ALL SELECT category, -size FROM live_at({first})) GROUP BY 1")
    assert found == {row["category"]: row["bytes"] for row in wanted}
    browser.press("Stop")
    assert browser.js("document.querySelectorAll('[data-change]').length") == 0


def test_stack_of_a_block(browser, page):
    run, file = page("leak")
    browser.open(file, "#blocks=1")
    browser.settle()
    box = browser.js("(() => { const r = document.querySelector('[data-plot=timeline]').getBoundingClientRect();"
                     " return [r.right - 14, r.bottom - 40]; })()")
    for event in ("mouseMoved", "mousePressed", "mouseReleased"):
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {
            "type": event, "x": box[0], "y": box[1], "button": "left", "clickCount": 1})
    browser.settle()
    frames = browser.js("[...document.querySelectorAll('.chosen .stack li code:first-child')].map((e) => e.textContent)")
    texts = sql(run, "SELECT text FROM stacks")
    assert frames and " < ".join(frames) in {row["text"] for row in texts}
    browser.shot("chosen")


def test_zoom(browser, page):
    run, file = page("tiny")
    one = sql(run, "SELECT start_ns, end_ns, peak_allocated FROM steps WHERE step > 0 "
                   "ORDER BY end_ns - start_ns LIMIT 1")[0]
    browser.open(file)
    canvas = "document.querySelector('[data-plot=timeline]')"

    def key(name):
        browser.js(f"{canvas}.dispatchEvent(new KeyboardEvent('keydown', {{key: arguments[0]}}))", name)
        browser.settle()

    def window():
        """What the address says, when it has changed."""
        nonlocal address
        browser.until(f"location.hash !== {json.dumps(address)}")
        address = browser.js("location.hash")
        found = re.search(r"#t=([\d.]+)-([\d.]+)", address)
        return (float(found[1]), float(found[2])) if found else None

    address = browser.js("location.hash")
    key("+")
    start, end = window()
    key("ArrowRight")
    moved = window()
    assert moved[0] > start and moved[1] > end
    key("0")
    assert window() is None
    browser.js(f"{canvas}.dispatchEvent(new WheelEvent('wheel', {{deltaY: -300, clientX: 640, bubbles: true,"
               " cancelable: true}))")
    assert window() is not None
    # A link leads to the same window: of one step, each block drawn, its peak is in the label.
    browser.open(file, f"#t={one['start_ns'] / 1e9}-{one['end_ns'] / 1e9}&blocks=1&by=module")
    browser.settle()
    assert browser.js(f"{canvas}.getAttribute('aria-label')").count(
        f"{one['peak_allocated'] / 2**20:.1f} MiB") == 1
    assert browser.text("#timeline .note").startswith("exact")
    browser.shot("zoomed")


def test_values_under_the_pointer(browser, page):
    _, file = page("tiny")
    browser.open(file)
    browser.js("document.querySelector('#timeline .plot').dispatchEvent(new PointerEvent('pointermove',"
               " {clientX: 640, clientY: 450}))")
    browser.settle()
    assert re.search(r"allocated\d+\.\d MiB", browser.text("#timeline .tip"))
    browser.shot("hover")


def test_names_stay_text(browser, page):
    run, file = page("hostile")
    browser.open(file)
    html = file.read_bytes()
    assert html.count(b"<script") == 2 and html.count(b"</script>") == 2
    assert b"onerror" not in html and b"onclick" not in html
    assert browser.js("document.title") == f"{run} - tidemark"
    assert browser.js("document.querySelectorAll('#page script, #page img, #page b[onclick], #page i:not([class])"
                      ":not(.bar > i)').length") == 0
    for by in ("Module", "Stage", "Line", "Tensor"):
        browser.js("[...document.querySelectorAll('#peak button')].find((b) => b.textContent === arguments[0])"
                   ".click()", by)
        browser.shot(f"hostile_{by}")
        assert "<" in "".join(sums(browser))
    assert "document.title='mark'" in browser.text("#marks")
    assert browser.js("document.title") == f"{run} - tidemark"
    assert browser.logs()[0] == []


def test_search(browser, page):
    run, file = page("tiny")
    browser.open(file, "#q=attn")
    wanted = sql(run, "SELECT sum(size) AS bytes FROM peak WHERE module LIKE '%attn%' OR tensor LIKE '%attn%' "
                      "OR stack_id IN (SELECT stack_id FROM frames WHERE function LIKE '%attn%')")[0]["bytes"]
    assert sum(sums(browser).values()) == wanted
    browser.open(file, "#q=no%20such%20thing")
    assert browser.text("[data-value=found]") == "Nothing matches."


def test_out_of_memory(browser, page):
    run, file = page("fragmentation")
    browser.open(file)
    explained = json.loads(tidemark("explain", run, "--json"))["ooms"][0]
    text = browser.text("#ooms")
    for fix in explained["fixes"]:
        assert fix["text"] in text
    assert browser.js("document.querySelectorAll('[data-plot=segments]').length") == 1
    browser.js("document.querySelector('#map').scrollIntoView()")
    browser.shot("map")


def test_settings(browser, page):
    """What was tried is what `whatif` says."""
    run, file = page("lora")
    browser.open(file)
    wanted = json.loads(tidemark("whatif", run, "--json"))["settings"]
    found = browser.js("[...document.querySelectorAll('#settings [data-exact]')].map((e) => Number(e.dataset.exact))")
    assert found == [setting["peak_reserved"] for setting in wanted]


def test_ranks(browser, page):
    run, file = page("ranks")
    browser.open(file)
    peaks = sql(run, "SELECT rank, max(peak_allocated) AS peak FROM steps GROUP BY 1 ORDER BY 1")
    rows = browser.js("[...document.querySelectorAll('#ranks tbody tr')].map((r) => r.querySelector('[data-exact]').dataset.exact)")
    assert [int(row) for row in rows] == [p["peak"] for p in peaks]
    browser.js("document.querySelector('#ranks').scrollIntoView()")
    browser.shot("ranks_section")


def test_chinese(browser, page):
    _, file = page("leak")
    browser.open(file)
    english = browser.js("[...document.querySelectorAll('h2')].map((e) => e.textContent)")
    browser.press("中文")
    chinese = browser.js("[...document.querySelectorAll('h2')].map((e) => e.textContent)")
    assert len(chinese) == len(english) and not set(chinese) & set(english)
    assert browser.js("document.documentElement.lang") == "zh-CN"
    browser.shot("chinese")
    browser.press("English")
    assert browser.js("[...document.querySelectorAll('h2')].map((e) => e.textContent)") == english


def differing(a, b, path=""):
    """The paths at which two answers of one form differ."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        return set().union(*(differing(a[key], b[key], f"{path}.{key}") for key in a))
    if isinstance(a, list):
        assert len(a) == len(b)
        return set().union(*(differing(x, y, path) for x, y in zip(a, b)))
    return set() if a == b else {path}


def test_sentences_are_in_both_languages(page):
    """And nothing else is: keys, names and figures have no language."""
    run, file = page("leak")
    packed = re.search('id="data">([^<]*)<', file.read_text(encoding="utf-8"))[1]
    data = zlib.decompress(base64.b64decode(packed))
    told = json.loads(data[4:4 + int.from_bytes(data[:4], "little")])
    assert told["report"] == json.loads(tidemark("report", run, "--json"))
    assert differing(told["report"], told["report_zh"]) == {
        ".health.text", ".processes.leak_text", ".processes.leaks.evidence", ".explain.ooms.fixes.text"}
    assert told["report_zh"]["health"]["text"].startswith("显存不足")


@pytest.mark.parametrize("name", ["demand", "tiny", "ranks", "hostile"])
def test_phone(browser, page, name):
    _, file = page(name)
    browser.size(390, 844, dark=True)
    try:
        browser.open(file)
        browser.settle()
        browser.shot(f"phone_{name}")
        assert browser.js("document.documentElement.scrollWidth") == 390
        colour = browser.js("getComputedStyle(document.body).backgroundColor")
        assert max(int(c) for c in re.findall(r"\d+", colour)) < 64
    finally:
        browser.size(1280, 720)


@pytest.mark.parametrize("name", ["demand", "ranks"])
def test_without_eyes(browser, page, name):
    """Everything that is drawn or can be pressed has a name; tables have heads; headings are in order."""
    _, file = page(name)
    browser.open(file)
    browser.settle()
    assert browser.js("[...document.querySelectorAll('canvas')].filter((c) => c.getAttribute('aria-hidden')"
                      " !== 'true' && !(c.getAttribute('role') === 'img' && c.getAttribute('aria-label'))).length") == 0
    assert browser.js("[...document.querySelectorAll('button, a, select, input')].filter((e) =>"
                      " !(e.getAttribute('aria-label') || e.textContent.trim())).length") == 0
    assert browser.js("[...document.querySelectorAll('table')].filter((e) => !e.querySelector('th[scope]')).length") == 0
    levels = browser.js("[...document.querySelectorAll('h1, h2, h3')].map((e) => Number(e.tagName[1]))")
    assert levels[0] == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:]))
    assert browser.js("document.querySelectorAll('main, nav, header').length") == 3


def test_page_of_run(browser, folder):
    """`run --report html` writes it beside the run."""
    tidemark("run", "-q", "--report", "html", "-o", folder / "beside.tmk", "--", BUILD / "tinytrain",
             "--steps", "3", "--quiet")
    browser.open(folder / "beside.html")
    assert shown(browser, "peak") == peak_of(folder / "beside.tmk")["peak_allocated"]


def test_damaged_data_says_so(browser, page, folder):
    _, file = page("tiny")
    broken = folder / "broken.html"
    html = file.read_text(encoding="utf-8")
    at = html.index('id="data">') + 400
    broken.write_text(html[:at] + "AAAA" + html[at + 4:], encoding="utf-8")
    browser.driver.get(f"file://{broken}")
    browser.until("document.querySelector('.verdict')")
    assert browser.text(".verdict").startswith("This page cannot be shown")
