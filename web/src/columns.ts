// SPDX-License-Identifier: MIT
/** The data of a page: base64 of deflated bytes, in which a JSON text is followed by columns of
 * numbers. docs/page.md describes it; src/cli/page/page_columns.h writes it. */

type Place = [start: number, bytes: number, n: number, kind: number];

export class Columns {
  private readonly made = new Map<string, Float64Array>();

  constructor(private readonly places: Record<string, Place>, private readonly bytes: Uint8Array) {}

  /** A column's numbers; an empty one where there is no such column. */
  get(name: string): Float64Array {
    let column = this.made.get(name);
    if (!column) {
      const place = this.places[name];
      column = place ? read(this.bytes, place) : new Float64Array(0);
      this.made.set(name, column);
    }
    return column;
  }
}

/** LEB128; below 2^53, which all sizes, addresses and times are. */
function read(bytes: Uint8Array, [start, , n, kind]: Place): Float64Array {
  const out = new Float64Array(n);
  let at = start, last = 0;
  for (let i = 0; i < n; i++) {
    let value = 0, scale = 1, byte: number;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    if (kind === 1) {
      last += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      value = last;
    }
    out[i] = value;
  }
  return out;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text), out = new Uint8Array(binary.length);
  for (let i = 0; i < out.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

/** The JSON value and the bytes behind it. */
export function split(all: Uint8Array): { json: unknown; rest: Uint8Array } {
  const n = new DataView(all.buffer, all.byteOffset).getUint32(0, true);
  const json: unknown = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + n)));
  return { json, rest: all.subarray(4 + n) };
}

export async function unpack(base64: string): Promise<{ json: unknown; rest: Uint8Array }> {
  const packed = new Blob([fromBase64(base64)]).stream();
  const whole = new Response(packed.pipeThrough(new DecompressionStream("deflate")));
  return split(new Uint8Array(await whole.arrayBuffer()));
}
