# SPDX-License-Identifier: MIT
"""The served page in Chromium: it shows what SQL says, at any zoom, and follows a running job."""
import json
import os
import signal
import subprocess

import pytest
from serve_kit import Served
from test_page import peak_of, shown, sums
from web_kit import BUILD, sql


@pytest.fixture(name="run", scope="module")
def fixture_run(page):
    return page("tiny")[0]


class Job:
    """A training that runs until it is ended."""

    def __init__(self, run):
        self.process = subprocess.Popen([BUILD / "tidemark", "run", "-q", "-o", run, "--", BUILD / "tinytrain",
                                         "--steps", "100000", "--quiet"], start_new_session=True)

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(timeout=30)


def open_link(browser, served, address=""):
    browser.driver.get("about:blank")
    browser.logs()
    browser.driver.get(served.link)
    browser.until("document.documentElement.dataset.ready === '1'")
    if address:
        browser.driver.get("about:blank")
        browser.driver.get(f"http://{served.host}:{served.port}/{address}")
        browser.until("document.documentElement.dataset.ready === '1'")


def test_served_page(browser, run):
    served = Served(run)
    try:
        open_link(browser, served)
        browser.settle()
        assert browser.js("location.search") == ""
        assert shown(browser, "peak") == peak_of(run)["peak_allocated"]
        assert browser.js("document.querySelector('.live').hidden")
        end = sql(run, "SELECT max(end_ns) AS e FROM processes")[0]["e"]
        at = round(end * 0.4)
        open_link(browser, served, f"#at={at / 1e9:.9f}")
        wanted = {r["category"]: r["bytes"] for r in
                  sql(run, f"SELECT category, sum(size) AS bytes FROM live_at({at}) GROUP BY 1")}
        assert sums(browser) == wanted
        browser.click("[data-act=sql]")
        browser.until("document.querySelector('#sql tbody tr')")
        rows = browser.js("[...document.querySelectorAll('#sql tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))")
        assert rows == [[r["category"] or "-", str(r["bytes"]), str(r["blocks"])] for r in sql(
            run, "SELECT category, sum(size) AS bytes, count(*) AS blocks FROM peak GROUP BY 1 ORDER BY 2 DESC")]
        browser.js("document.querySelector('#sql').scrollIntoView()")
        browser.shot("served_sql")
        errors, asked = browser.logs()
        assert errors == []
        home = f"http://{served.host}:{served.port}/"
        assert [a for a in asked if not a.startswith((home, "data:,", "about:"))] == []
    finally:
        assert served.close()[0] == 0


def test_detail_is_asked_for(browser, folder):
    """A run with more blocks than a page has: a moment outside of its window is exact all the same."""
    run = folder / "long.tmk"
    subprocess.run([BUILD / "tidemark", "run", "-q", "-o", run, "--", BUILD / "tinytrain", "--steps", "600",
                    *"--layers 1 --dim 8 --heads 1 --seq 4 --batch 1 --quiet".split()], check=True, timeout=60)
    served = Served(run)
    try:
        open_link(browser, served)
        window = browser.js("document.querySelector('#quality')?.textContent ?? ''")
        end = sql(run, "SELECT max(end_ns) AS e FROM processes")[0]["e"]
        at = round(end * 0.97)
        open_link(browser, served, f"#at={at / 1e9:.9f}")
        wanted = sql(run, f"SELECT sum(size) AS b FROM live_at({at})")[0]["b"]
        browser.until(f"Number(document.querySelector(\"[data-value='total']\").dataset.exact) === {wanted}")
        browser.press("Line")
        found = sum(sums(browser).values())
        assert found == wanted, window
        browser.shot("served_moment")
        assert browser.logs()[0] == []
    finally:
        served.close()


def test_follows_a_job(browser, folder):
    run = folder / "live.tmk"
    job = Job(run)
    served = None
    try:
        pid = None
        while pid is None:
            listed = json.loads(subprocess.run([BUILD / "tidemark", "ps", "--json"], capture_output=True,
                                               text=True, check=False).stdout)["processes"]
            pid = next((p["pid"] for p in listed if p["run"] and p["run"].endswith("live.tmk") and p["peak"]), None)
        served = Served(pid)
        open_link(browser, served)
        browser.until("!document.querySelector('.live').hidden && document.querySelector('.live').dataset.live === '1'")
        events = "[...document.querySelectorAll('.figure')].find((f) => f.textContent.startsWith('Events')).textContent"
        first = browser.js(events)
        browser.until(f"{events} !== {json.dumps(first)}")
        browser.shot("served_live")
        box = "document.querySelector('input[type=search]')"
        browser.js(f"{box}.focus()")
        first = browser.js(events)
        size = int(served.sql("SELECT count(*) FROM allocations")[2].split(b"[[")[1].split(b"]")[0])
        while int(served.sql("SELECT count(*) FROM allocations")[2].split(b"[[")[1].split(b"]")[0]) == size:
            pass  # the server has read the run anew
        assert browser.js(f"document.activeElement === {box}") and browser.js(events) == first
        browser.js(f"{box}.blur()")
        browser.until(f"{events} !== {json.dumps(first)}")
        job.end()
        browser.until("document.querySelector('.live').hidden")
        assert browser.logs()[0] == []
    finally:
        job.end()
        if served:
            assert served.close()[0] == 0


def test_node(browser, folder):
    """--live lists what is recorded, with a link to the page of each."""
    job = Job(folder / "node.tmk")
    served = Served("--live")
    try:
        open_link(browser, served)
        link = "[...document.querySelectorAll('#jobs tbody tr')].find((r) => r.textContent.includes('tinytrain --steps 100000'))?.querySelector('a')"
        browser.until(f"!!({link})")
        browser.shot("served_node")
        assert browser.js("document.querySelectorAll('#devices tbody tr').length") >= 1
        browser.driver.get(f"http://{served.host}:{served.port}/" + browser.js(f"{link}.getAttribute('href')"))
        browser.until("document.querySelector(\"[data-value='peak']\")")
        assert served.ask("/api/page?pid=1")[0] == 404 and served.ask("/api/page")[0] == 400
        assert browser.logs()[0] == []
    finally:
        job.end()
        assert served.close()[0] == 0
