# SPDX-License-Identifier: MIT
"""c_sources - what tools/check_layers, tools/check_includes and tools/house know of the C tree.

They read C without preprocessing it: the tree has one style, so a line, a brace and a name are
enough, and a finding is true under every #if."""
import os
import re

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
TAG = re.compile(r"(?:static\s+|const\s+|typedef\s+)*(struct|union|enum)\s+(tmk_\w+)\s*\{")
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def read_text(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


def includes_in(text):
    """[(line number, '<' or '"', what)] of a source's text."""
    found = ((number, INCLUDE.match(line)) for number, line in enumerate(text.splitlines(), 1))
    return [(number, match[1], match[2]) for number, match in found if match]


def tags_in(text):
    """[(line number, "struct" or another, tag)] of the tmk_ types that a text defines at file scope."""
    found = ((number, TAG.match(line)) for number, line in enumerate(text.splitlines(), 1))
    return [(number, match[1], match[2]) for number, match in found if match]


def without_comments(text):
    """The text with comments blanked and the contents of literals removed, line for line."""
    def blank(match):
        what = match[0]
        if what[0] == '"' and "\n" not in what:
            return '""'
        return "0" if what[0] == "'" else " " + "\n" * what.count("\n")

    lines = [line for line in text.split("\n")]
    kept = {number: line for number, line in enumerate(lines) if INCLUDE.match(line)}
    code = NOT_CODE.sub(blank, text).split("\n")
    return "\n".join(kept.get(number, line) for number, line in enumerate(code))


def files_under(root, folder, endings=(".c", ".h")):
    """Paths from the root of all such files in a folder and those below it, folder by folder."""
    found = []
    for path, folders, names in os.walk(os.path.join(root, folder)):
        folders.sort()
        here = os.path.relpath(path, root)
        found += [f"{here}/{name}" for name in sorted(names) if name.endswith(endings)]
    return found
