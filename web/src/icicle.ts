// SPDX-License-Identifier: MIT
/** A tree of bytes as boxes: callers above, what they called below; or modules and theirs. */
import { css, fill, fit, h, soon } from "./dom";
import { bytes, percent } from "./format";
import type { PeakRows, Source } from "./model";
import { colourOf } from "./palette";
import { Finder, frameText } from "./rows";
import type { State } from "./state";
import { t } from "./strings";

interface Node { name: string; kind: number; bytes: number; matches: boolean; parent: Node | null;
  children: Map<string, Node>; source: string | null }

const boxHeight = 20, maxDepth = 40;

function node(name: string, kind: number, parent: Node | null, source: string | null): Node {
  return { name, kind, bytes: 0, matches: false, parent, children: new Map(), source };
}

type Part = [name: string, kind: number, source: string | null];

function add(root: Node, path: Part[], size: number, matches: boolean): void {
  let at = root;
  at.bytes += size;
  for (const [name, kind, source] of path) {
    let next = at.children.get(name);
    if (!next) at.children.set(name, (next = node(name, kind, at, source)));
    next.bytes += size;
    next.matches ||= matches;
    at = next;
  }
}

function treeOf(source: Source, rows: PeakRows, byModule: boolean, ownOnly: boolean, query: string): Node {
  const root = node(t("total"), 3, null, null), finder = query ? new Finder(source, query) : null;
  const stacks = new Map<number, Part[]>();
  const pathOfStack = (stack: number): Part[] => {
    let path = stacks.get(stack);
    if (!path) {
      path = source.frames(stack).filter((f) => !ownOnly || f.kind === 0).reverse()
        .slice(0, maxDepth).map((f): Part => [frameText(f), f.kind, f.source]);
      if (path.length === 0) path = [[t("noStack"), 2, null]];
      stacks.set(stack, path);
    }
    return path;
  };
  for (let i = 0; i < rows.n; i++) {
    const path = byModule
      ? (source.text(rows.keys.module[i])?.split(".") ?? [t("unknown")]).map((p): Part => [p, 4, null])
      : pathOfStack(rows.stack[i]);
    add(root, path, rows.bytes[i], finder !== null && finder.row(rows, i));
  }
  return root;
}

interface Box { node: Node; x: number; y: number; w: number }

export class Icicle {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { tabindex: 0, role: "img", "data-plot": "icicle" });
  private readonly tip = h("div.tip", { hidden: true });
  private readonly tools = h("div.tools");
  private readonly way = h("p.faint.note", { "aria-live": "polite" });
  private boxes: Box[] = [];
  private root!: Node;
  private top!: Node;
  private rows: PeakRows | null = null;
  private byModule = false;
  private ownOnly = false;
  private readonly redraw = soon(() => this.draw());

  constructor(private readonly state: State) {
    const box = h("div.plot", {}, this.canvas, this.tip);
    this.element = h("div", {}, this.tools, box, this.way);
    this.fillTools();
    this.canvas.addEventListener("click", (e) => this.open(this.boxAt(e)));
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(this.redraw).observe(box);
  }

  show(rows: PeakRows): void {
    this.rows = rows;
    this.root = treeOf(this.state.source, rows, this.byModule, this.ownOnly, this.state.view.query);
    this.top = this.root;
    this.redraw();
  }

  private fillTools(): void {
    const choice = (label: string, pressed: boolean, click: () => void) =>
      h("button", { type: "button", "aria-pressed": String(pressed), click: () => {
        click();
        this.fillTools();
        if (this.rows) this.show(this.rows);
      } }, label);
    fill(this.tools, h("div.choices", { role: "group", "aria-label": t("icicle") },
      choice(t("icicleStack"), !this.byModule, () => { this.byModule = false; }),
      choice(t("icicleModule"), this.byModule, () => { this.byModule = true; })),
      !this.byModule && h("div.choices", { role: "group" },
        choice(t("allFrames"), !this.ownOnly, () => { this.ownOnly = false; }),
        choice(t("ownFrames"), this.ownOnly, () => { this.ownOnly = true; })));
  }

  private key(e: KeyboardEvent): void {
    const children = [...this.top.children.values()].sort((a, b) => b.bytes - a.bytes);
    const siblings = this.top.parent
      ? [...this.top.parent.children.values()].sort((a, b) => b.bytes - a.bytes) : [this.top];
    const i = siblings.indexOf(this.top);
    const to: Record<string, Node | null | undefined> = {
      Escape: this.top.parent, Backspace: this.top.parent, ArrowUp: this.top.parent,
      ArrowDown: children[0], Enter: children[0], ArrowRight: siblings[i + 1],
      ArrowLeft: siblings[i - 1], Home: this.root,
    };
    if (!(e.key in to)) return;
    e.preventDefault();
    this.open(to[e.key] ?? null);
  }

  private open(n: Node | null): void {
    if (!n) return;
    this.top = n === this.top && n.parent ? n.parent : n;
    this.redraw();
  }

  private boxAt(e: MouseEvent): Node | null {
    const r = this.canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    return this.boxes.find((b) => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + boxHeight)?.node ?? null;
  }

  private point(e: PointerEvent): void {
    const n = this.boxAt(e), r = this.canvas.getBoundingClientRect();
    this.tip.hidden = n === null;
    if (!n) return;
    fill(this.tip, h("b", {}, n.name), n.source && h("code.source", {}, n.source),
      h("div.row", {}, h("span", {}, t("size")), h("b", {}, bytes(n.bytes))),
      h("div.row", {}, h("span", {}, t("share")), h("span", {}, percent(n.bytes, this.root.bytes))));
    const x = e.clientX - r.left, right = x > r.width / 2;
    this.tip.style.left = right ? "" : `${x + 14}px`;
    this.tip.style.right = right ? `${r.width - x + 14}px` : "";
    this.tip.style.top = `${e.clientY - r.top + 16}px`;
  }

  /** Boxes of `top` and what is below it; its callers stand above in full width. */
  private layOut(width: number): number {
    this.boxes = [];
    const above: Node[] = [];
    for (let n = this.top.parent; n; n = n.parent) above.unshift(n);
    above.forEach((n, i) => this.boxes.push({ node: n, x: 0, y: i * boxHeight, w: width }));
    let deepest = above.length;
    const place = (n: Node, x: number, w: number, depth: number): void => {
      deepest = Math.max(deepest, depth);
      this.boxes.push({ node: n, x, y: depth * boxHeight, w });
      let at = x;
      for (const child of [...n.children.values()].sort((a, b) => b.bytes - a.bytes)) {
        const cw = w * child.bytes / n.bytes;
        if (cw >= 1) place(child, at, cw, depth + 1);
        at += cw;
      }
    };
    if (this.top.bytes > 0) place(this.top, 0, width, above.length);
    return (deepest + 1) * boxHeight;
  }

  private colour(n: Node): string {
    if (n.kind === 3) return css("--rest");
    if (n.kind === 4) return n.name === t("unknown") ? css("--rest") : paletteOf(n.name);
    const base = css(n.kind === 0 ? "--own" : n.kind === 1 ? "--library" : "--inner");
    return `color-mix(in srgb, ${base} ${100 - shadeOf(n.name)}%, #000)`;
  }

  private draw(): void {
    if (!this.element.isConnected || !this.root) return;
    const width = this.canvas.parentElement!.clientWidth, height = this.layOut(width);
    const c = fit(this.canvas, height), query = this.state.view.query;
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (const b of this.boxes) {
      c.globalAlpha = query && b.node.kind !== 3 && !b.node.matches ? 0.3 : 1;
      c.fillStyle = this.colour(b.node);
      c.fillRect(b.x, b.y, Math.max(1, b.w - 1), boxHeight - 1);
      if (b.w < 34) continue;
      c.fillStyle = b.node.kind === 3 ? css("--text") : "#fff";
      c.fillText(cut(c, `${shortName(b.node)}  ${bytes(b.node.bytes)}`, b.w - 10), b.x + 5, b.y + boxHeight / 2);
    }
    c.globalAlpha = 1;
    this.canvas.setAttribute("aria-label", `${t("icicle")}: ${this.top.name}, ${bytes(this.top.bytes)}. ` +
      [...this.top.children.values()].sort((a, b) => b.bytes - a.bytes).slice(0, 5)
        .map((n) => `${n.name} ${bytes(n.bytes)}`).join("; "));
    fill(this.way, t("icicleHint"));
  }
}

/** Neighbours differ a little: 0 to 24, of the letters. */
function shadeOf(name: string): number {
  let sum = 0;
  for (let i = 0; i < name.length; i++) sum = (Math.imul(31, sum) + name.charCodeAt(i)) >>> 0;
  return sum % 4 * 8;
}

/** White text must be readable on it. */
function paletteOf(name: string): string {
  return `color-mix(in srgb, ${colourOf(name)} 78%, #000)`;
}

function shortName(n: Node): string {
  if (n.kind > 2) return n.name;
  const [place, ...rest] = n.name.split(" "), name = rest.join(" ");
  const file = place.slice(place.lastIndexOf("/") + 1);
  return name ? `${name}  ${file}` : file;
}

function cut(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (c.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (c.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${text.slice(0, low)}…` : "";
}
