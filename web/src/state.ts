// SPDX-License-Identifier: MIT
/** What is looked at: one object that all parts of the page share, and the address that leads back
 * to it (#t=1.2-3.4&by=module). */
import { dimensions, type Dimension, type Source } from "./model";

export interface View {
  from: number; to: number; device: number; by: Dimension; strips: boolean;
  cursor: number | null; // the moment looked at; null: the peak
  other: number | null; // the moment that it is compared with; -1: the peak; null: none
  query: string;
}

/** Where a run begins to be of interest: programs load libraries for long before they allocate. */
function firstBytes(source: Source, device: number): number {
  const most = source.column(`bins.${device}.max`), top = most.reduce((a, b) => Math.max(a, b), 1);
  const first = most.findIndex((v) => v > top * 0.01);
  const part = first / Math.max(1, most.length);
  return part > 0.25 ? source.end * Math.max(0, part - (1 - part) * 0.04) : source.start;
}

export class State {
  view: View;
  private readonly listeners: ((changed: Partial<View>) => void)[] = [];

  constructor(readonly source: Source) {
    const device = source.drawn.peak?.device ?? 0;
    this.view = { from: firstBytes(source, device), to: source.end, device, by: "category", strips: false,
                  cursor: null, other: null, query: "" };
    this.read();
  }

  listen(f: (changed: Partial<View>) => void): void { this.listeners.push(f); }

  change(changed: Partial<View>): void {
    Object.assign(this.view, changed);
    this.keepInside();
    this.writeSoon();
    for (const f of this.listeners) f(changed);
  }

  /** A window is inside the run and not narrower than a few nanoseconds. */
  private keepInside(): void {
    const v = this.view, { start, end } = this.source;
    const span = Math.min(end - start, Math.max(20, v.to - v.from));
    v.from = Math.max(start, Math.min(v.from, end - span));
    v.to = v.from + span;
  }

  get isWhole(): boolean {
    return this.view.from <= this.source.start && this.view.to >= this.source.end;
  }

  private seconds(ns: number): string {
    return String(Math.round(ns + this.source.offset) / 1e9);
  }

  /** Browsers refuse addresses that change with every picture. */
  private writeSoon(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.write(), 150);
  }

  private timer = 0;

  private write(): void {
    const v = this.view, parts: string[] = [];
    if (!this.isWhole) parts.push(`t=${this.seconds(v.from)}-${this.seconds(v.to)}`);
    if (v.by !== "category") parts.push(`by=${v.by}`);
    if (v.strips) parts.push("blocks=1");
    if (v.device !== (this.source.drawn.peak?.device ?? 0)) parts.push(`device=${v.device}`);
    if (v.cursor !== null) parts.push(`at=${this.seconds(v.cursor)}`);
    if (v.other !== null) parts.push(`with=${v.other < 0 ? "peak" : this.seconds(v.other)}`);
    if (v.query) parts.push(`q=${encodeURIComponent(v.query)}`);
    const hash = parts.length ? `#${parts.join("&")}` : "#";
    if (hash !== (location.hash || "#")) history.replaceState(null, "", hash);
  }

  /** Take over what the address says; what makes no sense is passed over. */
  read(): void {
    const asked = new URLSearchParams(location.hash.slice(1)), v = this.view;
    const ns = (text: string) => Number(text) * 1e9 - this.source.offset;
    const span = /^([\d.]+)-([\d.]+)$/.exec(asked.get("t") ?? "");
    if (span && ns(span[2]) > ns(span[1])) {
      v.from = ns(span[1]);
      v.to = ns(span[2]);
    }
    const by = asked.get("by") as Dimension | null;
    if (by && dimensions.includes(by)) v.by = by;
    v.strips = asked.get("blocks") === "1";
    const device = Number(asked.get("device") ?? v.device);
    if (Number.isInteger(device) && device >= 0 && device < this.source.devices.length)
      v.device = device;
    const at = asked.get("at");
    if (at !== null && Number.isFinite(Number(at))) v.cursor = ns(at);
    const other = asked.get("with");
    if (other === "peak") v.other = -1;
    else if (other !== null && Number.isFinite(Number(other))) v.other = ns(other);
    v.query = asked.get("q") ?? "";
    this.keepInside();
  }
}
