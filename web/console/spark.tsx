/** A small chart of the last hour. Points that nobody measured leave a gap. */
import type { Points } from "./wire.ts";

const WIDTH = 120;
const HEIGHT = 28;

interface Given {
  readonly label: string;
  readonly value: string;
  readonly points: Points;
  readonly bad?: boolean;
  /** How its figures are said, for the highest of the hour. */
  readonly said: (value: number) => string;
}

export function Spark({ label, value, points, bad, said }: Given) {
  const most = Math.max(...points.map((point) => point ?? 0), 0);
  return (
    <div class={`spark${bad ? " bad" : ""}`}>
      <span class="spark-label">{label}</span>
      <span class="spark-value">{value}</span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="spark-base" d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
        {runs(points).map((run) => (
          <g key={run[0]!.x}>
            <path class="spark-area" d={`${line(run, most)}L${run.at(-1)!.x} ${HEIGHT}L${run[0]!.x} ${HEIGHT}Z`} />
            <path class="spark-line" d={line(run, most)} />
          </g>
        ))}
      </svg>
      <span class="spark-most">{most > 0 ? `highest ${said(most)}` : "\u00a0"}</span>
    </div>
  );
}

interface Point {
  readonly x: number;
  readonly value: number;
}

/** Stretches without a gap; one point alone is drawn as a short line. */
function runs(points: Points): Point[][] {
  const step = WIDTH / Math.max(1, points.length - 1);
  const found: Point[][] = [[]];
  points.forEach((value, index) => {
    if (value === null) found.push([]);
    else found.at(-1)!.push({ x: index * step, value });
  });
  return found
    .filter((run) => run.length > 0)
    .map((run) => (run.length > 1 ? run : [{ x: Math.max(0, run[0]!.x - 2), value: run[0]!.value }, run[0]!]));
}

function line(run: readonly Point[], most: number): string {
  const y = (value: number): number => HEIGHT - 1 - (most > 0 ? (value / most) * (HEIGHT - 3) : 0);
  return run.map(({ x, value }, index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y(value).toFixed(1)}`).join("");
}
