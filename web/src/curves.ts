// SPDX-License-Identifier: MIT
/** Small plots of lines: steps, ranks. */
import { css, fill, fit, h, soon } from "./dom";
import { bytes, niceBytes, niceStep } from "./format";
import { line } from "./timeline";

export interface Curve { name: string; colour: string; values: Float64Array; filled?: boolean } // NaN: a gap

const margin = { left: 70, right: 10, top: 8, bottom: 22 };

/** Curves over numbered places. A column of pixels shows the highest value of its places. */
export class Curves {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly tip = h("div.tip", { hidden: true });
  private readonly redraw = soon(() => this.draw());
  private top = 1;

  constructor(private readonly curves: Curve[], private readonly options: {
    height: number; label: string; x: (i: number) => string;
    ticks?: { at: number; text: string }[]; click?: (i: number) => void;
  }) {
    this.canvas = h("canvas", { role: "img", "aria-label": options.label, "data-plot": "curves" });
    const box = h("div.plot", {}, this.canvas, this.tip);
    this.element = h("div", {}, box, h("div.legend", {}, curves.length < 9 && curves.map((c) => {
      const sign = h("i.swatch");
      sign.style.background = c.colour;
      return h("span", {}, sign, c.name);
    })));
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    if (options.click) {
      this.canvas.style.cursor = "pointer";
      this.canvas.addEventListener("click", (e) => options.click!(this.placeAt(e)));
    }
    new ResizeObserver(this.redraw).observe(box);
  }

  private get n(): number { return Math.max(1, ...this.curves.map((c) => c.values.length)); }
  private get width(): number {
    return Math.max(40, this.canvas.parentElement!.clientWidth - margin.left - margin.right);
  }

  private placeAt(e: MouseEvent): number {
    const x = e.clientX - this.canvas.getBoundingClientRect().left - margin.left;
    return Math.max(0, Math.min(this.n - 1, Math.floor(x / this.width * this.n)));
  }

  private drawAxes(c: CanvasRenderingContext2D, hh: number): void {
    c.font = "11px system-ui, sans-serif";
    c.strokeStyle = css("--grid");
    c.fillStyle = css("--faint");
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (let v = 0, size = niceBytes(this.top, 4); v <= this.top; v += size) {
      const y = Math.round(margin.top + (1 - v / this.top) * hh) + 0.5;
      line(c, margin.left, y, margin.left + this.width, y);
      c.fillText(bytes(v), margin.left - 6, y);
    }
    c.textBaseline = "top";
    c.textAlign = "center";
    const step = Math.max(1, niceStep(this.n, this.width / 90));
    const ticks = this.options.ticks ?? Array.from({ length: Math.ceil(this.n / step) }, (_, i) => ({
      at: i * step + 0.5, text: this.options.x(i * step) }));
    for (const { at, text } of ticks)
      c.fillText(text, margin.left + Math.max(10, at / this.n * this.width), margin.top + hh + 6);
  }

  private draw(): void {
    if (!this.element.isConnected) return;
    const c = fit(this.canvas, this.options.height), hh = this.options.height - margin.top - margin.bottom;
    this.top = 1;
    for (const curve of this.curves)
      for (const v of curve.values) if (v > this.top) this.top = v;
    this.top *= 1.05;
    this.drawAxes(c, hh);
    for (const curve of this.curves) this.drawCurve(c, curve, hh);
  }

  private drawCurve(c: CanvasRenderingContext2D, curve: Curve, hh: number): void {
    const pixels = Math.min(this.n, Math.ceil(this.width)), bottom = margin.top + hh;
    let down = false;
    c.beginPath();
    for (let p = 0; p < pixels; p++) {
      const first = Math.floor(p * this.n / pixels), last = Math.floor((p + 1) * this.n / pixels);
      let most = NaN;
      for (let i = first; i < Math.max(first + 1, last); i++)
        if (!(curve.values[i] <= most)) most = curve.values[i];
      const x0 = margin.left + p / pixels * this.width, x1 = margin.left + (p + 1) / pixels * this.width;
      if (Number.isNaN(most) || most === undefined) {
        down = false;
        continue;
      }
      const y = margin.top + (1 - most / this.top) * hh;
      if (curve.filled) c.rect(x0, y, Math.max(0.6, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), bottom - y);
      else if (down) c.lineTo(x0, y);
      else c.moveTo(x0, y);
      if (!curve.filled) c.lineTo(x1, y);
      down = true;
    }
    c.lineWidth = 1.6;
    if (curve.filled) c.fillStyle = curve.colour;
    else c.strokeStyle = curve.colour;
    if (curve.filled) c.fill();
    else c.stroke();
  }

  private point(e: PointerEvent): void {
    const i = this.placeAt(e), r = this.canvas.getBoundingClientRect(), x = e.clientX - r.left;
    const rows = this.curves.map((c) => ({ c, v: c.values[i] })).filter(({ v }) => v >= 0)
      .sort((a, b) => this.curves.length > 8 ? b.v - a.v : 0).slice(0, 10);
    this.tip.hidden = rows.length === 0;
    fill(this.tip, h("b", {}, this.options.x(i)), rows.map(({ c, v }) => {
      const sign = h("i.swatch");
      sign.style.background = c.colour;
      return h("div.row", {}, h("span", {}, sign, c.name), h("span", {}, bytes(v)));
    }));
    const right = x > r.width / 2;
    this.tip.style.left = right ? "" : `${x + 14}px`;
    this.tip.style.right = right ? `${r.width - x + 14}px` : "";
    this.tip.style.top = "10px";
  }
}
