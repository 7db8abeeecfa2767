// SPDX-License-Identifier: MIT
/** What is alive at a moment, as rows, and their sums by what they have in common. */
import type { Dimension, Frame, PeakRows, Source } from "./model";

export type By = Dimension | "line" | "tensor";

export interface Sum { key: string | null; bytes: number; blocks: number; stack: number }

/** The innermost frame of the user's own code; failing that of a library, then any. */
export function siteOf(frames: Frame[]): Frame | null {
  return frames.find((f) => f.kind === 0) ?? frames.find((f) => f.kind === 1) ?? frames[0] ?? null;
}

export function frameText(f: Frame | null): string {
  if (!f) return "?";
  if (!f.file) return f.function ?? "?";
  return `${f.file}${f.line ? `:${f.line}` : ""}${f.function ? ` ${f.function}` : ""}`;
}

/** The rows of a moment for which all blocks are there. */
export function aliveAt(source: Source, device: number, ns: number): PeakRows {
  const b = source.blocks, alive: number[] = [];
  for (let i = 0; i < b.n && b.alloc[i] <= ns; i++)
    if (b.free[i] > ns && b.device[i] === device) alive.push(i);
  const pick = (c: Float64Array) => Float64Array.from(alive, (i) => c[i]);
  return {
    n: alive.length, bytes: pick(b.size), blocks: new Float64Array(alive.length).fill(1),
    stack: pick(b.stack), tensor: pick(b.tensor),
    keys: { category: pick(b.keys.category), module: pick(b.keys.module),
            component: pick(b.keys.component), stage: pick(b.keys.stage) },
  };
}

export function sumBy(source: Source, rows: PeakRows, by: By, keep?: (row: number) => boolean):
    Sum[] {
  const sums = new Map<string | null, Sum>(), lines = new Map<number, string | null>();
  const line = (stack: number): string | null => {
    let text = lines.get(stack);
    if (text === undefined) {
      text = stack > 0 ? frameText(siteOf(source.frames(stack))) : null;
      lines.set(stack, text);
    }
    return text;
  };
  for (let i = 0; i < rows.n; i++) {
    if (keep && !keep(i)) continue;
    const key = by === "line" ? line(rows.stack[i])
      : source.text(by === "tensor" ? rows.tensor[i] : rows.keys[by][i]);
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = { key, bytes: 0, blocks: 0, stack: rows.stack[i] }));
    sum.bytes += rows.bytes[i];
    sum.blocks += rows.blocks[i];
  }
  return [...sums.values()].sort((a, b) => b.bytes - a.bytes || compare(a.key, b.key));
}

function compare(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Finds texts that contain a query, whatever their case: in stacks, modules and tensors. */
export class Finder {
  private readonly texts = new Map<number, boolean>();
  private readonly stacks = new Map<number, boolean>();
  private readonly query: string;

  constructor(private readonly source: Source, query: string) { this.query = query.toLowerCase(); }

  private has(text: string | null): boolean {
    return text !== null && text.toLowerCase().includes(this.query);
  }

  text(number: number): boolean {
    let found = this.texts.get(number);
    if (found === undefined) this.texts.set(number, (found = this.has(this.source.text(number))));
    return found;
  }

  stack(number: number): boolean {
    let found = this.stacks.get(number);
    if (found === undefined) {
      found = this.source.frames(number).some((f) => this.has(f.file) || this.has(f.function) ||
        this.has(frameText(f)));
      this.stacks.set(number, found);
    }
    return found;
  }

  row(r: { stack: Float64Array; tensor: Float64Array; keys: Record<Dimension, Float64Array> },
      i: number): boolean {
    return this.text(r.tensor[i]) || this.text(r.keys.module[i]) || this.stack(r.stack[i]);
  }
}
