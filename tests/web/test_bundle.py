# SPDX-License-Identifier: MIT
"""What is committed of the page's build, without Node: it has today's colours, and names no other
host. `./dev test checks` builds it anew and compares."""
import json
import re

from web_kit import ROOT


def test_colours_are_those_of_the_pictures():
    palette = (ROOT / "src/draw/palette.c").read_text(encoding="utf-8")
    program = (ROOT / "web/dist/page.js").read_text(encoding="utf-8")
    program = program.replace("\\\n", "").replace("\n", "")  # strings go on in a new line behind "\\"
    named = re.findall(r'\{"([^"]+)", 0xff([0-9a-f]{6})\}', palette)
    assert len(named) > 30
    assert [name for name, colour in named if f'["{name}","#{colour}"]' not in program] == [], "run ./dev web"


def test_small_and_alone():
    for name in ("page.js", "style.css"):
        text = (ROOT / "web/dist" / name).read_text(encoding="utf-8")
        assert len(text) < 150_000 and max(map(len, text.splitlines())) < 4000
        assert re.findall(r"https?://|@import|url\(", text) == []


def test_packages_are_pinned_and_only_build():
    packages = json.loads((ROOT / "web/package.json").read_text(encoding="utf-8"))
    lock = json.loads((ROOT / "web/package-lock.json").read_text(encoding="utf-8"))
    assert "dependencies" not in packages
    assert all(re.fullmatch(r"[\d.]+", version) for version in packages["devDependencies"].values())
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all(package.get("integrity") for name, package in lock["packages"].items() if name)
