// SPDX-License-Identifier: MIT
/** The colours of the C sources. build.mjs puts them here; these lines say only their types. */
export const named: [string, string][] = [];
export const similar: string[] = [];
