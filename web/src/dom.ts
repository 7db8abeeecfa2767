// SPDX-License-Identifier: MIT
/** Elements. Texts of a run only ever become text nodes or attributes, never markup. */

export type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

function append(to: Element, child: Child): void {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) child.forEach((c) => append(to, c));
  else to.append(child instanceof Node ? child : String(child));
}

/** An element: `tag.class`, attributes, children. An attribute that is a function is a listener. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K | `${K}.${string}`, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [name, ...classes] = tag.split(".");
  const e = document.createElement(name) as HTMLElementTagNameMap[K];
  if (classes.length) e.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(key, value);
    else if (value === true) e.setAttribute(key, "");
    else if (value !== undefined && value !== false) e.setAttribute(key, String(value));
  }
  append(e, children);
  return e;
}

export function fill(e: Element, ...children: Child[]): void {
  e.replaceChildren();
  append(e, children);
}

/** A table with a head; columns named in `numbers` are set to the right. */
export function table(head: string[], rows: Child[][], numbers: number[] = []): HTMLElement {
  const side = (i: number) => (numbers.includes(i) ? { class: "n" } : {});
  return h("div.scroll", {},
    h("table", {},
      h("thead", {}, h("tr", {}, head.map((t, i) => h("th", { scope: "col", ...side(i) }, t)))),
      h("tbody", {}, rows.map((r) => h("tr", {}, r.map((c, i) => h("td", side(i), c)))))));
}

/** A bar of a share, 0 to 1. */
export function bar(share: number, colour: string): HTMLElement {
  const inner = h("i");
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  inner.style.background = colour;
  return h("span.bar", { "aria-hidden": "true" }, inner);
}

export function swatch(colour: string): HTMLElement {
  const e = h("i.swatch", { "aria-hidden": "true" });
  e.style.background = colour;
  return e;
}

/** A canvas as large as its box, in device pixels. Returns its context, scaled to CSS pixels. */
export function fit(canvas: HTMLCanvasElement, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.parentElement!.clientWidth;
  const w = Math.max(1, Math.round(width * ratio)), hh = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== hh) {
    canvas.width = w;
    canvas.height = hh;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const c = canvas.getContext("2d")!;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  return c;
}

/** Runs a function once before the next picture, however often it is asked for. */
export function soon(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

export function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
