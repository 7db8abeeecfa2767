# SPDX-License-Identifier: MIT
"""po_file - read and write gettext's catalogues (.po), as much of them as this project uses."""
import re

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "r": "\r", "a": "\a"}


class Entry:
    """A message: `several` is the English plural, if it has one; `flags` such as c-format."""

    def __init__(self):
        self.msgid, self.several, self.msgstr = "", None, ""
        self.flags, self.comments, self.places = set(), [], []
        self.is_obsolete = False
        self.is_plain = False  # the format is expanded by base/text.c

    @property
    def is_fuzzy(self):
        return "fuzzy" in self.flags


def unquote(text):
    return re.sub(r"\\(.)", lambda match: ESCAPES[match[1]], text)


def quote(text):
    for sign, letter in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(sign, letter)
    return f'"{text}"'


def read_po(text):
    """[Entry], the heading (msgid "") among them."""
    entries, entry, field = [], None, None
    for number, line in enumerate(text.splitlines() + [""], 1):
        if not line.strip():
            if entry and field:
                entries.append(entry)
            entry, field = None, None
            continue
        entry = entry or Entry()
        if line.startswith("#~"):
            entry.is_obsolete = True
            line = line[2:].strip()
        if line.startswith("#,"):
            entry.flags |= {flag.strip() for flag in line[2:].split(",")}
        elif line.startswith("#:"):
            entry.places += line[2:].split()
        elif line.startswith("#"):
            entry.comments.append(line)
        else:
            word = re.match(r'(msgid_plural|msgid|msgstr\[0\]|msgstr)\s+(?=")', line)
            if word:
                if field and word[1] == "msgid":  # no blank line between two entries
                    entries.append(entry)
                    entry = Entry()
                field = {"msgid": "msgid", "msgid_plural": "several"}.get(word[1], "msgstr")
                setattr(entry, field, "")
            string = STRING.fullmatch(line[word.end():].strip() if word else line.strip())
            if not string or not field:
                raise ValueError(f"line {number} is not understood: {line}")
            setattr(entry, field, getattr(entry, field) + unquote(string[1]))
    return entries


def lines_of(keyword, text):
    """A field, a string for each of its lines."""
    pieces = text.split("\n")
    pieces = [piece + "\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
    if len(pieces) <= 1:
        return f"{keyword} {quote(text)}\n"
    return f'{keyword} ""\n' + "".join(quote(piece) + "\n" for piece in pieces)


def write_entry(entry):
    out = "".join(comment + "\n" for comment in entry.comments)
    out += "".join(f"#: {place}\n" for place in entry.places)
    if entry.flags:
        out += "#, " + ", ".join(sorted(entry.flags)) + "\n"
    out += lines_of("msgid", entry.msgid)
    if entry.several is None:
        return out + lines_of("msgstr", entry.msgstr)
    return out + lines_of("msgid_plural", entry.several) + lines_of("msgstr[0]", entry.msgstr)
