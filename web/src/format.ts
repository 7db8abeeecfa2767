// SPDX-License-Identifier: MIT
/** Sizes, times and numbers as tidemark's commands print them. */

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return "-";
  let unit = 0, v = Math.abs(n);
  while (v >= 1023.95 && unit < units.length - 1) {
    v /= 1024;
    unit++;
  }
  const digits = unit === 0 ? 0 : unit >= 3 ? 2 : 1;
  return `${n < 0 ? "-" : ""}${v.toFixed(digits)} ${units[unit]}`;
}

/** The same with all digits behind it. */
export function exactBytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return "-";
  return n < 1024 ? `${n} B` : `${bytes(n)} (${count(n)} B)`;
}

export function count(n: number | null | undefined): string {
  return n === null || n === undefined ? "-" : Math.round(n).toLocaleString("en-US");
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "-";
  const p = (100 * part) / whole;
  return p > 0 && p < 1 ? "<1 %" : `${Math.round(p)} %`;
}

/** A length of time in ns. */
export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return "-";
  if (ns < 1e3) return `${ns.toFixed(0)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(2)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(2)} ms`;
  if (ns < 120e9) return `${(ns / 1e9).toFixed(2)} s`;
  const s = Math.round(ns / 1e9), m = Math.floor(s / 60);
  return m < 60 ? `${m} min ${s % 60} s` : `${Math.floor(m / 60)} h ${m % 60} min`;
}

/** A moment in ns since the run's start, with as many digits as tell `step` apart. Marks of one
 * axis share the unit of the `largest`. */
export function moment(ns: number, step: number, largest = ns): string {
  const [unit, scale] = largest >= 1e9 ? ["s", 1e9] : largest >= 1e6 ? ["ms", 1e6]
    : largest >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(1, step) / scale) - 1e-9)));
  return `${(ns / scale).toFixed(digits)} ${unit}`;
}

/** The same in a sentence: four digits or so. */
export function clock(ns: number): string {
  return moment(ns, ns >= 1e9 ? 1e6 : ns >= 1e6 ? 1e4 : 10);
}

/** A step between marks that is 1, 2 or 5 times a power of ten. */
export function niceStep(span: number, marks: number): number {
  const rough = span / Math.max(1, marks), power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

/** The same for sizes: 1, 2, 4 ... 512 of a unit. */
export function niceBytes(span: number, marks: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, span / Math.max(1, marks)))));
}

/** The last parts of a path. */
export function shortPath(path: string, parts = 2): string {
  const all = path.split("/");
  return all.length <= parts ? path : all.slice(-parts).join("/");
}
