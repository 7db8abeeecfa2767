# SPDX-License-Identifier: MIT
"""Lines of Python frames for format_reader.py, written from docs/format.md 2.1 alone."""

TABLE_MAX = 1 << 20
LINE_MAX = (1 << 31) - 1


def join_parts(parts: list[tuple[int, bytes]]) -> bytes:
    """A line table from its parts (offset, bytes); empty when one is missing or too far out."""
    table = b""
    for offset, data in sorted(parts, key=lambda part: part[0]):
        if offset > len(table) or offset + len(data) > TABLE_MAX:
            return b""
        table += data[len(table) - offset :]
    return table


def join_runs(parts: list[tuple[int, int, bytes]]) -> bytes:
    """Runs from their parts (offset, length, bytes); empty when one is missing or too far out."""
    end, runs = 0, b""
    for offset, length, data in sorted(parts, key=lambda part: (part[0], -part[1])):
        if offset > end or offset + length > TABLE_MAX or len(data) > length:
            return b""
        if offset == end:
            end, runs = end + length, runs + data
    return runs


def line_39(table: bytes, first: int, offset: int) -> int | None:
    at, line = 0, first
    for count, change in zip(table[::2], table[1::2]):
        at += count
        if at > offset:
            break
        line += change - 256 * (change > 127)
    return line


def line_310(table: bytes, first: int, offset: int) -> int | None:
    end, line = 0, first
    for count, change in zip(table[::2], table[1::2]):
        end += count
        if change != 128:
            line += change - 256 * (change > 127)
        if offset < end:
            return 0 if change == 128 else line
    return None


def groups(data: bytes) -> tuple[int, bytes]:
    """A number of 6-bit groups and what follows it; ValueError when it makes no sense."""
    number = 0
    for count, byte in enumerate(data[:6]):
        if byte > 127:
            break
        number |= (byte & 63) << 6 * count
        if byte < 64 and number < 1 << 32:
            return number, data[count + 1 :]
    raise ValueError


def entry_311(code: int, rest: bytes) -> tuple[int, bytes]:
    """An entry's line difference and what follows it; `rest` is what follows its first byte."""
    extra = 1 if code <= 9 else 2 if code <= 12 else 0
    if len(rest) < extra or any(byte > 127 for byte in rest[:extra]):
        raise ValueError
    if code <= 12:
        return max(0, code - 10), rest[extra:]
    if code == 15:
        return 0, rest
    number, rest = groups(rest)
    for _ in range(3 if code == 14 else 0):
        _, rest = groups(rest)
    return -(number >> 1) if number & 1 else number >> 1, rest


def line_311(table: bytes, first: int, offset: int) -> int | None:
    end, line = 0, first
    try:
        while table:
            head = table[0]
            if head < 128:
                return None
            change, table = entry_311(head >> 3 & 15, table[1:])
            end += 2 * (head & 7) + 2
            line += change
            if offset < end:
                return 0 if head >> 3 & 15 == 15 else line
    except ValueError:
        pass
    return None


def varint(data: bytes) -> tuple[int, bytes]:
    """A varint and what follows it; ValueError when it makes no sense."""
    number = 0
    for count, byte in enumerate(data[:10]):
        number |= (byte & 127) << 7 * count
        if byte < 128 and number < 1 << 64:
            return number, data[count + 1 :]
    raise ValueError


def line_in_runs(runs: bytes, first: int, offset: int) -> int | None:
    end, line = 0, first
    try:
        while runs:
            head, runs = varint(runs)
            change = {0: 0, 1: 1, 2: -1}.get(head & 3)
            if change is None:
                number, runs = varint(runs)
                change = (number >> 1) ^ -(number & 1)
            if head >> 2 >= 1 << 23 or abs(change) >= 1 << 32:
                return None
            end, line = end + 2 * (head >> 2) + 2, line + change
            if offset < end:
                return line if head & 3 else 0
    except ValueError:
        pass
    return None


def line_of(layout: int, first: int, parts: list[tuple], offset: int) -> int:
    """The line of the instruction at `offset`; 0 when it has none. Parts are those of both types."""
    layouts = {39: line_39, 310: line_310, 311: line_311}
    tables = [part for part in parts if len(part) == 2 and part[1]]
    runs = [part for part in parts if len(part) == 3 and part[1]]
    line = None
    if layout == 311 and runs and not tables:
        line = line_in_runs(join_runs(runs), first, offset)
    elif layout in layouts and not runs:
        line = layouts[layout](join_parts(tables), first, offset)
    return first if line is None or not 0 <= line <= LINE_MAX else line
