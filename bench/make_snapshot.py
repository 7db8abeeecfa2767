#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_snapshot.py - a long torch memory snapshot out of a short one.

    make_snapshot.py SNAPSHOT.pickle.gz EVENTS OUT.pickle

The history is repeated: what is alive at its end is freed, segments are given back, and it all
happens again, later, until there are about EVENTS of them. Frames are shared as in a real snapshot:
a list of its own for each allocation, of dicts that are the same. The final segments are those of
the original, since the last time nothing is freed. Prints what it made as JSON.
"""
import gzip
import json
import pickle
import sys


def ends_of(trace):
    """The events that undo a history: frees of all blocks alive, then of all segments."""
    blocks, segments = {}, {}
    for event in trace:
        if event["action"] == "alloc":
            blocks[event["addr"]] = event
        elif event["action"] == "free_completed":
            blocks.pop(event["addr"], None)
        elif event["action"] == "segment_alloc":
            segments[event["addr"]] = event
        elif event["action"] == "segment_free":
            segments.pop(event["addr"], None)
    frees = [
        {**event, "action": action}
        for event in blocks.values()
        for action in ("free_requested", "free_completed")
    ]
    return frees + [{**event, "action": "segment_free"} for event in segments.values()]


def again(trace, shift_us):
    """The same events, later."""
    lists = {}
    for event in trace:
        frames = lists.setdefault(id(event["frames"]), list(event["frames"]))
        yield {**event, "time_us": event["time_us"] + shift_us, "frames": frames}


def main():
    source, wanted, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with gzip.open(source) as file:
        snapshot = pickle.load(file)
    trace = snapshot["device_traces"][0]
    ends = ends_of(trace)
    duration = trace[-1]["time_us"] - trace[0]["time_us"] + 1000
    for end in ends:
        end["time_us"] = trace[-1]["time_us"]
    times = max(1, round(wanted / (len(trace) + len(ends))))
    events = []
    for i in range(times):
        shift = (i - times + 1) * duration
        events += again(trace + ends if i + 1 < times else trace, shift)
    snapshot["device_traces"][0] = events
    with open(out, "wb") as file:
        pickle.dump(snapshot, file, protocol=4)
        size = file.tell()
    print(json.dumps({"events": len(events), "times": times, "bytes": size}))


if __name__ == "__main__":
    main()
