// SPDX-License-Identifier: MIT
/** The page: takes its data out of itself and builds the sections. */
import { unpack } from "./columns";
import { Console } from "./console";
import { fill, h, type Child } from "./dom";
import { EmbeddedSource, type Source } from "./model";
import { Moment } from "./moment";
import { NodeView } from "./node";
import { ServedSource } from "./served";
import { State } from "./state";
import { currentLanguage, setLanguage, t, type Key, type Language } from "./strings";
import { Timeline } from "./timeline";
import type { Page } from "./types";
import * as views from "./views";

const root = document.getElementById("page")!;

// ---- choices that last

function kept(name: string): string | null {
  try {
    return localStorage.getItem(`tidemark.${name}`);
  } catch {
    return null; // a file may have no storage
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(`tidemark.${name}`, value);
  } catch {
    // then it lasts until the page is closed
  }
}

function applyTheme(theme: string): void {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

// ---- the head

function header(state: State): HTMLElement {
  const r = state.source.report, p = state.source.process;
  const search = h("input", { type: "search", placeholder: t("search"), "aria-label": t("search"), value: state.view.query });
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => state.change({ query: search.value.trim() }), 120);
  });
  const theme = h("select", { "aria-label": t("theme"), change: (e) => {
    const value = (e.target as HTMLSelectElement).value;
    keep("theme", value);
    applyTheme(value);
    state.change({});
  } }, (["auto", "light", "dark"] as const).map((v) => h("option", {
    value: v, selected: (kept("theme") ?? "auto") === v },
    t(`theme${v[0].toUpperCase()}${v.slice(1)}` as Key))));
  const language = h("button", { type: "button", click: () => {
    const next: Language = currentLanguage() === "en" ? "zh" : "en";
    keep("language", next);
    setLanguage(next);
    build(state.source);
  } }, t("language"));
  return h("header", {}, h("a.skip", { href: "#overview" }, t("skip")),
    h("div.name", {}, h("h1", {}, r.run.replace(/\/+$/, "").split("/").pop() ?? r.run),
      h("p.faint", {}, [views.processName(p), p.host, p.command, t("started", r.started_utc)].filter(Boolean).join(" · "))),
    h("div.tools", {}, search, theme, language));
}

function contents(sections: HTMLElement[]): HTMLElement {
  return h("nav", { "aria-label": t("overview") }, sections.map((s) => {
    const name = s.querySelector("h2")?.textContent ?? t("overview");
    return h("a", { href: `#${s.id}`, click: (e) => {
      e.preventDefault(); // the address keeps the view
      s.scrollIntoView({ block: "start" });
      s.setAttribute("tabindex", "-1");
      s.focus({ preventScroll: true });
    } }, name);
  }));
}

// ---- a served page

/** The blocks of the moments looked at. */
function wantMoments(state: State, source: ServedSource): void {
  for (const ns of [state.view.cursor, state.view.other])
    if (ns !== null && ns >= 0) source.wantMoment(ns);
}

const query = new URLSearchParams(location.search).has("pid") ? location.search.slice(1) : "";
const badge = h("p.live", { role: "status", hidden: true });
let sqlConsole: Console | null = null;

/** What was typed stays when the page is built anew. */
function consoleOf(source: ServedSource): HTMLElement {
  void source;
  return (sqlConsole ??= new Console(query)).element;
}

function tell(text: string | null, isLive: boolean): void {
  badge.hidden = text === null;
  badge.textContent = text ?? "";
  badge.dataset.live = isLive ? "1" : "0";
}

/** Wait until nobody types: what is built anew loses its focus. */
async function untilNobodyTypes(): Promise<void> {
  while (document.activeElement?.matches("input, textarea, select"))
    await new Promise((done) => addEventListener("focusout", () => setTimeout(done), { once: true }));
}

/** Load the run again when the server says that it has changed; of several times, once more. */
async function follow(): Promise<void> {
  let state = -1, isLoading = false, isDue = false;
  const load = async (): Promise<void> => {
    if (isLoading) {
      isDue = true;
      return;
    }
    isLoading = true;
    try {
      do {
        isDue = false;
        const source = await ServedSource.load(query);
        await untilNobodyTypes();
        const y = window.scrollY;
        build(source);
        window.scrollTo(0, y);
      } while (isDue);
    } finally {
      isLoading = false;
    }
  };
  await load();
  const events = new EventSource("api/events");
  events.addEventListener("state", (e) => {
    const now = JSON.parse((e as MessageEvent<string>).data) as { state: number; live: boolean };
    tell(now.live ? t("live") : null, now.live);
    if (state >= 0 && now.state !== state) load().catch(fail);
    state = now.state;
  });
  events.addEventListener("error", () => tell(t("serverGone"), false));
}

async function followNode(): Promise<void> {
  const view = new NodeView();
  fill(root, h("header", {}, h("h1", {}, "tidemark")), badge, view.element);
  await view.refresh();
  document.documentElement.dataset.ready = "1";
  const events = new EventSource("api/events");
  events.addEventListener("state", () => tell(t("live"), true));
  events.addEventListener("node", () => void view.refresh().catch(() => tell(t("serverGone"), false)));
  events.addEventListener("error", () => tell(t("serverGone"), false));
}

function build(source: Source): void {
  const state = new State(source), p = source.process;
  if (source instanceof ServedSource) {
    source.onMore = () => state.change({ cursor: state.view.cursor });
    state.listen(() => wantMoments(state, source));
    wantMoments(state, source);
  }
  const made: Child[] = [
    views.summary(source), source.devices.length > 0 && new Timeline(state).element,
    views.ooms(state), source.drawn.peak && new Moment(state).element,
    (p.leaks.length > 0 || p.steps.count > 0) && views.leaks(source), views.segments(state), views.whatif(source),
    views.steps(state), views.ranks(source), views.devices(source), views.marks(state),
    views.quality(source), source instanceof ServedSource && consoleOf(source),
  ];
  const sections = made.filter((s): s is HTMLElement => s instanceof HTMLElement);
  fill(root, header(state), badge, contents(sections), h("main", {}, sections),
    h("footer", {}, t(source instanceof ServedSource ? "servedBy" : "madeBy", source.report.tidemark)));
  window.onhashchange = () => {
    state.read();
    state.change(state.view);
  };
  document.documentElement.dataset.ready = "1";
}

function fail(why: unknown): void {
  const text = why instanceof Error ? why.message : String(why);
  fill(root, h("p.verdict.bad", { role: "alert" },
    t("failed", typeof DecompressionStream === "undefined" ? t("old") : text)));
}

async function main(): Promise<void> {
  const asked = kept("language") ?? navigator.language;
  setLanguage(asked.startsWith("zh") ? "zh" : "en");
  applyTheme(kept("theme") ?? "auto");
  const served = document.body.dataset.served;
  if (served) return served === "node" && !query ? followNode() : follow();
  const data = document.getElementById("data")!;
  const { json, rest } = await unpack(data.textContent!.trim());
  data.remove();
  build(new EmbeddedSource(json as Page, rest));
}

main().catch(fail);
