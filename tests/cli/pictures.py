# SPDX-License-Identifier: MIT
"""What tests see of pictures: the shapes and texts of an SVG and where they stand, the colours of a PNG.

The widths of texts are read from the font itself (DejaVu Sans), which says whether the program's table is right."""
import ctypes
import functools
import itertools
import re
import struct
import unicodedata
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans{}.ttf"


# ---- PNG

def read_png(path, every=5):
    """(width, height, {(x, y): colour}) with y from above, of each so-manyth pixel. cairo reads them: it is there,
    and faster than Python."""
    cairo = ctypes.CDLL("libcairo.so.2")
    for name in ("cairo_image_surface_create_from_png", "cairo_image_surface_get_data"):
        getattr(cairo, name).restype = ctypes.c_void_p
    surface = ctypes.c_void_p(cairo.cairo_image_surface_create_from_png(str(path).encode()))
    assert cairo.cairo_surface_status(surface) == 0, path
    width, height, stride = (getattr(cairo, f"cairo_image_surface_get_{what}")(surface)
                             for what in ("width", "height", "stride"))
    data = ctypes.string_at(cairo.cairo_image_surface_get_data(surface), stride * height)
    cairo.cairo_surface_destroy(surface)
    pixels = {(x, y): data[y * stride + 4 * x:y * stride + 4 * x + 3][::-1]
              for y in range(0, height, every) for x in range(0, width, every)}
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
        top = 140 + (height - 140) * row // rows
        share = share_of_colour(pixels, width * column // columns, top, width * (column + 1) // columns,
                                top + (height - 140) // rows)
        assert share > least, (path, row, column, share)
    return width, height


# ---- the widths of texts

@functools.lru_cache
def font_widths(is_bold):
    """{letter: its share of the font's size}, from the font's tables (OpenType: head, hhea, hmtx, cmap of format 4)."""
    with open(FONT.format("-Bold" if is_bold else ""), "rb") as file:
        data = file.read()
    numbers = lambda kind, at, n=1: struct.unpack(f">{n}{kind}", data[at:at + n * struct.calcsize(kind)])
    tables = {data[at:at + 4]: numbers("I", at + 8)[0] for at in range(12, 12 + 16 * numbers("H", 4)[0], 16)}
    units, = numbers("H", tables[b"head"] + 18)
    n_advances, = numbers("H", tables[b"hhea"] + 34)
    advances = numbers("H", tables[b"hmtx"], 2 * n_advances)[::2]
    maps = [tables[b"cmap"] + numbers("I", tables[b"cmap"] + 8 + 8 * i)[0]
            for i in range(numbers("H", tables[b"cmap"] + 2)[0])]
    at = next(at for at in maps if numbers("H", at) == (4,))
    n = numbers("H", at + 6)[0] // 2
    ends, starts = numbers("H", at + 14, n), numbers("H", at + 16 + 2 * n, n)
    deltas, offsets = numbers("H", at + 16 + 4 * n, n), numbers("H", at + 16 + 6 * n, n)
    widths = {}
    for i, letter in ((i, letter) for i in range(n) for letter in range(starts[i], min(ends[i], 0xfffe) + 1)):
        glyph = letter + deltas[i]
        if offsets[i]:
            glyph, = numbers("H", at + 16 + 6 * n + 2 * i + offsets[i] + 2 * (letter - starts[i]))
            glyph = glyph + deltas[i] if glyph else 0
        if glyph & 0xffff:
            widths[chr(letter)] = advances[min(glyph & 0xffff, n_advances - 1)] / units
    return widths


def columns_of(text):
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def width_of(text, size=12, is_bold=False):
    """As wide as DejaVu Sans has it; letters of other scripts are squares."""
    widths = font_widths(is_bold)
    return size * sum(0 if unicodedata.combining(letter) else widths.get(letter, 1) for letter in text)


# ---- texts

def texts_in(path):
    """[(element, its text, its full text)]: the latter is in the title of a text that was shortened."""
    for node in ElementTree.parse(path).getroot().iter(SVG + "text"):
        title = node.find(SVG + "title")
        text = node.text if title is None else title.tail
        yield node, text, text if title is None else title.text


def text_boxes(path):
    """[(text, left, top, right, bottom)] of an SVG."""
    found = []
    for node, text, _ in texts_in(path):
        x, y, size = float(node.get("x")), float(node.get("y")), float(node.get("font-size", 12))
        wide = width_of(text, size, node.get("font-weight") == "bold")
        left = {"start": 0, "middle": -wide / 2, "end": -wide}[node.get("text-anchor", "start")]
        box = (x + left, y - 0.75 * size, x + left + wide, y + 0.1 * size)
        if "transform" in node.attrib:
            assert node.get("transform").startswith("rotate(-90 ")
            box = (x - 0.75 * size, y - left - wide, x + 0.1 * size, y - left)
        found.append((re.sub(r"\s+", " ", text), *box))
    return found


def texts_of(path):
    return [box[0] for box in text_boxes(path)]


def full_texts_of(path):
    """Also what a browser shows of shortened ones when the mouse points at them."""
    return [re.sub(r"\s+", " ", full) for _, _, full in texts_in(path)]


def overlaps(path):
    """Texts that stand on each other, or outside of the picture."""
    root = ElementTree.parse(path).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = text_boxes(path)
    return [(a[0], b[0]) for a, b in itertools.combinations(boxes, 2)
            if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]] + [
                a[0] for a in boxes if a[1] < 0 or a[2] < 0 or a[3] > width or a[4] > height]


# ---- shapes

def points_of(path_data):
    """The corners of a path of ours: one M, then relative l, h and v."""
    x = y = 0.0
    points = []
    for command, rest in re.findall(r"([Mlhv])([-\d. ]+)", path_data.rstrip("z")):
        values = [float(value) for value in re.findall(r"-?[\d.]+", rest)]
        step = {"M": values, "l": values, "h": values[:1] + [0], "v": [0] + values[:1]}[command]
        x, y = round(x + step[0], 1), round(y + step[1], 1)
        points.append((x, y))
    return points


def paths_of(path, **attributes):
    """The corners of the paths with these attributes."""
    return [points_of(node.get("d")) for node in ElementTree.parse(path).getroot().iter(SVG + "path")
            if all(node.get(name) == value for name, value in attributes.items())]


def groups_of(path):
    """[(title, its shapes)] of the groups that have one."""
    return [(group.find(SVG + "title").text, [node for node in group if node.tag != SVG + "title"])
            for group in ElementTree.parse(path).getroot().iter(SVG + "g") if group.find(SVG + "title") is not None]


UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def bytes_of_y(path):
    """(y of zero, bytes a point): from the numbers at the left, which stand 4 points below their line."""
    texts = [(text, float(node.get("x")), float(node.get("y")) - 4) for node, text, _ in texts_in(path)]
    unit, left = next((UNITS[text], x) for text, x, _ in texts if text in UNITS)
    ticks = {float(text): y for text, x, y in texts if x == left and re.fullmatch(r"[\d.]+", text)}
    top = max(ticks)
    return ticks[0.0], top * unit / (ticks[0.0] - ticks[top])


def legend_colours(path):
    """The colours of its squares."""
    return [node.get("fill") for node in ElementTree.parse(path).getroot().iter(SVG + "rect")
            if node.get("width") == node.get("height") == "11"]


def colours_at(path, points):
    """The colours of a PNG at points of its canvas, each of which is two pixels wide."""
    _, _, pixels = read_png(path, every=1)
    return [pixels[round(2 * x), round(2 * y)] for x, y in points]
