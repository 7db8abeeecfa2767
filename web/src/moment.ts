// SPDX-License-Identifier: MIT
/** What was allocated at the moment looked at: sums in a table, and a tree of the stacks. */
import { bar, fill, h, swatch, table } from "./dom";
import { bytes, clock, count, exactBytes, percent } from "./format";
import { Icicle } from "./icicle";
import { dimensions, type PeakRows } from "./model";
import { colourOf } from "./palette";
import { aliveAt, Finder, siteOf, sumBy, type By, type Sum } from "./rows";
import type { State } from "./state";
import { t } from "./strings";
import { layerName } from "./timeline";

const ways: By[] = [...dimensions, "line", "tensor"];
const maxRows = 40;

export class Moment {
  readonly element: HTMLElement;
  private readonly head = h("div.tools");
  private readonly tools = h("div.tools");
  private readonly sums = h("div");
  private readonly icicle: Icicle;
  private by: By = "category";
  private rows: PeakRows | null = null; // null: only layers are known
  private total = 0;
  private others: Map<string | null, number> | null = null; // sums at the other moment

  constructor(private readonly state: State) {
    this.icicle = new Icicle(state);
    this.element = h("section", { id: "peak" }, h("h2", {}, t("peak")), this.head,
      h("div.halves", {}, h("div", {}, this.tools, this.sums), this.icicle.element));
    state.listen((changed) => {
      if ("cursor" in changed || "device" in changed || "query" in changed || "other" in changed) this.refresh();
    });
    this.refresh();
  }

  private refresh(): void {
    const { cursor, device } = this.state.view, s = this.state.source;
    const peak = s.drawn.peak;
    if (cursor === null) {
      this.rows = s.peakRows;
      this.total = peak?.bytes ?? 0;
    } else {
      this.rows = s.hasAll(cursor, cursor) ? aliveAt(s, device, cursor) : null;
      this.total = this.rows ? this.rows.bytes.reduce((a, b) => a + b, 0) : this.binAt(cursor).max;
    }
    if (!this.rows && (this.by === "line" || this.by === "tensor")) this.by = "category";
    this.fillHead();
    this.fillTools();
    this.fillSums();
    this.icicle.element.hidden = !this.rows;
    if (this.rows) this.icicle.show(this.rows);
  }

  /** The sums of a moment, or of the peak (null), by the dimension that is shown. */
  private sumsAt(ns: number | null): Sum[] {
    const s = this.state.source;
    if (ns === null) return sumBy(s, s.peakRows, this.by);
    return s.hasAll(ns, ns) ? sumBy(s, aliveAt(s, this.state.view.device, ns), this.by) : this.binAt(ns).layers;
  }

  private binAt(ns: number): { max: number; layers: Sum[] } {
    const by = this.by === "line" || this.by === "tensor" ? "category" : this.by;
    const width = this.state.source.end / this.state.source.drawn.timeline.bins;
    const b = this.state.source.bins(this.state.view.device, ns, ns + width / 100, 0.01, by);
    const i = Math.max(0, Math.min(b.n - 1, Math.floor((ns - b.start) / b.width)));
    const layers = b.keys.map((k, l) => ({ key: layerName(k), bytes: b.layers[l][i], blocks: NaN, stack: 0 }));
    return { max: b.max[i], layers: layers.filter((l) => l.bytes > 0).sort((x, y) => y.bytes - x.bytes) };
  }

  private fillHead(): void {
    const { cursor } = this.state.view, s = this.state.source, o = s.offset;
    const at = cursor ?? s.drawn.peak?.time_ns ?? 0;
    const text = clock(at + o);
    fill(this.head, h("b", { "data-value": "moment" }, cursor === null ? t("peakMoment", text) : t("moment", text)),
      h("span", { "data-value": "total", "data-exact": this.total }, exactBytes(this.total)),
      cursor !== null && h("button", { type: "button", click: () => this.state.change({ cursor: null }) }, t("backToPeak")),
      this.state.view.other === null
        ? h("button", { type: "button", click: () => this.state.change({ other: cursor ?? -1 }) }, t("compare"))
        : h("span", {}, t("comparedWith", this.state.view.other < 0 ? t("toPeak") : clock(this.state.view.other + o)), " ",
            h("button", { type: "button", click: () => this.state.change({ other: null }) }, t("stopComparing"))));
  }

  private fillTools(): void {
    const known = this.rows ? ways : dimensions;
    fill(this.tools, h("div.choices", { role: "group", "aria-label": t("composition") },
      known.map((by) => h("button", { type: "button", "aria-pressed": String(by === this.by), click: () => {
        this.by = by;
        this.fillTools();
        this.fillSums();
      } }, t(by)))));
  }

  private fillSums(): void {
    const s = this.state.source, query = this.state.view.query, rows = this.rows;
    const finder = query && rows ? new Finder(s, query) : null;
    const sums = rows ? sumBy(s, rows, this.by, finder ? (i) => finder.row(rows, i) : undefined)
      : this.binAt(this.state.view.cursor ?? 0).layers;
    const found = sums.reduce((a, b) => a + b.bytes, 0), { other } = this.state.view;
    this.others = other === null ? null
      : new Map(this.sumsAt(other < 0 ? null : other).map((r) => [r.key, r.bytes]));
    if (this.others && !finder) {
      const here = new Set(sums.map((r) => r.key));
      for (const key of this.others.keys())
        if (!here.has(key)) sums.push({ key, bytes: 0, blocks: 0, stack: 0 });
      sums.sort((a, b) => Math.abs(this.changeOf(b)) - Math.abs(this.changeOf(a)) || b.bytes - a.bytes);
    }
    fill(this.sums,
      finder && h("p.found", { "data-value": "found" }, sums.length ? t("results", bytes(found)) : t("noMatch")),
      table([this.by === "line" ? t("place") : t("name"), t("size"), t("share"), t("blocksHead"), this.others ? t("change") : ""],
        sums.slice(0, maxRows).map((r) => this.row(r)), [1, 2, 3]),
      sums.length > maxRows && h("p.faint", {}, t("shown", maxRows, count(sums.length))));
    this.sums.dataset.by = this.by;
  }

  private row(r: Sum): (Node | string)[] {
    const colour = this.by === "line" || this.by === "tensor" ? "var(--accent)" : colourOf(r.key);
    const source = this.by === "line" ? siteOf(this.state.source.frames(r.stack))?.source : null;
    const name = h("span", { title: r.key ?? "", "data-key": r.key ?? t("unknown"), "data-exact": r.bytes },
      r.key ?? t("unknown"));
    return [
      h(this.by === "line" ? "div.key.mono" : "div.key", {}, this.by !== "line" && this.by !== "tensor" && swatch(colour), name,
        source && h("code.source", {}, source)),
      bytes(r.bytes), percent(r.bytes, this.total), Number.isNaN(r.blocks) ? "-" : count(r.blocks),
      this.others ? this.change(r) : bar(r.bytes / Math.max(1, this.total), colour),
    ];
  }

  private changeOf(r: Sum): number { return r.bytes - (this.others?.get(r.key) ?? 0); }

  private change(r: Sum): Node {
    const by = this.changeOf(r);
    return h(by > 0 ? "span.more" : "span.less", { "data-change": by }, by === 0 ? "=" : `${by > 0 ? "+" : ""}${bytes(by)}`);
  }
}
