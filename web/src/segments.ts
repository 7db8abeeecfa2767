// SPDX-License-Identifier: MIT
/** The segments of the driver with their blocks and gaps, at the moment of the worst
 * fragmentation, drawn to scale. */
import { css, fill, fit, h, soon } from "./dom";
import { bytes } from "./format";
import { colourOf } from "./palette";
import { frameText, siteOf } from "./rows";
import type { State } from "./state";
import { t } from "./strings";

const rowHeight = 13, maxRows = 400;

/** Bytes `from`, `to` of a segment; `x` is in bytes too. */
interface Piece { segment: number; from: number; to: number; x: number; y: number }

export class SegmentMap {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { role: "img", "data-plot": "segments" });
  private readonly tip = h("div.tip", { hidden: true });
  private pieces: Piece[] = [];
  private rowBytes = 1;
  private nRows = 0;
  private readonly first: number[] = []; // by segment: its first block
  private readonly redraw = soon(() => this.draw());

  constructor(private readonly state: State) {
    const box = h("div.plot", {}, this.canvas, this.tip);
    this.element = h("div", {}, box);
    const n = this.column("blocks");
    for (let i = 0, at = 0; i < n.length; at += n[i++]) this.first.push(at);
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    new ResizeObserver(this.redraw).observe(box);
  }

  private column(name: string): Float64Array { return this.state.source.column(`map.${name}`); }

  /** Segments follow each other like words in a text; a long one goes on in further rows. Rows have
   * as many bytes as the third largest segment, so that one giant does not make all others a pixel
   * wide, and at least a fortieth of the largest. */
  private layOut(): void {
    const sizes = this.column("size"), sorted = [...sizes].sort((a, b) => b - a);
    this.rowBytes = Math.max(1, sorted[Math.min(2, sorted.length - 1)] ?? 1, (sorted[0] ?? 1) / 40);
    this.pieces = [];
    const gap = this.rowBytes / 250;
    let x = 0, row = 0;
    for (let s = 0; s < sizes.length && row < maxRows; s++) {
      if (x > 0 && x + sizes[s] > this.rowBytes) {
        x = 0;
        row++;
      }
      for (let at = 0; at < sizes[s]; at += this.rowBytes) {
        const to = Math.min(sizes[s], at + this.rowBytes);
        this.pieces.push({ segment: s, from: at, to, x, y: row * rowHeight });
        x += to - at + gap;
        if (to < sizes[s]) {
          x = 0;
          row++;
        }
      }
    }
    this.nRows = row + 1;
  }

  private draw(): void {
    if (!this.element.isConnected) return;
    this.layOut();
    const c = fit(this.canvas, this.nRows * rowHeight + 2);
    const width = this.canvas.parentElement!.clientWidth, scale = width / this.rowBytes;
    const starts = this.column("start"), sizes = this.column("bytes"), keys = this.column("category");
    const counts = this.column("blocks");
    for (const p of this.pieces) {
      c.fillStyle = css("--gap");
      c.fillRect(p.x * scale, p.y, Math.max(1, (p.to - p.from) * scale), rowHeight - 2);
      for (let b = this.first[p.segment]; b < this.first[p.segment] + counts[p.segment]; b++) {
        const from = Math.max(starts[b], p.from), to = Math.min(starts[b] + sizes[b], p.to);
        if (to <= from) continue;
        c.fillStyle = colourOf(this.state.source.text(keys[b]));
        c.fillRect((p.x + from - p.from) * scale, p.y, Math.max(0.7, (to - from) * scale - 0.4), rowHeight - 2);
      }
    }
    this.canvas.setAttribute("aria-label", `${t("map")}: ${this.column("size").length}. ${t("mapHint")}`);
  }

  private blockAt(p: Piece, at: number): number {
    const starts = this.column("start"), sizes = this.column("bytes");
    for (let b = this.first[p.segment]; b < this.first[p.segment] + this.column("blocks")[p.segment]; b++)
      if (at >= starts[b] && at < starts[b] + sizes[b]) return b;
    return -1;
  }

  private point(e: PointerEvent): void {
    const r = this.canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    const place = x / r.width * this.rowBytes;
    const p = this.pieces.find((q) => y >= q.y && y < q.y + rowHeight && place >= q.x && place < q.x + q.to - q.from);
    this.tip.hidden = !p;
    if (!p) return;
    const at = p.from + place - p.x;
    const b = this.blockAt(p, at), source = this.state.source;
    const row = (label: string, value: string) => h("div.row", {}, h("span", {}, label), h("span", {}, value));
    const frames = b >= 0 ? source.frames(this.column("stack")[b]) : [];
    fill(this.tip,
      h("b", {}, b < 0 ? t("gap") : source.text(this.column("tensor")[b]) ?? t("block")),
      b < 0 ? row(t("size"), bytes(this.gapAt(p, at))) : row(t("size"), bytes(this.column("bytes")[b])),
      b >= 0 && row(t("category"), source.text(this.column("category")[b]) ?? t("unknown")),
      row(t("segment"), `${bytes(this.column("size")[p.segment])}, ` +
        t(this.column("small")[p.segment] ? "smallPool" : "largePool")),
      row(t("address"), `0x${this.column("address")[p.segment].toString(16)}`),
      b >= 0 && h("code", {}, frames.length ? frameText(siteOf(frames)) : t("noStack")));
    const right = x > r.width / 2;
    this.tip.style.left = right ? "" : `${x + 14}px`;
    this.tip.style.right = right ? `${r.width - x + 14}px` : "";
    this.tip.style.top = `${y + 16}px`;
  }

  private gapAt(p: Piece, at: number): number {
    const starts = this.column("start"), sizes = this.column("bytes");
    let from = 0, to = this.column("size")[p.segment];
    for (let b = this.first[p.segment]; b < this.first[p.segment] + this.column("blocks")[p.segment]; b++) {
      if (starts[b] + sizes[b] <= at) from = Math.max(from, starts[b] + sizes[b]);
      else if (starts[b] > at) {
        to = starts[b];
        break;
      }
    }
    return to - from;
  }
}
