// SPDX-License-Identifier: MIT
/** The page of a machine (`tidemark serve --live`): its devices and the processes that are recorded,
 * each with a link to its page. */
import { bar, fill, h, table } from "./dom";
import { bytes } from "./format";
import { ask } from "./served";
import { t } from "./strings";

interface Node {
  devices: { device: string; used: number | null; total: number | null }[];
  processes: { pid: number; rank: number | null; device: string | null; allocated: number | null;
    reserved: number | null; peak: number | null; command: string | null }[];
}

const size = (v: number | null) => (v === null ? "-" : bytes(v));

export class NodeView {
  readonly element = h("main");

  async refresh(): Promise<void> {
    const n = (await (await ask("api/node")).json()) as Node;
    fill(this.element,
      h("section", { id: "devices" }, h("h2", {}, t("devices")),
        table([t("name"), t("usedHead"), t("totalHead"), ""], n.devices.map((d) => [d.device, size(d.used), size(d.total),
          d.used !== null && d.total ? bar(d.used / d.total, "var(--accent)") : ""]), [1, 2])),
      h("section", { id: "jobs" }, h("h2", {}, t("jobs")),
        n.processes.length === 0 ? h("p", {}, t("noJobs"))
          : table(["PID", t("deviceLabel"), t("allocatedHead"), t("reservedHead"), t("peakFigure"), t("command")],
            n.processes.map((p) => [h("a", { href: `?pid=${p.pid}` }, p.pid), p.device ?? "-",
              size(p.allocated), size(p.reserved), size(p.peak), p.command ?? "-"]), [2, 3, 4])));
  }
}
