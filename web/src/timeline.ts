// SPDX-License-Identifier: MIT
/** The timeline: layers or strips over time with lines, marks and steps; an overview below it. */
import { css, fill, fit, h, soon, swatch, table } from "./dom";
import { bytes, count, duration, moment, niceBytes, niceStep } from "./format";
import { clamp, dimensions, limitOf, type Bins, type Dimension, type LayerKey, type Source } from "./model";
import { colourOf } from "./palette";
import { similar } from "./colours.gen";
import { Finder, frameText, siteOf } from "./rows";
import type { State } from "./state";
import { layOut, stripAt, type StripLayout } from "./strips";
import { t } from "./strings";

const maxLegend = 14;
const margin = { left: 70, right: 10, top: 18, bottom: 24 };

/** A colour for each layer. Modules have no colours of their own: they get one after the other, and
 * paler ones when those are used up. */
export function layerColours(keys: LayerKey[], by: Dimension): string[] {
  let next = 0;
  return keys.map((k) => {
    if (k.others > 0) return colourOf("other");
    if (k.key === null || by !== "module") return colourOf(k.key);
    const i = next++, base = similar[i % similar.length];
    return i < similar.length ? base : `color-mix(in srgb, ${base} 55%, ${i % 20 < 10 ? "#fff" : "#000"})`;
  });
}

export function layerName(k: LayerKey): string {
  return k.others > 0 ? t("others", count(k.others)) : k.key ?? t("unknown");
}

export class Timeline {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { tabindex: 0, role: "img", "data-plot": "timeline" });
  private readonly overlay = h("canvas.overlay", { "aria-hidden": "true" });
  private readonly overview = h("canvas.overview", { "aria-hidden": "true" });
  private readonly tip = h("div.tip", { hidden: true });
  private readonly legend = h("div.legend");
  private readonly tools = h("div.tools");
  private readonly note = h("p.faint.note");
  private readonly chosen = h("div.chosen", { hidden: true, "aria-live": "polite" });
  private readonly values = h("details", { toggle: () => this.fillValues() });
  private bins!: Bins;
  private colours: string[] = [];
  private strips: StripLayout | null = null;
  private top = 1;
  private hover: { x: number; y: number } | null = null;
  private readonly redraw = soon(() => this.draw());
  private readonly rehover = soon(() => this.drawHover());
  private readonly source: Source;

  constructor(private readonly state: State) {
    this.source = state.source;
    const box = h("div.plot", {}, this.canvas, this.overlay, this.tip);
    this.element = h("section", { id: "timeline" },
      h("h2", {}, t("timeline")), this.tools, this.legend, box,
      h("div.plot", {}, this.overview), this.chosen, this.note, this.values);
    this.listen(box);
    this.fillTools();
    state.listen((changed) => {
      if ("by" in changed || "strips" in changed || "device" in changed) this.fillTools();
      this.redraw();
    });
    new ResizeObserver(this.redraw).observe(box);
  }

  // ---- tools

  private fillTools(): void {
    const v = this.state.view, s = this.state;
    const choice = (label: string, pressed: boolean, click: () => void) =>
      h("button", { type: "button", "aria-pressed": String(pressed), click }, label);
    const choices = h("div.choices", { role: "group", "aria-label": t("by") },
      dimensions.map((d) => choice(t(d), v.by === d && !v.strips,
        () => s.change({ by: d, strips: false }))),
      choice(t("blocks"), v.strips, () => s.change({ strips: true })));
    const devices = this.source.devices.length < 2 ? null
      : h("select", { "aria-label": t("deviceLabel"),
                      change: (e) => s.change({ device: (e.target as HTMLSelectElement).selectedIndex }) },
          this.source.devices.map((name, i) => h("option", { selected: i === v.device }, name)));
    const act = (label: string, text: string, click: () => void) =>
      h("button", { type: "button", "aria-label": label, title: label, click }, text);
    fill(this.tools, choices, devices, h("div.choices", { role: "group" },
      act(t("zoomIn"), "+", () => this.zoom(0.5)), act(t("zoomOut"), "−", () => this.zoom(2)),
      act(t("left"), "←", () => this.pan(-0.3)), act(t("right"), "→", () => this.pan(0.3)),
      act(t("toPeak"), t("toPeak"), () => this.toPeak()),
      act(t("all"), t("all"), () => s.change({ from: this.source.start, to: this.source.end }))));
  }

  /** The window around the peak in which each block is known; else a fiftieth of the run. */
  private toPeak(): void {
    const peak = this.source.drawn.peak, b = this.source.drawn.blocks;
    if (!peak) return;
    const known = b.window_start_ns !== null && b.window_end_ns !== null &&
      b.window_end_ns - b.window_start_ns < this.source.end * 0.9;
    const half = this.source.end / 100;
    this.state.change({
      from: known ? b.window_start_ns! : peak.time_ns - half,
      to: known ? b.window_end_ns! : peak.time_ns + half, device: peak.device, cursor: null,
    });
  }

  zoom(factor: number, around?: number): void {
    const { from, to } = this.state.view, at = around ?? (from + to) / 2;
    this.state.change({ from: at - (at - from) * factor, to: at + (to - at) * factor });
  }

  pan(part: number): void {
    const { from, to } = this.state.view, by = (to - from) * part;
    this.state.change({ from: from + by, to: to + by });
  }

  // ---- events

  private listen(box: HTMLElement): void {
    const pointers = new Map<number, number>();
    let moved = 0, brush: number | null = null;
    const x = (e: PointerEvent | WheelEvent) => e.clientX - box.getBoundingClientRect().left;
    box.addEventListener("pointerdown", (e) => {
      pointers.set(e.pointerId, x(e));
      moved = 0;
      brush = e.shiftKey ? x(e) : null;
      box.setPointerCapture(e.pointerId);
    });
    box.addEventListener("pointermove", (e) => {
      this.hover = { x: x(e), y: e.clientY - box.getBoundingClientRect().top };
      const before = pointers.get(e.pointerId);
      if (before !== undefined) {
        moved += Math.abs(x(e) - before);
        if (pointers.size === 2) this.pinch(pointers, e.pointerId, x(e));
        else if (brush === null) this.pan((before - x(e)) / this.plotWidth());
        pointers.set(e.pointerId, x(e));
      }
      this.brush = brush;
      this.rehover();
    });
    box.addEventListener("pointerup", (e) => {
      if (brush !== null && Math.abs(x(e) - brush) > 4)
        this.state.change({ from: this.timeAt(Math.min(x(e), brush)), to: this.timeAt(Math.max(x(e), brush)) });
      else if (pointers.size === 1 && moved < 5)
        this.look(x(e), e.clientY - box.getBoundingClientRect().top);
      pointers.delete(e.pointerId);
      brush = this.brush = null;
    });
    box.addEventListener("pointercancel", (e) => pointers.delete(e.pointerId));
    box.addEventListener("pointerleave", () => {
      this.hover = null;
      this.rehover();
    });
    box.addEventListener("dblclick", () => this.state.change({ from: this.source.start, to: this.source.end }));
    box.addEventListener("wheel", (e) => this.wheel(e, x(e)), { passive: false });
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    this.listenOverview();
  }

  private brush: number | null = null;

  /** What changes nothing scrolls the page, as elsewhere. */
  private wheel(e: WheelEvent, x: number): void {
    const sideways = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY);
    if (!sideways && e.deltaY > 0 && this.state.isWhole) return;
    e.preventDefault();
    if (sideways) this.pan((e.deltaX || e.deltaY) / this.plotWidth());
    else this.zoom(Math.exp(clamp(e.deltaY, -200, 200) / 300), this.timeAt(x));
  }

  private pinch(pointers: Map<number, number>, id: number, x: number): void {
    const other = [...pointers].find(([i]) => i !== id)![1], before = pointers.get(id)!;
    const was = Math.abs(before - other), is = Math.abs(x - other);
    if (was > 10 && is > 10) this.zoom(was / is, this.timeAt((x + other) / 2));
  }

  private key(e: KeyboardEvent): void {
    const { from, to, cursor } = this.state.view;
    const actions: Record<string, () => void> = {
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6),
      "0": () => this.state.change({ from: this.source.start, to: this.source.end }),
      Home: () => this.state.change({ from: this.source.start, to: this.source.end }),
      p: () => this.toPeak(),
      b: () => this.state.change({ strips: !this.state.view.strips }),
      Escape: () => this.state.change({ cursor: null }),
      ArrowLeft: () => e.shiftKey ? this.moveCursor(-1) : this.pan(-0.1),
      ArrowRight: () => e.shiftKey ? this.moveCursor(1) : this.pan(0.1),
      Enter: () => this.look(this.xOf(cursor ?? (from + to) / 2)),
    };
    const action = actions[e.key];
    if (!action || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    action();
  }

  private moveCursor(by: number): void {
    const { from, to, cursor } = this.state.view;
    const width = (to - from) / this.plotWidth() * 4;
    this.state.change({ cursor: clamp((cursor ?? (from + to) / 2) + by * width, from, to) });
  }

  /** Look at the moment under the pointer: of a bin, its highest; and at the block there. */
  private look(x: number, y = -1): void {
    if (x < margin.left) return;
    const strip = this.strips ? stripAt(this.source.blocks, this.strips, this.timeAt(x), this.levelAt(y)) : null;
    this.chosen.hidden = strip === null;
    if (strip) fill(this.chosen, this.blockTip(strip.block), this.wholeStack(strip.block));
    const ns = this.timeAt(x), i = this.binAt(ns);
    this.state.change({ cursor: this.bins.exact || this.state.view.strips ? ns : this.bins.at[i] });
  }

  private listenOverview(): void {
    let held = false;
    const go = (e: PointerEvent) => {
      const r = this.overview.getBoundingClientRect(), { from, to } = this.state.view;
      const at = (e.clientX - r.left - margin.left) / (r.width - margin.left - margin.right) *
        this.source.end;
      this.state.change({ from: at - (to - from) / 2, to: at + (to - from) / 2 });
    };
    this.overview.addEventListener("pointerdown", (e) => {
      held = true;
      this.overview.setPointerCapture(e.pointerId);
      go(e);
    });
    this.overview.addEventListener("pointermove", (e) => { if (held) go(e); });
    this.overview.addEventListener("pointerup", () => { held = false; });
  }

  // ---- places

  private get height(): number { return window.innerWidth < 600 ? 240 : 300; }
  private plotWidth(): number {
    return Math.max(50, this.canvas.parentElement!.clientWidth - margin.left - margin.right);
  }
  private plotHeight(): number { return this.height - margin.top - margin.bottom; }
  private timeAt(x: number): number {
    const { from, to } = this.state.view;
    return from + clamp((x - margin.left) / this.plotWidth(), 0, 1) * (to - from);
  }
  private xOf(ns: number): number {
    const { from, to } = this.state.view;
    return margin.left + (ns - from) / (to - from) * this.plotWidth();
  }
  private levelAt(y: number): number {
    return (1 - (y - margin.top) / this.plotHeight()) * this.top;
  }
  private yOf(level: number): number {
    return margin.top + (1 - level / this.top) * this.plotHeight();
  }
  private binAt(ns: number): number {
    return clamp(Math.floor((ns - this.bins.start) / this.bins.width), 0, this.bins.n - 1);
  }

  private limit(): number | null {
    return limitOf(this.source, this.source.devices[this.state.view.device]);
  }

  // ---- drawing

  private read(): void {
    const v = this.state.view;
    this.bins = this.source.bins(v.device, v.from, v.to, this.plotWidth(), v.by);
    this.colours = layerColours(this.bins.keys, v.by);
    this.strips = v.strips ? layOut(this.source.blocks, v.device, v.from, v.to) : null;
    let most = 1;
    for (let i = 0; i < this.bins.n; i++)
      most = Math.max(most, this.bins.max[i], this.bins.reserved[i] - 1, this.bins.used[i] - 1);
    const limit = this.limit();
    if (limit !== null && limit <= most * 1.6) most = Math.max(most, limit);
    this.top = most * 1.04;
  }

  private draw(): void {
    if (!this.element.isConnected || this.source.devices.length === 0) return;
    this.read();
    const c = fit(this.canvas, this.height);
    this.drawGrid(c);
    c.save();
    c.beginPath();
    c.rect(margin.left, margin.top, this.plotWidth(), this.plotHeight());
    c.clip();
    if (this.strips) this.drawStrips(c, this.strips);
    else this.drawLayers(c);
    this.drawLines(c);
    c.restore();
    this.drawMarks(c);
    this.drawOverview();
    this.drawHover();
    this.tellSoon();
  }

  /** The words around the picture; while it moves, only now and then. */
  private tellSoon(): void {
    const now = performance.now();
    clearTimeout(this.timer);
    if (now - this.told < 200) {
      this.timer = window.setTimeout(() => this.tellSoon(), 200);
      return;
    }
    this.told = now;
    this.fillLegend();
    this.describe();
  }

  private told = -Infinity;
  private timer = 0;

  private drawGrid(c: CanvasRenderingContext2D): void {
    const { from, to } = this.state.view, w = this.plotWidth(), hh = this.plotHeight();
    c.font = "11px system-ui, sans-serif";
    c.strokeStyle = css("--grid");
    c.fillStyle = css("--faint");
    c.lineWidth = 1;
    c.textAlign = "right";
    c.textBaseline = "middle";
    const size = niceBytes(this.top, 5);
    for (let v = 0; v <= this.top; v += size) {
      const y = Math.round(this.yOf(v)) + 0.5;
      line(c, margin.left, y, margin.left + w, y);
      c.fillText(bytes(v), margin.left - 6, y);
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    const step = niceStep(to - from, w / 85), o = this.source.offset;
    for (let v = Math.ceil((from + o) / step) * step; v <= to + o; v += step) {
      const x = Math.round(this.xOf(v - o)) + 0.5;
      line(c, x, margin.top + hh, x, margin.top + hh + 4);
      c.fillText(moment(v, step, to + o), clamp(x, margin.left + 20, margin.left + w - 24), margin.top + hh + 7);
    }
    this.drawSteps(c);
  }

  private drawSteps(c: CanvasRenderingContext2D): void {
    const starts = this.source.column("steps.start"), names = this.source.column("steps.step");
    const { from, to } = this.state.view;
    const first = lowerBound(starts, from), last = lowerBound(starts, to);
    if (last - first > this.plotWidth()) return;
    const ooms = this.source.process.ooms.map((o) => this.xOf(o.time_ns - this.source.offset));
    c.textAlign = "left";
    c.textBaseline = "bottom";
    for (let i = first, drawn = -Infinity, named = -Infinity; i < last; i++) {
      const x = Math.round(this.xOf(starts[i])) + 0.5, next = i + 1 < starts.length ? this.xOf(starts[i + 1]) : Infinity;
      if (x - drawn < 12 || next - x < 12) continue;
      line(c, x, margin.top - 4, x, margin.top + this.plotHeight());
      drawn = x;
      if (x - named < 60 || next - x < 40 || x > margin.left + this.plotWidth() - 50 || ooms.some((o) => Math.abs(o - x - 25) < 45)) continue;
      c.fillText(`${t("step")} ${names[i]}`, x + 3, margin.top);
      named = x;
    }
  }

  private drawLayers(c: CanvasRenderingContext2D): void {
    const b = this.bins, n = b.n, base = new Float64Array(n);
    const xs = new Float64Array(n + 1);
    for (let i = 0; i <= n; i++) xs[i] = this.xOf(b.start + i * b.width);
    b.layers.forEach((layer, k) => {
      c.fillStyle = this.colours[k];
      c.beginPath();
      for (let i = 0; i < n; i++) {
        const y = this.yOf(base[i] + layer[i]);
        c.lineTo(xs[i], y);
        c.lineTo(xs[i + 1], y);
      }
      for (let i = n - 1; i >= 0; i--) {
        const y = this.yOf(base[i]);
        c.lineTo(xs[i + 1], y);
        c.lineTo(xs[i], y);
      }
      c.fill();
      for (let i = 0; i < n; i++) base[i] += layer[i];
    });
  }

  private drawStrips(c: CanvasRenderingContext2D, layout: StripLayout): void {
    const b = this.source.blocks, by = this.state.view.by, keys = b.keys[by];
    const colours = new Map(this.bins.keys.map((k, i) => [k.others ? "\0" : k.key, this.colours[i]]));
    const finder = this.state.view.query ? new Finder(this.source, this.state.view.query) : null;
    this.fillTotal(c, css("--rest"));
    c.lineWidth = 0.5;
    c.strokeStyle = css("--surface");
    for (const s of layout.strips) {
      const key = this.source.text(keys[s.block]);
      c.globalAlpha = finder && !finder.row(b, s.block) ? 0.15 : 1;
      c.fillStyle = colours.get(key) ?? colours.get("\0") ?? colourOf(key);
      this.stripPath(c, s);
      c.fill();
      if (b.size[s.block] / this.top * this.plotHeight() > 5) c.stroke();
    }
    c.globalAlpha = 1;
  }

  private stripPath(c: CanvasRenderingContext2D, s: StripLayout["strips"][0]): void {
    const size = this.source.blocks.size[s.block];
    c.beginPath();
    for (let i = 0; i < s.times.length; i++) {
      const y = this.yOf(s.levels[i]);
      c.lineTo(this.xOf(s.times[i]), y);
      c.lineTo(this.xOf(i + 1 < s.times.length ? s.times[i + 1] : s.to), y);
    }
    for (let i = s.times.length - 1; i >= 0; i--) {
      const y = this.yOf(s.levels[i] + size);
      c.lineTo(this.xOf(i + 1 < s.times.length ? s.times[i + 1] : s.to), y);
      c.lineTo(this.xOf(s.times[i]), y);
    }
    c.closePath();
  }

  private fillTotal(c: CanvasRenderingContext2D, colour: string): void {
    const b = this.bins;
    c.fillStyle = colour;
    c.beginPath();
    c.moveTo(this.xOf(b.start), this.yOf(0));
    for (let i = 0; i < b.n; i++) {
      c.lineTo(this.xOf(b.start + i * b.width), this.yOf(b.max[i]));
      c.lineTo(this.xOf(b.start + (i + 1) * b.width), this.yOf(b.max[i]));
    }
    c.lineTo(this.xOf(b.start + b.n * b.width), this.yOf(0));
    c.fill();
  }

  private series(c: CanvasRenderingContext2D, values: Float64Array, minus: number): void {
    const b = this.bins;
    c.beginPath();
    let down = false;
    for (let i = 0; i < b.n; i++) {
      if (values[i] - minus < 0) {
        down = false;
        continue;
      }
      const x = this.xOf(b.start + i * b.width), y = this.yOf(values[i] - minus);
      if (down) c.lineTo(x, y);
      else c.moveTo(x, y);
      c.lineTo(this.xOf(b.start + (i + 1) * b.width), y);
      down = true;
    }
    c.stroke();
  }

  private drawLines(c: CanvasRenderingContext2D): void {
    c.lineWidth = 1;
    c.strokeStyle = css("--least");
    if (!this.strips) this.series(c, this.bins.min, 0);
    c.lineWidth = 1.5;
    c.strokeStyle = css("--reserved");
    this.series(c, this.bins.reserved, 1);
    c.setLineDash([5, 3]);
    c.strokeStyle = css("--device");
    this.series(c, this.bins.used, 1);
    const limit = this.limit();
    if (limit !== null && limit <= this.top) {
      c.strokeStyle = css("--bad");
      c.setLineDash([8, 4]);
      line(c, margin.left, this.yOf(limit), margin.left + this.plotWidth(), this.yOf(limit));
    }
    c.setLineDash([]);
  }

  /** Moments above the plot: OOMs, the program's marks, the one that is looked at. */
  private drawMarks(c: CanvasRenderingContext2D): void {
    const o = this.source.offset, bottom = margin.top + this.plotHeight();
    const inside = (x: number) => x >= margin.left - 1 && x <= margin.left + this.plotWidth() + 1;
    c.textAlign = "center";
    c.textBaseline = "bottom";
    c.font = "bold 11px system-ui, sans-serif";
    for (const m of this.source.process.marks) {
      const x = this.xOf(m.time_ns - o);
      if (!inside(x)) continue;
      c.fillStyle = css("--accent");
      c.beginPath();
      c.moveTo(x, bottom - 8);
      c.lineTo(x + 5, bottom);
      c.lineTo(x - 5, bottom);
      c.fill();
    }
    for (const oom of this.source.process.ooms) {
      const x = this.xOf(oom.time_ns - o);
      if (!inside(x) || oom.device !== this.source.devices[this.state.view.device]) continue;
      c.strokeStyle = c.fillStyle = css("--bad");
      c.lineWidth = 1.5;
      line(c, x, margin.top, x, bottom);
      c.fillText("OOM", clamp(x, margin.left + 14, margin.left + this.plotWidth() - 14), margin.top - 2);
    }
    const at = this.state.view.cursor;
    if (at !== null && inside(this.xOf(at))) {
      c.strokeStyle = css("--accent");
      c.lineWidth = 2;
      line(c, this.xOf(at), margin.top, this.xOf(at), bottom);
    }
  }

  private drawOverview(): void {
    const hh = 40, c = fit(this.overview, hh), w = this.plotWidth(), v = this.state.view;
    const b = this.source.bins(v.device, this.source.start, this.source.end, w, v.by);
    let top = 1;
    for (let i = 0; i < b.n; i++) top = Math.max(top, b.max[i]);
    c.fillStyle = css("--rest");
    for (let i = 0; i < b.n; i++) {
      const x = margin.left + i / b.n * w, y = hh - b.max[i] / top * (hh - 4);
      c.fillRect(x, y, Math.max(1, w / b.n + 0.3), hh - y);
    }
    const x0 = margin.left + v.from / this.source.end * w, x1 = margin.left + v.to / this.source.end * w;
    c.fillStyle = css("--shade");
    c.fillRect(margin.left, 0, x0 - margin.left, hh);
    c.fillRect(x1, 0, margin.left + w - x1, hh);
    c.strokeStyle = css("--accent");
    c.lineWidth = 2;
    c.strokeRect(x0, 1, Math.max(2, x1 - x0), hh - 2);
  }

  // ---- values under the pointer

  private drawHover(): void {
    const c = fit(this.overlay, this.height), at = this.hover;
    const isIn = at && this.bins && at.x >= margin.left && at.x <= margin.left + this.plotWidth();
    this.tip.hidden = !isIn;
    if (!at || !isIn) return;
    c.strokeStyle = css("--text");
    c.globalAlpha = 0.6;
    line(c, at.x, margin.top, at.x, margin.top + this.plotHeight());
    if (this.brush !== null) {
      c.fillStyle = css("--accent");
      c.globalAlpha = 0.2;
      c.fillRect(Math.min(this.brush, at.x), margin.top, Math.abs(at.x - this.brush), this.plotHeight());
    }
    const ns = this.timeAt(at.x);
    const level = this.levelAt(at.y);
    const strip = this.strips ? stripAt(this.source.blocks, this.strips, ns, level) : null;
    if (strip) {
      c.globalAlpha = 1;
      c.lineWidth = 2;
      this.stripPath(c, strip);
      c.stroke();
    }
    fill(this.tip, strip ? this.blockTip(strip.block) : this.binTip(ns, level));
    const right = at.x > margin.left + this.plotWidth() / 2;
    this.tip.style.left = right ? "" : `${at.x + 14}px`;
    this.tip.style.right = right ? `${this.tip.parentElement!.clientWidth - at.x + 14}px` : "";
    this.tip.style.top = `${Math.min(at.y, 60)}px`;
  }

  stepAt(ns: number): number | null {
    const starts = this.source.column("steps.start"), ends = this.source.column("steps.end");
    const i = lowerBound(starts, ns + 1) - 1;
    return i >= 0 && ns <= ends[i] ? this.source.column("steps.step")[i] : null;
  }

  private when(ns: number): string {
    const step = this.stepAt(ns), { from, to } = this.state.view;
    const text = moment(ns + this.source.offset, (to - from) / 1000);
    return step === null ? text : `${text} · ${t("step")} ${step}`;
  }

  private binTip(ns: number, level: number): Node[] {
    const b = this.bins, i = this.binAt(ns);
    const marks = this.source.process.marks.filter(
      (m) => Math.abs(this.xOf(m.time_ns - this.source.offset) - this.xOf(ns)) < 5);
    const rows = b.layers.map((l, k) => ({ k, value: l[i] })).filter((r) => r.value > 0);
    let base = 0, under = -1;
    for (const r of rows) {
      if (level >= base && level < base + r.value) under = r.k;
      base += r.value;
    }
    rows.sort((x, y) => y.value - x.value);
    const shown = rows.slice(0, 9);
    return [
      h("b", {}, this.when(b.exact ? ns : b.at[i])),
      ...marks.map((m) => h("div.mark", {}, `▲ ${m.name ?? ""} ${m.text}`)),
      h("div.row", {}, h("span", {}, t("allocated")), h("b", { "data-value": "allocated" }, bytes(b.max[i]))),
      ...this.strips ? [] : shown.map((r) => h(r.k === under ? "div.row.under" : "div.row", {},
        h("span", {}, swatch(this.colours[r.k]), layerName(b.keys[r.k])), h("span", {}, bytes(r.value)))),
      ...(b.reserved[i] > 0 ? [h("div.row", {}, h("span", {}, t("reserved")), h("span", {}, bytes(b.reserved[i] - 1)))] : []),
      ...(b.used[i] > 0 ? [h("div.row", {}, h("span", {}, t("used")), h("span", {}, bytes(b.used[i] - 1)))] : []),
    ];
  }

  private blockTip(i: number): Node[] {
    const b = this.source.blocks, frames = this.source.frames(b.stack[i]);
    const name = this.source.text(b.tensor[i]), o = this.source.offset;
    const row = (label: string, value: string | null) => value === null ? []
      : [h("div.row", {}, h("span", {}, label), h("span", {}, value))];
    const life = b.free[i] === Infinity ? t("stillAlive") : duration(b.free[i] - b.alloc[i]);
    return [
      h("b", {}, name ?? t("block")), ...row(t("size"), bytes(b.size[i])),
      ...dimensions.flatMap((d) => row(t(d), this.source.text(b.keys[d][i]))),
      ...row(t("allocatedAt"), moment(b.alloc[i] + o, Math.max(1, (this.state.view.to - this.state.view.from) / 1000))),
      ...row(t("lifetime"), life), ...row(t("step"), b.step[i] > 0 ? String(b.step[i] - 1) : null),
      h("code", {}, frames.length ? frameText(siteOf(frames)) : t("noStack")),
      ...(siteOf(frames)?.source ? [h("code.source", {}, siteOf(frames)!.source!)] : []),
    ];
  }

  private wholeStack(i: number): Node {
    return h("ol.stack", {}, this.source.frames(this.source.blocks.stack[i]).map((f) => h("li", {},
      h(f.kind === 0 ? "code.own" : "code", {}, frameText(f)), f.source && h("code.source", {}, f.source))));
  }

  // ---- words

  private fillLegend(): void {
    const b = this.bins, sign = (cls: string, text: string) => h("span", {}, h(`i.${cls}` as "i"), text);
    const present = b.keys.map((k, i) => ({ k, i, most: Math.max(...b.layers[i]) })).filter((p) => p.most > 0);
    const least = present.map((p) => p.most).sort((x, y) => y - x)[maxLegend - 1] ?? 0;
    const named = present.filter((p) => p.most >= least).slice(0, maxLegend);
    const has = (c: Float64Array) => c.some((v) => v > 0);
    const limit = this.limit();
    fill(this.legend, named.reverse().map(({ k, i }) => h("span", {}, swatch(this.colours[i]), layerName(k))),
      present.length > named.length && h("span", {}, `+ ${present.length - named.length}`),
      this.strips && h("span", {}, swatch(css("--rest")), t("smaller")),
      has(b.reserved) && sign("line-reserved", t("reserved")), has(b.used) && sign("line-used", t("used")),
      limit !== null && sign("line-limit", `${t("limit")} ${bytes(limit)}`),
      !this.strips && !b.exact && sign("line-least", t("least")));
  }

  private describe(): void {
    const b = this.bins, { from, to } = this.state.view, o = this.source.offset;
    let at = 0;
    for (let i = 1; i < b.n; i++) if (b.max[i] > b.max[at]) at = i;
    const step = Math.max(1, (to - from) / 100);
    this.canvas.setAttribute("aria-label", `${t("timeline")}: ${moment(from + o, step)} – ${moment(to + o, step)}, ` +
      `${t("peakFigure")} ${bytes(b.max[at])} ${t("at", moment(b.at[at] + o, step))}. ${t("hint")}`);
    const width = duration(b.width);
    fill(this.note, b.exact ? t("exact") : t("binned", width), ". ", t("hint"));
    fill(this.values, h("summary", {}, t("table")));
    if (this.values.open) this.fillValues();
  }

  /** The window's values in 24 parts, for those who do not see the picture. */
  private fillValues(): void {
    if (!this.values.open || this.values.childElementCount > 1) return;
    const v = this.state.view, b = this.source.bins(v.device, v.from, v.to, 24, v.by);
    const rows = Array.from({ length: b.n }, (_, i) => [
      this.when(b.start + i * b.width), bytes(b.max[i]),
      b.keys.map((k, l) => ({ k, value: b.layers[l][i] })).sort((x, y) => y.value - x.value).slice(0, 3)
        .filter((x) => x.value > 0).map((x) => `${layerName(x.k)} ${bytes(x.value)}`).join(", "),
      b.reserved[i] > 0 ? bytes(b.reserved[i] - 1) : "-"]);
    this.values.append(table([t("time"), t("allocated"), t(v.by), t("reserved")], rows, [1, 3]));
  }
}

export function line(c: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}

/** The first number of an ascending column that is not below `value`. */
export function lowerBound(column: Float64Array, value: number): number {
  let low = 0, high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
