# SPDX-License-Identifier: MIT
"""The Python half of record/training/step_at.c: runs in the watched process, from CPython 3.12 on.

The first time that a code object is run it is looked at. If it has the line, its lines are told from then
on; else nothing more of it is. C has put `place` (FILE:LINE) and begin_step() into this namespace."""
import sys

monitoring = sys.monitoring
events = monitoring.events
tool = None  # our number, while armed
watched = []  # code objects with the line


def has_line(code):
    """A comprehension on the line is a part of it, not a place of its own."""
    file, _, line = place.rpartition(":")
    name = code.co_filename
    is_part = code.co_name.startswith("<") and code.co_name != "<module>"
    return (name == file or name.endswith("/" + file)) and not is_part and \
        any(number == int(line) for _, _, number in code.co_lines())


def look_at(code, _offset):
    if has_line(code) and all(code is not one for one in watched):
        watched.append(code)
        monitoring.set_local_events(tool, code, events.LINE)
    return monitoring.DISABLE


def reach(_code, line):
    if line != int(place.rpartition(":")[2]):
        return monitoring.DISABLE
    begin_step()
    return None


def arm():
    global tool
    int(place.rpartition(":")[2])  # raises before anything is switched on
    for number in (4, 3, 1, 0, 2, 5):
        if tool is None and monitoring.get_tool(number) is None:
            tool = number
            monitoring.use_tool_id(tool, "tidemark")
    if tool is None:
        return False
    monitoring.register_callback(tool, events.PY_START, look_at)
    monitoring.register_callback(tool, events.PY_RESUME, look_at)
    monitoring.register_callback(tool, events.LINE, reach)
    monitoring.set_events(tool, events.PY_START | events.PY_RESUME)
    for frame in sys._current_frames().values():
        while frame is not None:  # these have begun already
            look_at(frame.f_code, 0)
            frame = frame.f_back
    return True


def disarm():
    global tool
    if tool is None:
        return
    monitoring.set_events(tool, 0)
    for code in watched:
        monitoring.set_local_events(tool, code, 0)
    watched.clear()
    for event in (events.PY_START, events.PY_RESUME, events.LINE):
        monitoring.register_callback(tool, event, None)
    monitoring.free_tool_id(tool)
    tool = None
