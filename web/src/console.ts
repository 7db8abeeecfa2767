// SPDX-License-Identifier: MIT
/** A console for SQL about the served run: examples, rows in a table, and the same as CSV. */
import { fill, h, table } from "./dom";
import { ask } from "./served";
import { t, type Key } from "./strings";

interface Result { columns: string[]; rows: (string | number | null)[][]; more: boolean; seconds: number }

const examples: [Key, string][] = [
  ["sqlPeak", "SELECT category, sum(size) AS bytes, count(*) AS blocks\nFROM peak GROUP BY 1 ORDER BY 2 DESC"],
  ["sqlSites", "SELECT sum(a.size) AS bytes, count(*) AS allocations, s.text AS stack\nFROM allocations a JOIN stacks s USING (stack_id)\nGROUP BY stack_id ORDER BY 1 DESC LIMIT 20"],
  ["sqlSteps", "SELECT step, peak_allocated, end_allocated\nFROM steps ORDER BY peak_allocated DESC LIMIT 20"],
  ["sqlLeaks", "SELECT * FROM leaks"],
  ["sqlProcesses", "SELECT * FROM processes"],
];

function cell(v: string | number | null): string {
  return v === null ? "-" : String(v);
}

/** RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe. */
export function csvOf(r: Result): string {
  const quote = (v: string | number | null) => {
    let text = v === null ? "" : String(v);
    if (typeof v === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [r.columns, ...r.rows].map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
}

export class Console {
  readonly element: HTMLElement;
  private readonly text = h("textarea", { rows: 4, spellcheck: "false", "aria-label": "SQL" });
  private readonly answer = h("div", { "aria-live": "polite" });
  private readonly csv = h("button", { type: "button", hidden: true, click: () => this.save() }, "CSV");
  private result: Result | null = null;

  constructor(private readonly query: string) {
    this.text.value = examples[0][1];
    this.text.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) void this.run();
    });
    this.element = h("section", { id: "sql" }, h("h2", {}, t("sql")),
      h("div.tools", {}, examples.map(([name, sql]) => h("button", { type: "button", click: () => {
        this.text.value = sql;
        void this.run();
      } }, t(name)))),
      this.text,
      h("div.tools", {}, h("button", { type: "button", "data-act": "sql", click: () => void this.run() }, t("sqlRun")),
        this.csv, h("span.faint", {}, t("sqlHint"))),
      this.answer);
  }

  private async run(): Promise<void> {
    fill(this.answer, h("p.faint", {}, "..."));
    this.csv.hidden = true;
    try {
      const answer = await ask(`api/sql${this.query && `?${this.query}`}`, this.text.value);
      this.result = (await answer.json()) as Result;
      this.show(this.result);
    } catch (e) {
      fill(this.answer, h("p.verdict.bad", { role: "alert" }, e instanceof Error ? e.message : String(e)));
    }
  }

  private show(r: Result): void {
    const numbers = r.columns.map((_, i) => i).filter((i) => r.rows.every((row) => typeof row[i] !== "string"));
    this.csv.hidden = false;
    fill(this.answer, table(r.columns, r.rows.map((row) => row.map(cell)), numbers),
      h("p.faint", {}, t("sqlRows", r.rows.length, r.seconds.toFixed(3)), r.more ? ` ${t("sqlMore")}` : ""));
  }

  private save(): void {
    if (!this.result) return;
    const url = URL.createObjectURL(new Blob([csvOf(this.result)], { type: "text/csv" }));
    h("a", { href: url, download: "tidemark.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
}
