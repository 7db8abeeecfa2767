# SPDX-License-Identifier: MIT
"""What tests see of pictures: the colours of a PNG, and where the texts of an SVG stand."""
import itertools
import os
import re
import struct
import subprocess
import unicodedata
from xml.etree import ElementTree

LETTER = 0.56  # of the font's size, how wide one is about
SVG = "{http://www.w3.org/2000/svg}"


def read_png(path, every=5):
    """(width, height, {(x, y): colour}) with y from above, of each so-manyth pixel. gnuplot reads them: what
    draws pictures is there, and is faster than Python."""
    with open(path, "rb") as file:
        head = file.read(24)
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    script = (f"set table '/dev/stdout'\nplot '{os.path.basename(path)}' binary filetype=png "
              f"every {every}:{every} with rgbimage\n")
    listed = subprocess.run(["gnuplot", "-d"], input=script, cwd=os.path.dirname(path), text=True,
                            capture_output=True, timeout=240, check=True).stdout
    pixels = {}
    for line in listed.splitlines():
        words = line.split()
        if len(words) == 7 and words[0].isdigit():
            x, y, *colour = map(int, words[:5])
            pixels[x, height - 1 - y] = bytes(colour)
    assert len(pixels) >= (width // every) * (height // every)
    return width, height, pixels


def share_of_colour(pixels, left, top, right, bottom):
    """Of a part of the picture, how much has a colour that is no grey: data, not axes or texts."""
    part = [max(colour) - min(colour) > 40 for (x, y), colour in pixels.items()
            if left <= x < right and top <= y < bottom]
    return sum(part) / len(part)


def check_panels(path, columns, rows, least, empty=(), every=4):
    """Is there something to be seen in each of the graphs, which stand in columns and rows? Returns its size."""
    width, height, pixels = read_png(path, every)
    for row, column in itertools.product(range(rows), range(columns)):
        if (row, column) in empty:
            continue
        top = 70 + (height - 70) * row // rows
        share = share_of_colour(pixels, width * column // columns, top, width * (column + 1) // columns,
                                top + (height - 70) // rows)
        assert share > least, (path, row, column, share)
    return width, height


# ---- texts

def width_of(text):
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def text_boxes(path):
    """[(text, left, top, right, bottom)] of an SVG of gnuplot's, by what a text's width should be."""
    found = []
    for group in ElementTree.parse(path).getroot().iter(SVG + "g"):
        node = group.find(SVG + "text")
        if node is None or "transform" not in group.attrib:
            continue
        text = re.sub(r"\s+", " ", "".join(node.itertext()).strip())
        if not text:
            continue
        x, y = map(float, re.match(r"translate\(([-\d.]+),([-\d.]+)\)", group.get("transform")).groups())
        size = float(group.get("font-size"))
        wide = LETTER * size * width_of(text)
        left = {"start": 0, "middle": -wide / 2, "end": -wide}[group.get("text-anchor")]
        box = (x + left, y - 0.75 * size, x + left + wide, y + 0.1 * size)
        if "rotate" in group.get("transform"):
            box = (x - 0.75 * size, y - left - wide, x + 0.1 * size, y - left)
        if (text, *box) not in found:  # one that has a background comes twice
            found.append((text, *box))
    return found


def texts_of(path):
    return [box[0] for box in text_boxes(path)]


def overlaps(path):
    """Texts that stand on each other."""
    return [(a[0], b[0]) for a, b in itertools.combinations(text_boxes(path), 2)
            if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]]
