# SPDX-License-Identifier: MIT
"""What a seed shows as output, as patterns: the same words and columns with the figures of another machine."""
import re

from seed_blocks import seed_block

#: What differs from machine to machine in a line of a sample, and what may stand there.
PARTS = (
    (r"NVIDIA A100-SXM4-40GB", r".+"),
    (r"GPU \d+", r"(?:GPU \d+|CPU|主机)"),
    (r"\d{8}_\d{6}", r"\d{8}_\d{6}"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
    (r"\bTrue\b", r"(?:True|False)"),
    (r"Reserved: +\d+[.]\dMB", r"Reserved: +(?:\d+[.]\dMB|-)"),  # of the CPU it is not known
    (r"保留: +\d+[.]\dMB", r"保留: +(?:\d+[.]\dMB|-  )"),
)
NUMBER = re.compile(r"(?P<space> *)(?P<sign>[-+]?)(?:\d{1,3}(?:,\d{3})+|\d+)(?P<decimals>[.]\d+)?")


def number_pattern(match):
    """As many decimals, a sign where there is one, and a column that is at least as wide."""
    decimals = rf"[.]\d{{{len(match['decimals']) - 1}}}" if match["decimals"] else ""
    if len(match["space"]) > 1:
        return rf"[ \d]{{{len(match[0]) - len(match['decimals'] or '')},}}{decimals}"
    return (match["space"] and " +") + ("[-+]" if match["sign"] else "") + rf"[\d,]*\d{decimals}"


def line_pattern(line, names=()):
    """`names` are the sample's own, of a model or a file, for which there may be others."""
    rules = [*((re.escape(name), r"\S+") for name in names), *PARTS]
    scan = re.compile("|".join([*(f"({rule})" for rule, _ in rules), f"({NUMBER.pattern})"]))
    out, end = [], 0
    for match in scan.finditer(line):
        out += [re.escape(line[end:match.start()]),
                rules[match.lastindex - 1][1] if match.lastindex <= len(rules) else number_pattern(NUMBER.match(match[0]))]
        end = match.end()
    return "".join(out) + re.escape(line[end:])


def missing_lines(sample, lines, names=()):
    """Lines of the sample's block that none of these is like. One may say more behind them, after a space."""
    return [line for line in seed_block(sample).text.splitlines()
            if not any(re.fullmatch(line_pattern(line, names) + "( .*)?", said) for said in lines)]


def missing_keys(sample, found, path=""):
    """Keys of the sample's JSON that are not there, or have a value of another type."""
    if isinstance(sample, dict):
        if not isinstance(found, dict):
            return [path or "all"]
        return [place for key, value in sample.items()
                for place in (missing_keys(value, found[key], f"{path}/{key}") if key in found else [f"{path}/{key}"])]
    if isinstance(sample, list):
        return [] if isinstance(found, list) and found and not missing_keys(sample[0], found[0], f"{path}/0") else [path]
    is_number = isinstance(sample, (int, float)) and isinstance(found, (int, float))
    is_unknown = found is None and path.endswith("reserved")  # of the CPU
    return [] if is_number or is_unknown or isinstance(found, type(sample)) else [path]
