// SPDX-License-Identifier: MIT
/** Colours of categories, components and stages, as in every picture that tidemark makes; other
 * names get one computed from their letters, so that they keep it. */
import { named, similar } from "./colours.gen";

const table = new Map(named);
const ranks = new Map(named.map(([name], i) => [name, i]));

export function colourOf(name: string | null): string {
  const known = table.get(name ?? "unknown");
  if (known) return known;
  let sum = 0;
  for (let i = 0; i < name!.length; i++) sum = (Math.imul(31, sum) + name!.charCodeAt(i)) >>> 0;
  return similar[sum % similar.length];
}

/** Where a name stands in a stack of layers, from below: long-lived memory first. */
export function rankOf(name: string | null): number {
  return ranks.get(name ?? "unknown") ?? named.length;
}
