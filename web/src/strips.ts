// SPDX-License-Identifier: MIT
/** Blocks as strips: each lies on those that were there before it, and sinks when one below goes.
 * The largest that a window shows are laid out, older ones below. */
import type { Blocks } from "./model";

export interface Strip {
  block: number;
  from: number; to: number; // within the window
  times: number[]; levels: number[]; // from each time on, the bytes below it
}

export interface StripLayout { strips: Strip[]; hidden: number; top: number }

/** The largest blocks of a device in a window, by bytes times visible time. */
function choose(b: Blocks, device: number, from: number, to: number, most: number):
    { chosen: number[]; hidden: number } {
  const seen: { block: number; area: number }[] = [];
  for (let i = 0; i < b.n && b.alloc[i] <= to; i++) {
    if (b.free[i] < from || b.device[i] !== device) continue;
    const life = Math.min(b.free[i], to) - Math.max(b.alloc[i], from);
    seen.push({ block: i, area: b.size[i] * Math.max(life, (to - from) / 4000) });
  }
  seen.sort((x, y) => y.area - x.area);
  const chosen = seen.slice(0, most).map((s) => s.block).sort((x, y) => x - y);
  return { chosen, hidden: seen.length - chosen.length };
}

export function layOut(b: Blocks, device: number, from: number, to: number, most = 1200):
    StripLayout {
  const { chosen, hidden } = choose(b, device, from, to, most);
  const changes = chosen.flatMap((block, i) => [
    { ns: Math.max(b.alloc[block], from), i, isFree: false },
    ...(b.free[block] < to ? [{ ns: b.free[block], i, isFree: true }] : []),
  ]);
  changes.sort((x, y) => x.ns - y.ns || Number(y.isFree) - Number(x.isFree) || x.i - y.i);
  const strips: Strip[] = chosen.map((block) => ({
    block, from: Math.max(b.alloc[block], from), to: Math.min(b.free[block], to), times: [],
    levels: [],
  }));
  return { strips, hidden, top: stack(b, strips, changes) };
}

/** Fill the strips' levels. Returns the most that they reach. */
function stack(b: Blocks, strips: Strip[], changes: { ns: number; i: number; isFree: boolean }[]):
    number {
  const live: number[] = [];
  let level = 0, top = 0;
  for (const c of changes) {
    const size = b.size[strips[c.i].block];
    if (!c.isFree) {
      strips[c.i].times.push(c.ns);
      strips[c.i].levels.push(level);
      live.push(c.i);
      level += size;
      top = Math.max(top, level);
      continue;
    }
    const at = live.indexOf(c.i);
    if (at < 0) continue; // it came and went at one moment
    live.splice(at, 1);
    level -= size;
    for (let k = at; k < live.length; k++) {
      const s = strips[live[k]], last = s.levels[s.levels.length - 1] - size;
      if (s.times[s.times.length - 1] === c.ns) s.levels[s.levels.length - 1] = last;
      else {
        s.times.push(c.ns);
        s.levels.push(last);
      }
    }
  }
  return top;
}

/** The strip at a moment and a level; null: none. */
export function stripAt(b: Blocks, layout: StripLayout, ns: number, level: number): Strip | null {
  for (const s of layout.strips) {
    if (ns < s.from || ns > s.to) continue;
    let i = s.times.length - 1;
    while (i > 0 && s.times[i] > ns) i--;
    if (level >= s.levels[i] && level < s.levels[i] + b.size[s.block]) return s;
  }
  return null;
}
