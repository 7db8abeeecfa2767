# SPDX-License-Identifier: MIT
"""Chromium for tests of pages: opened on files, with no network, watched for requests and errors."""
import json
import os
import pathlib
import subprocess
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("TIDEMARK_BUILD", ROOT / "build"))
TIME_LIMIT_S = 30


def program(name):
    """A program of the tests: in build/, else in build/gcc (see ./dev)."""
    here = BUILD / name
    return here if here.exists() else ROOT / "build" / "gcc" / name


def tidemark(*arguments):
    """What the command prints; a finding (1) is no failure."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LC_")}
    done = subprocess.run([BUILD / "tidemark", *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=TIME_LIMIT_S, env={**environment, "LANG": "C.UTF-8"})
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def sql(run, query):
    """The rows of an answer, as objects."""
    return json.loads(tidemark("query", run, query, "--format", "json"))["rows"]


class Browser:
    """One Chromium; its pages come from disk, and every name of a host is refused."""

    def __init__(self):
        options = Options()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--hide-scrollbars", "--lang=en-US", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.size(1280, 720)

    def size(self, width, height, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def open(self, path, address=""):
        """Open a file and wait until its page is built."""
        self.driver.get("about:blank")
        self.logs()
        self.driver.get(f"file://{path}{address}")
        self.until("document.documentElement.dataset.ready === '1'")

    def js(self, code, *arguments):
        return self.driver.execute_script(f"return {code}", *arguments)

    def until(self, code):
        """Wait until an expression is true; returns it."""
        end = time.monotonic() + TIME_LIMIT_S
        while time.monotonic() < end:
            value = self.js(code)
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError(f"never came: {code}\n{self.driver.get_log('browser')}")

    def settle(self):
        """Wait until what was asked for is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def text(self, selector):
        return self.js("document.querySelector(arguments[0]).textContent", selector)

    def click(self, selector):
        self.js("document.querySelector(arguments[0]).click()", selector)
        self.settle()

    def press(self, name):
        """Press the button with that text."""
        self.js("[...document.querySelectorAll('button')].find((b) => b.textContent === arguments[0])"
                ".click()", name)
        self.settle()

    def logs(self):
        """(errors on the console, addresses that were asked for) since the last call."""
        errors = [entry["message"] for entry in self.driver.get_log("browser")
                  if entry["level"] in ("SEVERE", "WARNING")]
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return errors, asked

    def shot(self, name):
        """Keep a picture, where TIDEMARK_SHOTS names a folder for it."""
        folder = os.environ.get("TIDEMARK_SHOTS")
        if folder:
            self.driver.save_screenshot(os.path.join(folder, f"{name}.png"))

    def close(self):
        self.driver.quit()
