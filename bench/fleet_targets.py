# SPDX-License-Identifier: MIT
"""Many agents that are not there: one small server on loopback that answers /metrics/N with the real text of
a real agent, its labels those of agent N, and what changes from scrape to scrape changed.

    fleet_targets.py TEXT N     print the port, then serve N agents until stdin ends
"""
import asyncio
import random
import re
import sys
import time

RANKS = 8  # of an agent; eight agents have one job
TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# What changes, as in a training: memory that is looked at somewhere in a step is anywhere between
# the step's lowest and highest, in the allocator's 512 bytes. Parameters, totals, peaks, limits and
# the like stay as they are.
WITHIN_STEP = re.compile(r"tidemark_(?:job_(?:allocated|cached|largest_free)_bytes|gpu_memory_(?:used|free)_bytes"
                         r"|job_category_bytes\{.*category=\"(?:activation|temporary|gradient|input|autograd_detail)\")")
RATIOS = re.compile(r"tidemark_job_fragmentation_ratio")
TIMES = re.compile(r"tidemark_job_(?:read|blocks)_timestamp_seconds")
COUNTS = re.compile(r"tidemark_job_steps_total")
COSTS = re.compile(r"(?:tidemark_agent_reading|process_cpu)_seconds_total")


def relabelled(line, agent):
    """A line of the real agent as agent number `agent` would tell it."""
    line = line.replace('="bench"', f'="node-{agent:04d}"', 1) if 'host="bench"' in line else line
    line = line.replace('Hostname="bench"', f'Hostname="node-{agent:04d}"').replace('job="bench"', f'job="job-{agent // 8}"')
    line = re.sub(r'="GPU-(\d)"', rf'="GPU-{agent:04d}-\1"', line)
    return re.sub(r'rank="(\d)"', lambda m: f'rank="{agent % 8 * RANKS + int(m[1])}"', line)


class Agent:
    """Text with a slot for each value that changes, and what goes into the slots."""

    def __init__(self, text, agent):
        lines, self.slots = [], []
        for line in text.splitlines():
            if line and line[0] != "#":
                name, _, value = line.rpartition(" ")
                kind = next((kind for kind, pattern in (("step", WITHIN_STEP), ("ratio", RATIOS), ("time", TIMES),
                                                        ("count", COUNTS), ("cost", COSTS)) if pattern.match(line)), None)
                line = relabelled(name, agent).replace("%", "%%") + " " + ("%s" if kind else value)
                if kind:
                    self.slots.append((kind, float(value)))
            lines.append(line)
        self.template = "\n".join(lines) + "\n"
        self.random = random.Random(agent)

    def value(self, slot, now, n):
        kind, base = slot
        if kind == "step":
            return int(base * self.random.uniform(0.6, 1)) // 512 * 512
        if kind == "ratio":
            return round(self.random.uniform(0.2, 0.5), 16)
        if kind == "time":
            return round(now - self.random.uniform(0, 5), 7)
        return int(base) + 30 * n if kind == "count" else round(base + 0.01 * n, 6)

    def text(self, now, n):
        """What it answers to scrape number n at this time."""
        return self.template % tuple(self.value(slot, now, n) for slot in self.slots)


async def serve_one(reader, writer, agents, counts):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            number = int(re.match(rb"GET /metrics/(\d+) ", head)[1])
            counts[number] += 1
            body = agents[number].text(time.time(), counts[number]).encode()
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {TYPE}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(agents):
    counts = [0] * len(agents)
    server = await asyncio.start_server(lambda r, w: serve_one(r, w, agents, counts), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    asyncio.run(serve([Agent(text, i) for i in range(int(sys.argv[2]))]))


if __name__ == "__main__":
    main()
