#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page_speed.py FILE.html - how long Chromium takes for a page, as JSON.

    ready_s           from asking for the file until the page is built and drawn, best of five
    zoom_frame_ms     between frames while the timeline is zoomed in and out: the median and the
    zoom_slow_ms      tenth slowest of a hundred, by category
    blocks_frame_ms   the same with single blocks
    blocks_slow_ms

The browser has no network and no GPU: it draws with the processor.
"""
import json
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

FRAMES = """
const done = arguments[0], box = document.querySelector("#timeline .plot"), times = [];
let n = 0, last = performance.now();
requestAnimationFrame(function tick() {
  const now = performance.now();
  times.push(now - last);
  last = now;
  box.dispatchEvent(new WheelEvent("wheel", {deltaY: n % 40 < 20 ? -90 : 90, clientX: 300 + 6 * n,
                                             bubbles: true, cancelable: true}));
  if (++n < 101) requestAnimationFrame(tick);
  else done(times.slice(1).sort((a, b) => a - b));
});
"""
DRAWN = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"


def chromium():
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,720", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def ready_s(driver, path):
    driver.get("about:blank")
    began = time.perf_counter()
    driver.get(f"file://{path}")
    while not driver.execute_script("return document.documentElement.dataset.ready"):
        pass
    driver.execute_async_script(DRAWN)
    return time.perf_counter() - began


def main(path):
    driver = chromium()
    result = {"ready_s": min(ready_s(driver, path) for _ in range(5))}
    for name, key in (("zoom", None), ("blocks", "b")):
        if key:
            driver.execute_script("document.querySelector('[data-plot=timeline]').dispatchEvent("
                                  "new KeyboardEvent('keydown', {key: arguments[0]}))", key)
        frames = driver.execute_async_script(FRAMES)
        result[f"{name}_frame_ms"], result[f"{name}_slow_ms"] = frames[49], frames[89]
    driver.quit()
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
