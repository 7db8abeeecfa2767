// SPDX-License-Identifier: MIT
/** The second source of the page's data: a server (`tidemark serve`). It has what a file has, and
 * more is asked for where the view needs it: a window's bins at the width of a pixel, and its blocks.
 * What comes is joined with what is there, so the page's parts ask as they ask a file. */
import { split } from "./columns";
import { EmbeddedSource, type Bins, type Blocks, type Dimension, dimensions, type Frame } from "./model";
import type { Drawn, Page } from "./types";

/** An address of the server's; an error has the server's words. */
export async function ask(path: string, sql?: string): Promise<Response> {
  const answer = await fetch(path, sql === undefined ? {}
    : { method: "POST", headers: { "Content-Type": "application/sql" }, body: sql });
  if (answer.ok) return answer;
  const text = await answer.text();
  let said: string | undefined;
  try {
    said = (JSON.parse(text) as { error?: string }).error;
  } catch {
    // then it is text
  }
  throw new Error(said ?? text.trim());
}

async function askBytes(path: string): Promise<{ json: unknown; rest: Uint8Array }> {
  return split(new Uint8Array(await (await ask(path)).arrayBuffer()));
}

/** How often a window is asked for at most, and how many are kept. */
const pause = 120, mostWindows = 6;

interface Window { from: number; to: number; source: EmbeddedSource; all: boolean }

export class ServedSource extends EmbeddedSource {
  private readonly windows: Window[] = [];
  private readonly stacks = new Map<number, Frame[]>();
  private joined: Blocks | null = null;
  private wanted: { from: number; to: number; pixels: number } | null = null;
  private moment: number | null = null;
  private readonly moments = new Set<number>();
  private asking = false;
  private timer = 0;
  private nextStack = 1 << 24; // above those of the page
  private readonly numbers = new Map<string, number>();
  /** More is known than before. */
  onMore: () => void = () => undefined;

  constructor(page: Page, rest: Uint8Array, private readonly query: string) {
    super(page, rest);
    this.drawn.strings.forEach((s, i) => this.numbers.set(s, i + 1));
  }

  static async load(query: string): Promise<ServedSource> {
    const { json, rest } = await askBytes(`api/page${query && `?${query}`}`);
    return new ServedSource(json as Page, rest, query);
  }

  override hasAll(from: number, to: number): boolean {
    return super.hasAll(from, to) || this.windows.some((w) => w.all && w.from <= from && w.to >= to);
  }

  override get blocks(): Blocks { return this.joined ?? this.own; }

  override frames(stack: number): Frame[] { return this.stacks.get(stack) ?? super.frames(stack); }

  override bins(device: number, from: number, to: number, pixels: number, by: Dimension): Bins {
    const width = (to - from) / Math.max(1, pixels);
    const own = (this.end - this.start) / this.drawn.timeline.bins;
    if (super.hasAll(from, to) || width >= own * 0.7) return super.bins(device, from, to, pixels, by);
    const fits = this.windows.find((w) => w.from <= from && w.to >= to &&
      (w.all || (w.to - w.from) / w.source.drawn.timeline.bins <= width * 2));
    if (!fits) this.want(from, to, pixels);
    else if (!fits.all) return fits.source.bins(device, from, to, pixels, by);
    return super.bins(device, from, to, pixels, by);
  }

  /** Ask for the blocks of a moment, once. */
  wantMoment(ns: number): void {
    if (this.hasAll(ns, ns) || this.moments.has(ns)) return;
    this.moments.add(ns);
    this.moment = ns;
    void this.askWanted();
  }

  /** Ask for a window soon; of several in a row, for the last. */
  want(from: number, to: number, pixels: number): void {
    const span = Math.max(1000, to - from);
    this.wanted = { from: Math.max(0, Math.floor(from - span / 4)), to: Math.ceil(to + span / 4), pixels };
    if (this.asking || this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      void this.askWanted();
    }, pause);
  }

  private async askWanted(): Promise<void> {
    if (this.asking) return;
    const at = this.moment, w = at === null ? this.wanted : { from: Math.floor(at), to: Math.ceil(at) + 1, pixels: 1 };
    if (!w) return;
    if (at === null) this.wanted = null;
    this.moment = null;
    this.asking = true;
    try {
      const width = Math.min(4096, Math.max(16, Math.round(w.pixels * 1.5)));
      const { json, rest } = await askBytes(
        `api/timeline?t0=${w.from}&t1=${w.to}&width=${width}${this.query && `&${this.query}`}`);
      this.take(json as { drawn: Drawn }, rest);
      this.onMore();
    } catch {
      // the picture stays as coarse as it is; the live badge says when the server has gone
    } finally {
      this.asking = false;
    }
    if (this.wanted || this.moment !== null) void this.askWanted();
  }

  private take(json: { drawn: Drawn }, rest: Uint8Array): void {
    const source = new EmbeddedSource({ ...this.page, drawn: json.drawn }, rest);
    const d = source.drawn, from = source.start, to = source.end;
    const all = d.blocks.window_start_ns !== null && d.blocks.window_start_ns <= from &&
      d.blocks.window_end_ns !== null && d.blocks.window_end_ns >= to;
    this.windows.unshift({ from, to, source, all });
    this.windows.length = Math.min(this.windows.length, mostWindows);
    this.join();
  }

  // ---- blocks of all windows, with this page's numbers

  private numberOf(text: string | null): number {
    if (text === null) return 0;
    let n = this.numbers.get(text);
    if (n === undefined) {
      n = this.drawn.strings.push(text);
      this.numbers.set(text, n);
    }
    return n;
  }

  private join(): void {
    const seen = new Set<string>(), rows: { b: Blocks; i: number; w: Window | null }[] = [];
    const add = (b: Blocks, w: Window | null) => {
      for (let i = 0; i < b.n; i++) {
        const key = `${b.alloc[i]} ${b.address[i]} ${b.size[i]} ${b.device[i]} ${b.free[i]}`;
        if (!seen.has(key)) rows.push({ b, i, w });
        seen.add(key);
      }
    };
    add(this.own, null);
    for (const w of this.windows) add(w.source.blocks, w);
    rows.sort((x, y) => x.b.alloc[x.i] - y.b.alloc[y.i]);
    this.joined = this.gather(rows);
  }

  private stackOf(w: Window, known: Map<number, number>, stack: number): number {
    if (!(stack > 0)) return 0;
    let n = known.get(stack);
    if (n === undefined) {
      n = this.nextStack++;
      this.stacks.set(n, w.source.frames(stack));
      known.set(stack, n);
    }
    return n;
  }

  private gather(rows: { b: Blocks; i: number; w: Window | null }[]): Blocks {
    const known = new Map<Window, Map<number, number>>(this.windows.map((w) => [w, new Map()]));
    this.stacks.clear();
    const pick = (of: (b: Blocks) => Float64Array) => Float64Array.from(rows, (r) => of(r.b)[r.i]);
    const texts = (of: (b: Blocks) => Float64Array) => Float64Array.from(rows, (r) =>
      r.w ? this.numberOf(r.w.source.text(of(r.b)[r.i])) : of(r.b)[r.i]);
    return {
      n: rows.length, alloc: pick((b) => b.alloc), free: pick((b) => b.free), size: pick((b) => b.size),
      address: pick((b) => b.address), step: pick((b) => b.step), device: pick((b) => b.device),
      tensor: texts((b) => b.tensor),
      stack: Float64Array.from(rows, (r) =>
        r.w ? this.stackOf(r.w, known.get(r.w)!, r.b.stack[r.i]) : r.b.stack[r.i]),
      keys: Object.fromEntries(dimensions.map((d) => [d, texts((b) => b.keys[d])])) as Blocks["keys"],
    };
  }
}
