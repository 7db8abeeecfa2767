// SPDX-License-Identifier: MIT
/** A run as the page asks for it. `Source` is the contract: a file has its data in itself, a server
 * is asked. Times are in ns since the start of the process's trace; `offset` leads to the run's. */
import { Columns } from "./columns";
import { rankOf } from "./palette";
import { currentLanguage } from "./strings";
import type { Drawn, Page, Process, Report, WhatIf } from "./types";

export type Dimension = "category" | "module" | "component" | "stage";
export const dimensions: Dimension[] = ["category", "module", "component", "stage"];

/** A layer of the timeline: a key, or (others > 0) so many smaller keys together. */
export interface LayerKey { key: string | null; others: number }

/** Bins from `start`, each `width` long. Layers are as of `at`, a bin's moment with the most. */
export interface Bins {
  start: number; width: number; n: number;
  max: Float64Array; min: Float64Array; at: Float64Array;
  reserved: Float64Array; used: Float64Array; // plus one; 0: not known
  keys: LayerKey[]; layers: Float64Array[];
  exact: boolean; // made of single blocks
}

export interface Blocks {
  n: number;
  alloc: Float64Array; free: Float64Array; // Infinity: alive at the end
  size: Float64Array; address: Float64Array; step: Float64Array; // step plus one; 0: none
  stack: Float64Array; tensor: Float64Array; device: Float64Array;
  keys: Record<Dimension, Float64Array>; // numbers of texts; 0: not known
}

export interface Frame {
  file: string | null; function: string | null; line: number; kind: number; source: string | null;
}

/** What was alive at the peak, joined by stack, tensor and keys. */
export interface PeakRows {
  n: number; bytes: Float64Array; blocks: Float64Array; stack: Float64Array; tensor: Float64Array;
  keys: Record<Dimension, Float64Array>;
}

export interface Source {
  readonly report: Report;
  readonly process: Process;
  readonly drawn: Drawn;
  readonly whatif: WhatIf | null;
  readonly devices: string[];
  readonly start: number;
  readonly end: number;
  readonly offset: number;
  bins(device: number, from: number, to: number, pixels: number, by: Dimension): Bins;
  readonly blocks: Blocks;
  /** Whether all blocks that live in the window are in `blocks`. */
  hasAll(from: number, to: number): boolean;
  readonly peakRows: PeakRows;
  text(number: number): string | null;
  /** The frames of a stack, the innermost first. */
  frames(stack: number): Frame[];
  column(name: string): Float64Array;
}

interface Level { width: number; n: number; max: Float64Array; best: Int32Array; min: Float64Array;
  reserved: Float64Array; used: Float64Array }

export class EmbeddedSource implements Source {
  readonly drawn: Drawn;
  protected readonly own: Blocks;
  readonly peakRows: PeakRows;
  private readonly columns: Columns;
  private readonly levels = new Map<number, Level[]>();
  private readonly frameStarts: Float64Array;

  constructor(protected readonly page: Page, rest: Uint8Array) {
    this.drawn = page.drawn;
    this.columns = new Columns(page.drawn.columns, rest);
    this.own = this.readBlocks();
    this.peakRows = this.readPeak();
    const lengths = this.column("stacks.n");
    this.frameStarts = new Float64Array(lengths.length + 1);
    for (let i = 0; i < lengths.length; i++)
      this.frameStarts[i + 1] = this.frameStarts[i] + lengths[i];
  }

  /** Sentences of the report are in the page's language, where there is a catalogue. */
  get report(): Report {
    return currentLanguage() === "zh" ? this.page.report_zh : this.page.report;
  }
  get process(): Process { return this.report.processes[this.report.chosen]; }
  get whatif(): WhatIf | null { return this.page.whatif; }
  get devices(): string[] { return this.drawn.timeline.devices; }
  get blocks(): Blocks { return this.own; }
  get start(): number { return this.drawn.timeline.start_ns; }
  get end(): number { return Math.max(1, this.drawn.timeline.end_ns); }
  get offset(): number { return this.drawn.timeline.offset_ns; }

  column(name: string): Float64Array { return this.columns.get(name); }

  text(number: number): string | null {
    return number > 0 ? this.drawn.strings[number - 1] : null;
  }

  private keysOf(prefix: string): Record<Dimension, Float64Array> {
    return {
      category: this.column(`${prefix}.category`), module: this.column(`${prefix}.module`),
      component: this.column(`${prefix}.component`), stage: this.column(`${prefix}.stage`),
    };
  }

  private readBlocks(): Blocks {
    const alloc = this.column("blocks.alloc"), life = this.column("blocks.life");
    const free = new Float64Array(alloc.length);
    for (let i = 0; i < free.length; i++)
      free[i] = life[i] > 0 ? alloc[i] + life[i] - 1 : Infinity;
    return {
      n: alloc.length, alloc, free, size: this.column("blocks.size"),
      address: this.column("blocks.address"), step: this.column("blocks.step"),
      stack: this.column("blocks.stack"), tensor: this.column("blocks.tensor"),
      device: this.column("blocks.device"), keys: this.keysOf("blocks"),
    };
  }

  private readPeak(): PeakRows {
    const bytes = this.column("peak.bytes");
    return {
      n: bytes.length, bytes, blocks: this.column("peak.blocks"), stack: this.column("peak.stack"),
      tensor: this.column("peak.tensor"), keys: this.keysOf("peak"),
    };
  }

  frames(stack: number): Frame[] {
    if (!(stack > 0)) return [];
    const out: Frame[] = [], all = this.column("stacks.frames");
    for (let i = this.frameStarts[stack - 1]; i < this.frameStarts[stack]; i++)
      out.push(this.frame(all[i] - 1));
    return out;
  }

  private frame(i: number): Frame {
    return {
      file: this.text(this.column("frames.file")[i]),
      function: this.text(this.column("frames.function")[i]),
      line: this.column("frames.line")[i], kind: this.column("frames.kind")[i],
      source: this.text(this.column("frames.source")[i]),
    };
  }

  hasAll(from: number, to: number): boolean {
    const { window_start_ns: start, window_end_ns: end } = this.drawn.blocks;
    return start !== null && end !== null && this.drawn.timeline.known_ns <= from &&
      start <= Math.max(0, from) && end >= Math.min(to, this.end);
  }

  /** All levels of a device: each has half as many bins as the one before. */
  private levelsOf(device: number): Level[] {
    let levels = this.levels.get(device);
    if (!levels) {
      levels = [this.finest(device)];
      while (levels[levels.length - 1].n > 1) levels.push(halve(levels[levels.length - 1]));
      this.levels.set(device, levels);
    }
    return levels;
  }

  private finest(device: number): Level {
    const n = this.drawn.timeline.bins;
    return {
      n, width: (this.end - this.start) / n, best: Int32Array.from({ length: n }, (_, i) => i),
      max: this.column(`bins.${device}.max`), min: this.column(`bins.${device}.min`),
      reserved: this.column(`bins.${device}.reserved`), used: this.column(`bins.${device}.used`),
    };
  }

  bins(device: number, from: number, to: number, pixels: number, by: Dimension): Bins {
    const levels = this.levelsOf(device), want = (to - from) / Math.max(1, pixels);
    let level = levels[0];
    for (const l of levels) if (l.width <= want * 1.01) level = l;
    if (level === levels[0] && level.width > want && this.hasAll(from, to))
      return this.exactBins(device, from, to, pixels, by);
    return this.cut(device, level, from, to, by);
  }

  private layersOf(device: number, by: Dimension): { key: LayerKey; column: Float64Array }[] {
    const found = this.drawn.timeline.layers
      .filter((l) => l.device === device && l.by === by)
      .map((l) => ({ key: { key: l.key, others: l.others }, column: this.column(l.column) }));
    return found.sort((a, b) => orderOf(a.key, by) - orderOf(b.key, by));
  }

  private cut(device: number, level: Level, from: number, to: number, by: Dimension): Bins {
    const first = clamp(Math.floor((from - this.start) / level.width), 0, level.n - 1);
    const last = clamp(Math.ceil((to - this.start) / level.width), first + 1, level.n);
    const layers = this.layersOf(device, by), at = this.column(`bins.${device}.at`);
    const n = last - first;
    const pick = (c: Float64Array) => {
      const out = new Float64Array(n);
      for (let i = 0; i < n; i++) out[i] = c[level.best[first + i]];
      return out;
    };
    return {
      start: this.start + first * level.width, width: level.width, n, exact: false,
      max: level.max.subarray(first, last), min: level.min.subarray(first, last), at: pick(at),
      reserved: level.reserved.subarray(first, last), used: level.used.subarray(first, last),
      keys: layers.map((l) => l.key), layers: layers.map((l) => pick(l.column)),
    };
  }

  /** Bins of any width, of single blocks; only where all of them are there. */
  private exactBins(device: number, from: number, to: number, pixels: number, by: Dimension): Bins {
    const known = this.layersOf(device, by), names = known.map((l) => l.key.key);
    const coarse = this.cut(device, this.levelsOf(device)[0], from, to, by);
    const n = Math.max(1, Math.round(pixels)), width = (to - from) / n;
    const sums = new BlockSums(this, device, by, names, known.findIndex((l) => l.key.others > 0));
    const out: Bins = {
      start: from, width, n, exact: true, max: new Float64Array(n), min: new Float64Array(n),
      at: new Float64Array(n), reserved: new Float64Array(n), used: new Float64Array(n),
      keys: known.map((l) => l.key), layers: known.map(() => new Float64Array(n)),
    };
    sums.fill(out);
    for (let i = 0; i < n; i++) {
      const k = clamp(Math.floor((from + i * width - coarse.start) / coarse.width), 0, coarse.n - 1);
      out.reserved[i] = coarse.reserved[k];
      out.used[i] = coarse.used[k];
    }
    return out;
  }
}

function halve(l: Level): Level {
  const n = Math.ceil(l.n / 2);
  const out: Level = {
    n, width: l.width * 2, max: new Float64Array(n), min: new Float64Array(n),
    best: new Int32Array(n), reserved: new Float64Array(n), used: new Float64Array(n),
  };
  for (let i = 0; i < n; i++) {
    const a = 2 * i, b = Math.min(2 * i + 1, l.n - 1), high = l.max[b] > l.max[a] ? b : a;
    out.max[i] = l.max[high];
    out.best[i] = l.best[high];
    out.min[i] = Math.min(l.min[a], l.min[b]);
    out.reserved[i] = Math.max(l.reserved[a], l.reserved[b]);
    out.used[i] = Math.max(l.used[a], l.used[b]);
  }
  return out;
}

/** Long-lived memory lies below; what other pictures do not name keeps its order above it. */
function orderOf(k: LayerKey, by: Dimension): number {
  if (k.others > 0) return 2000;
  if (by === "module") return 0;
  return rankOf(k.key);
}

/** Adds single blocks up over time. */
class BlockSums {
  private readonly layer: Int16Array;
  private readonly changes: { ns: number; block: number; isFree: boolean }[] = [];

  constructor(source: EmbeddedSource, device: number, by: Dimension, names: (string | null)[],
              others: number) {
    const b = source.blocks, numbers = b.keys[by], rest = others < 0 ? 0 : others;
    const numberOf = new Map(names.map((name, i) => [name, i]));
    this.layer = new Int16Array(b.n).fill(-1);
    for (let i = 0; i < b.n; i++) {
      if (b.device[i] !== device) continue;
      this.layer[i] = numberOf.get(source.text(numbers[i])) ?? rest;
    }
    this.source = source;
  }

  private readonly source: EmbeddedSource;

  /** At equal times frees come first, as where memory is handed on. */
  private gather(from: number, to: number, now: Float64Array): number {
    const b = this.source.blocks;
    let sum = 0;
    for (let i = 0; i < b.n && b.alloc[i] <= to; i++) {
      if (this.layer[i] < 0 || b.free[i] < from) continue;
      if (b.alloc[i] < from) {
        now[this.layer[i]] += b.size[i];
        sum += b.size[i];
      } else this.changes.push({ ns: b.alloc[i], block: i, isFree: false });
      if (b.free[i] <= to) this.changes.push({ ns: b.free[i], block: i, isFree: true });
    }
    this.changes.sort((x, y) => x.ns - y.ns || Number(y.isFree) - Number(x.isFree));
    return sum;
  }

  fill(out: Bins): void {
    const b = this.source.blocks, now = new Float64Array(out.layers.length);
    const end = out.start + out.n * out.width;
    let sum = this.gather(out.start, end, now), next = 0;
    for (let i = 0; i < out.n; i++) {
      const until = i + 1 === out.n ? Infinity : out.start + (i + 1) * out.width;
      out.max[i] = out.min[i] = sum;
      out.at[i] = out.start + i * out.width;
      now.forEach((v, k) => { out.layers[k][i] = v; });
      for (; next < this.changes.length && this.changes[next].ns < until; next++) {
        const c = this.changes[next], size = c.isFree ? -b.size[c.block] : b.size[c.block];
        sum += size;
        now[this.layer[c.block]] += size;
        if (sum < out.min[i]) out.min[i] = sum;
        if (sum <= out.max[i]) continue;
        out.max[i] = sum;
        out.at[i] = c.ns;
        for (let k = 0; k < now.length; k++) out.layers[k][i] = now[k];
      }
    }
  }
}

/** The most that torch may have of a device: as the explanation of an OOM found, else as it was
 * told, else all of the device; null: not known. */
export function limitOf(source: Source, device: string): number | null {
  const explained = source.report.explain?.ooms.find((o) => o.device === device)?.evidence.limit;
  if (typeof explained === "number") return explained;
  const p = source.process;
  return p.ooms.find((o) => o.device === device && o.capacity)?.capacity ??
    p.accounting.find((a) => a.device === device && a.total)?.total ?? null;
}

export function clamp(v: number, low: number, high: number): number {
  return v < low ? low : v > high ? high : v;
}
