// SPDX-License-Identifier: MIT
// build.mjs [FOLDER] - web/src into web/dist, or FOLDER: one program, one style. `./dev web` runs it.
//
// Names are shortened, lines are not joined without end: a change of the sources is a change of a
// few lines of the bundle. The colours are those of the C sources (palette.c).
import { build } from "esbuild";
import { readFileSync } from "node:fs";

const palette = new URL("../src/draw/palette.c", import.meta.url);

/** The colours of palette.c, 0xaarrggbb: those with a name, and those of the i-th of similar things. */
function colours() {
  const text = readFileSync(palette, "utf8");
  const named = [...text.matchAll(/\{"([^"]+)", 0xff([0-9a-f]{6})\}/g)].map((m) => [m[1], `#${m[2]}`]);
  const list = /colours\[\] = \{([^}]*)\}/.exec(text);
  const similar = [...list[1].matchAll(/0xff([0-9a-f]{6})/g)].map((m) => `#${m[1]}`);
  if (named.length < 30 || similar.length < 8) throw new Error(`no colours in ${palette.pathname}`);
  return `export const named: [string, string][] = ${JSON.stringify(named)};
export const similar: string[] = ${JSON.stringify(similar)};`;
}

const fromC = {
  name: "palette",
  setup(b) {
    b.onLoad({ filter: /colours\.gen\.ts$/ }, () => ({ contents: colours(), loader: "ts" }));
  },
};

await build({
  entryPoints: { page: "src/main.ts", style: "src/page.css" },
  absWorkingDir: new URL(".", import.meta.url).pathname,
  bundle: true,
  minify: true,
  lineLimit: 120,
  target: ["chrome100", "firefox115", "safari16.4"],
  format: "iife",
  charset: "ascii",
  legalComments: "none",
  plugins: [fromC],
  outdir: process.argv[2] ?? "dist",
});
