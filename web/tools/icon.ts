/** Draws the icon of the score page as a PNG: three bars of a scoreboard on green. The same picture as score/public/icon.svg. */
import { crc32, deflateSync } from "node:zlib";

type Colour = readonly [number, number, number, number];
interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly round: number;
  readonly colour: Colour;
}

const CLEAR: Colour = [0, 0, 0, 0];
const GREEN: Colour = [11, 93, 81, 255];

/** The bars on a field of 1 by 1; they stay within the middle 80 %, so a mask may cut the corners. */
const BARS: readonly Box[] = [
  { x: 0.24, y: 0.46, width: 0.14, height: 0.3, round: 0.04, colour: [246, 201, 69, 255] },
  { x: 0.43, y: 0.26, width: 0.14, height: 0.5, round: 0.04, colour: [255, 255, 255, 255] },
  { x: 0.62, y: 0.38, width: 0.14, height: 0.38, round: 0.04, colour: [240, 132, 92, 255] },
];

/** A square PNG of `size` pixels whose corners are rounded by the fraction `round`. */
export function icon(size: number, round: number): Uint8Array {
  const boxes = [{ x: 0, y: 0, width: 1, height: 1, round, colour: GREEN }, ...BARS];
  const rows = Buffer.alloc(size * (1 + size * 4));
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) rows.set(pixel(boxes, x, y, size), y * (1 + size * 4) + 1 + x * 4);
  }
  return png(size, rows);
}

/** Each box is laid over those before it; at its edge it covers part of the pixel. */
function pixel(boxes: readonly Box[], x: number, y: number, size: number): number[] {
  let over: Colour = CLEAR;
  for (const box of boxes) {
    const part = cover(box, (x + 0.5) / size, (y + 0.5) / size, size);
    if (part > 0) over = blend(over, box.colour, part);
  }
  return over.map(Math.round);
}

function blend(under: Colour, top: Colour, part: number): Colour {
  const [red, green, blue, alpha] = under;
  const rest = ((1 - part) * alpha) / 255;
  const mixed = (a: number, b: number) => (a * part + b * rest) / (part + rest);
  return [mixed(top[0], red), mixed(top[1], green), mixed(top[2], blue), (part + rest) * 255];
}

/** How much of the pixel around this point the rounded box covers, 0 to 1. */
function cover(box: Box, x: number, y: number, size: number): number {
  const dx = Math.abs(x - box.x - box.width / 2) - box.width / 2 + box.round;
  const dy = Math.abs(y - box.y - box.height / 2) - box.height / 2 + box.round;
  const outside = Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - box.round;
  return Math.min(1, Math.max(0, 0.5 - outside * size));
}

function png(size: number, rows: Buffer): Uint8Array {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 6, 0, 0, 0], 8); // 8 bits a channel, RGBA
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(kind: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  framed.set(body, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
