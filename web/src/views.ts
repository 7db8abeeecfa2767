// SPDX-License-Identifier: MIT
/** The sections of the page that are words and tables: what `tidemark report` says, with the
 * pictures that belong to them. */
import { bar, h, swatch, table, type Child } from "./dom";
import { bytes, clock, count, duration, exactBytes, moment, niceStep, percent, shortPath } from "./format";
import { limitOf, type Source } from "./model";
import { colourOf } from "./palette";
import { similar } from "./colours.gen";
import { Curves } from "./curves";
import { SegmentMap } from "./segments";
import type { State } from "./state";
import { t, type Key } from "./strings";
import type { Leak, Oom, Process, Site } from "./types";

export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id }, h("h2", {}, title), children);
}

function stepWords(step: number | null): string {
  return step === null ? t("beforeSteps") : t("inStep", step);
}

function siteText(s: Site | null): string {
  if (!s || !s.file) return s?.function ?? t("unknown");
  return `${s.file}${s.line ? `:${s.line}` : ""}${s.function ? ` ${s.function}` : ""}`;
}

/** The text of a source line: as the report has it, else of a frame of the page. */
function sourceOf(source: Source, site: Site | null): string | null {
  if (!site?.file) return null;
  const files = source.column("frames.file"), lines = source.column("frames.line");
  for (let i = 0; i < files.length; i++)
    if (lines[i] === site.line && source.text(files[i]) === site.file)
      return source.text(source.column("frames.source")[i]);
  return null;
}

function siteBox(source: Source, site: Site | null, text?: string | null): HTMLElement {
  const line = text ?? sourceOf(source, site);
  return h("div.site", {}, h("code", {}, siteText(site)), line && h("code.source", {}, line));
}

// ---- the verdict and its figures

/** The report's own verdict, in its words. */
export function summary(source: Source): HTMLElement {
  const p = source.process, peak = p.peak, health = source.report.health;
  const kind = health.verdict ?? "";
  const bad = ["ran_out", "leaks", "killed"].includes(kind), warn = ["grew", "nearly_ran_out"].includes(kind);
  const words = health.text ?? "";
  const figure = (label: string, value: string, more: string, name: string, exact?: number | null) =>
    h("div.figure", {}, h("span", {}, label),
      h("b", { "data-value": name, "data-exact": exact ?? undefined }, value), h("small", {}, more));
  const limit = peak ? limitOf(source, peak.device) : null;
  return h("section.summary", { id: "overview" },
    h(bad ? "p.verdict.bad" : warn ? "p.verdict.warn" : "p.verdict", { role: "status" }, words),
    health.next && h("p", {}, t("next"), " ", h("code", {}, health.next)),
    h("div.figures", {},
      peak && figure(t("peakFigure"), bytes(peak.allocated),
        `${peak.device}, ${stepWords(peak.step)}, ${t("at", clock(peak.time_ns))}`, "peak", peak.allocated),
      peak && figure(t("reservedFigure"), bytes(peak.reserved),
        peak.reserved ? `${percent(peak.allocated, peak.reserved)} ${t("allocated")}` : t("unknown"), "reserved"),
      limit !== null && figure(t("limitFigure"), bytes(limit), peak ? percent(peak.allocated, limit) : "", "limit"),
      figure(t("stepsFigure"), count(p.steps.count), p.steps.mean_ns ? t("mean", duration(p.steps.mean_ns)) : "", "steps"),
      figure(t("eventsFigure"), count(p.events), duration(p.end_ns - p.start_ns), "events")),
    forecast(p));
}

/** Only while it has not run out: then there is something to do. */
function forecast(p: Process): Child {
  const f = p.forecast;
  if (!f || p.oom_count > 0 || (f.seconds_to_oom === null && f.steps_to_oom === null)) return null;
  return h("p.verdict.warn", {}, f.steps_to_oom !== null ? t("inSteps", count(f.steps_to_oom))
    : t("inSeconds", duration(f.seconds_to_oom! * 1e9)), " ", f.advice.join(" "));
}

// ---- out of memory

function fixes(oom: Oom): Child {
  if (oom.fixes.length === 0) return null;
  return [h("h3", {}, t("fixes")), table([t("what"), t("saves"), t("proof")],
    oom.fixes.map((f) => [h("div", {}, f.text, f.conf && h("code.source", {}, f.conf)),
      f.saves_bytes === null ? "-" : bytes(f.saves_bytes),
      h(f.proof === "estimate" ? "span.badge" : "span.badge.good", {}, t(`proof_${f.proof}` as Key))]), [1])];
}

interface Replay { conf: string; runs_out: boolean; runs_out_before: boolean; needs: number | null }

/** The allocator settings that were replayed to find out whether one would have done. */
function settings(oom: Oom): Child {
  const replays = oom.evidence.replays as Replay[] | undefined;
  if (!replays?.length) return null;
  return [h("h3", {}, t("settings")), table([t("conf"), t("result"), t("needs")],
    replays.map((r) => [h("code", {}, r.conf || t("defaults")),
      r.runs_out_before ? t("sooner") : r.runs_out ? t("runsOut") : h("span.badge.good", {}, t("fits")),
      bytes(r.needs)]), [2])];
}

/** The whole run, replayed with other settings. */
export function whatif(source: Source): HTMLElement | null {
  const w = source.whatif;
  if (!w || w.settings.length < 2) return null;
  const [recorded, ...others] = w.settings, most = Math.max(...w.settings.map((s) => s.peak_reserved), 1);
  const row = (s: typeof recorded, name: Child) => [name,
    s.oom ? t("runsOut") : s.conf === w.best && s !== recorded ? h("span.badge.good", {}, t("best")) : t("fits"),
    h("span", { "data-exact": s.peak_reserved }, bytes(s.peak_reserved)), bytes(s.wasted), count(s.retries),
    bar(s.peak_reserved / most, "var(--accent)")];
  return section("settings", t("settings"), h("p.faint", {}, t("whatifHint", w.device)),
    table([t("conf"), t("result"), t("needs"), t("wasted"), t("retries"), ""], [
      row(recorded, [h("code", {}, recorded.conf || t("defaults")), ` (${t("asRecorded")})`]),
      ...others.map((s) => row(s, h("code", {}, s.conf || t("defaults")))),
    ], [2, 3, 4]));
}

function evidence(oom: Oom): Child {
  const shown: [Key, string][] = [["allocated", "allocated"], ["reserved", "reserved"],
    ["limitFigure", "limit"], ["gap", "largest_free"], ["otherProcesses", "others"]];
  const categories = Object.entries((oom.evidence.categories as Record<string, number>) ?? {})
    .sort((a, b) => b[1] - a[1]);
  const total = categories.reduce((a, [, v]) => a + v, 0);
  return h("div.halves", {},
    table([t("evidence"), t("size")], [[t("request"), bytes(oom.request_bytes)],
      ...shown.filter(([, k]) => typeof oom.evidence[k] === "number")
        .map(([label, k]) => [t(label), bytes(oom.evidence[k] as number)])], [1]),
    categories.length > 0 && table([t("category"), t("size"), ""], categories.map(([k, v]) =>
      [h("span", {}, swatch(colourOf(k)), k), bytes(v), bar(v / total, colourOf(k))]), [1]));
}

export function ooms(state: State): HTMLElement | null {
  const source = state.source, explained = source.report.explain?.ooms ?? [];
  if (explained.length === 0) return null;
  return section("ooms", t("ooms"), explained.map((oom) => h("article", {},
    h("p.verdict.bad", {}, oom.text ?? t(`cause_${oom.cause}` as Key)),
    h("p", {}, t("oomLine", bytes(oom.request_bytes), oom.step ?? "-",
      bytes(oom.evidence.allocated as number), bytes(oom.evidence.reserved as number | null)), " ",
      h("button", { type: "button", click: () => look(state, oom.time_ns - source.offset) },
        t("at", clock(oom.time_ns)))),
    siteBox(source, oom.site, (oom.site as { source?: string } | null)?.source),
    [oom.module, oom.stage].some(Boolean) && h("p.faint", {}, [oom.module, oom.stage].filter(Boolean).join(" · ")),
    fixes(oom), evidence(oom), settings(oom))));
}

/** Show the surroundings of a moment in the timeline. */
function look(state: State, ns: number): void {
  const half = state.source.end / 40;
  state.change({ from: ns - half, to: ns + half, cursor: ns });
  document.getElementById("timeline")!.scrollIntoView({ block: "start" });
}

// ---- leaks

function leakBox(source: Source, l: Leak): HTMLElement {
  const grows = l.bytes_per_step !== null ? t("perStep", bytes(l.bytes_per_step))
    : l.bytes_per_second !== null ? `${bytes(l.bytes_per_second)}/s` : "-";
  const pair = (k: Key, v: Child) => v ? h("div.row", {}, h("span", {}, t(k)), h("span", {}, v)) : null;
  return h("article.leak", {}, siteBox(source, l, l.source ?? null),
    h("div.pairs", {},
      pair("grows", h("b", {}, grows)), pair("size", exactBytes(l.growth_bytes)),
      pair("step", l.first_step !== null ? t("since", l.first_step) : null),
      pair("category", l.category), pair("module", l.module), pair("keptBy", l.kept_by),
      pair("confidence", l.confidence !== null ? percent(l.confidence, 1) : null)),
    l.evidence && h("p.faint", {}, l.evidence));
}

export function leaks(source: Source): HTMLElement {
  const p = source.process;
  return section("leaks", t("leaks"), p.leaks.length === 0 && h("p", {}, p.leak_text ?? t("noLeak")),
    p.leaks.map((l) => leakBox(source, l)));
}

// ---- fragmentation

export function segments(state: State): HTMLElement | null {
  const { map } = state.source.drawn;
  if (!map) return null;
  const f = state.source.process.fragmentation.find((x) => x.device === map.device);
  return section("map", t("map"),
    f && h("p", {}, t("mapLine", bytes(f.reserved), f.device, bytes(f.allocated), bytes(f.largest_free)), " ",
      h("button", { type: "button", click: () => look(state, map.time_ns) },
        t("at", clock(map.time_ns + state.source.offset)))),
    h("p.faint", {}, t("mapHint")), new SegmentMap(state).element);
}

// ---- steps

export function steps(state: State): HTMLElement | null {
  const s = state.source, n = s.drawn.steps.shown;
  if (n === 0) return null;
  const peak = s.column("steps.peak"), end = s.column("steps.end_bytes"), step = s.column("steps.step");
  const start = s.column("steps.start"), stop = s.column("steps.end"), sum = s.column("steps.bytes");
  const go = (i: number) => {
    const around = (stop[i] - start[i]) * 0.1;
    state.change({ from: start[i] - around, to: stop[i] + around });
    document.getElementById("timeline")!.scrollIntoView({ block: "start" });
  };
  const curves = new Curves([
    { name: t("stepPeak"), colour: "#86b0d2", values: peak, filled: true },
    { name: t("stepEnd"), colour: "#d6604d", values: end },
  ], { height: 190, label: t("steps"), x: (i) => `${t("step")} ${step[Math.min(i, n - 1)]}`, click: go });
  const largest = Array.from({ length: n }, (_, i) => i).sort((a, b) => peak[b] - peak[a] || a - b).slice(0, 12);
  return section("steps", t("steps"), curves.element, h("h3", {}, t("largestSteps")),
    table([t("step"), t("stepPeak"), t("stepEnd"), t("stepBytes"), t("stepAllocations"), t("stepTime")],
      largest.map((i) => [h("button.link", { type: "button", click: () => go(i) }, String(step[i])),
        bytes(peak[i]), bytes(end[i]), bytes(sum[i]), count(s.column("steps.allocations")[i]),
        duration(stop[i] - start[i])]), [1, 2, 3, 4, 5]));
}

// ---- ranks

export function ranks(source: Source): HTMLElement | null {
  const all = source.drawn.processes, facts = source.report.ranks as null | { says?: string[] };
  if (all.length < 2) return null;
  const most = Math.max(...all.map((p) => p.peak ?? 0), 1);
  const name = (p: typeof all[0]) => p.rank !== null ? t("rank", p.rank) : t("pid", p.pid ?? "-");
  const curves = all.map((p, i) => ({ p, i })).filter(({ p }) => p.has_curve).map(({ p, i }) => ({
    name: name(p), colour: similar[i % similar.length],
    values: source.column(`process.${i}`).map((v) => v > 0 ? v - 1 : NaN),
  }));
  const end = Math.max(...all.map((p) => p.end_ns)), points = curves[0]?.values.length ?? 1;
  const tick = niceStep(end, 10);
  return section("ranks", t("ranks"), facts?.says?.map((s) => h("p", {}, s)),
    table([t("process"), t("rankHost"), t("rankPeak"), "", t("step"), t("rankEnd")], all.slice(0, 256).map((p) =>
      [name(p), p.host ?? "-", h("span", { "data-exact": p.peak ?? undefined }, bytes(p.peak)), bar((p.peak ?? 0) / most, "var(--accent)"),
        p.peak_step === null ? "-" : String(p.peak_step), clock(p.end_ns)]), [2, 4, 5]),
    all.length > 256 && h("p.faint", {}, t("shown", 256, all.length)),
    curves.length > 0 && [h("h3", {}, t("rankCurves")), new Curves(curves, {
      height: 190, label: t("rankCurves"), x: (i) => moment(i / points * end, end / 100, end),
      ticks: Array.from({ length: Math.floor(end / tick) + 1 }, (_, i) => ({
        at: i * tick / end * points, text: moment(i * tick, tick, end) })) }).element]);
}

// ---- the device

export function devices(source: Source): HTMLElement | null {
  const accounts = source.process.accounting.filter((a) => a.moment === "peak");
  if (accounts.length === 0) return null;
  return section("device", t("device"), accounts.map((a) => {
    const rows: [string, number | null][] = [...a.segments.map((s): [string, number | null] => [s.owner, s.bytes]),
      [t("context"), a.context], [t("otherProcesses"), a.others], [t("unexplained"), a.unexplained],
      [t("free"), a.total !== null && a.used !== null ? a.total - a.used : null]];
    return [h("h3", {}, `${a.device} ${t("at", clock(a.time_ns))}`),
      table([t("owner"), t("size"), t("share"), ""], rows.filter(([, v]) => v).map(([k, v]) =>
        [h("span", {}, swatch(colourOf(k)), k), bytes(v), percent(v!, a.total ?? 0),
          bar(v! / (a.total ?? v!), colourOf(k))]), [1, 2])];
  }));
}

// ---- what is left out

export function quality(source: Source): HTMLElement {
  const d = source.drawn, p = source.process, lines: string[] = [...p.quality.doubts, ...source.report.not_recorded];
  const at = (ns: number) => clock(ns + source.offset);
  const { all, shown, window_start_ns: from, window_end_ns: to } = d.blocks;
  if (shown < all) lines.push(from !== null && to !== null
    ? t("leftBlocks", count(all), count(shown), at(from), at(to)) : t("leftBlocksOnly", count(all), count(shown)));
  else lines.push(t("leftNothing", count(all)));
  if (d.timeline.known_ns > 0) lines.push(t("givenUp", at(d.timeline.known_ns)));
  lines.push(t("leftBins", count(d.timeline.bins), duration(source.end / d.timeline.bins)));
  if (d.peak && d.peak.rows_shown < d.peak.rows)
    lines.push(t("leftPeak", count(d.peak.rows), count(d.peak.rows_shown), bytes(d.peak.bytes_shown), bytes(d.peak.bytes)));
  if (d.steps.shown < d.steps.all) lines.push(t("leftSteps", count(d.steps.all), count(d.steps.shown)));
  if (d.map && d.map.segments_shown < d.map.segments)
    lines.push(t("leftMap", count(d.map.segments), count(d.map.segments_shown)));
  if (d.processes.length > 1) lines.push(t("leftRanks", processName(p)));
  return section("quality", t("quality"), h("ul", {}, lines.map((l) => h("li", {}, l))),
    h("p.faint", {}, t("full", ""), h("code", {}, `tidemark query ${shortPath(source.report.run, 1)} …`)));
}

export function processName(p: Process): string {
  return p.rank !== null ? t("rank", p.rank) : p.pid !== null ? t("pid", p.pid) : t("process");
}

export function marks(state: State): HTMLElement | null {
  const p = state.source.process;
  if (p.marks.length === 0) return null;
  return section("marks", t("marks"), table([t("time"), t("step"), t("name"), ""], p.marks.slice(0, 100).map((m) =>
    [h("button.link", { type: "button", click: () => look(state, m.time_ns - state.source.offset) }, clock(m.time_ns)),
      m.step === null ? "-" : String(m.step), m.name ?? "-", m.text]), [1]),
    p.mark_count > p.marks.length && h("p.faint", {}, t("shown", p.marks.length, count(p.mark_count))));
}
