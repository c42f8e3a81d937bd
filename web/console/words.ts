/** How figures and spans of time are said on the console. Pure. */

/** 0, 950, 12.3k, 4.5M. */
export function short(count: number): string {
  if (count < 10_000) return count.toLocaleString("en-GB");
  const [size, unit] = count < 1_000_000 ? [1000, "k"] : [1_000_000, "M"];
  return `${(count / size).toFixed(count < 100 * size ? 1 : 0)}${unit}`;
}

/** A rate with as many digits as help: 0/s, 0.25/s, 3.4/s, 120/s. */
export function perSecond(rate: number): string {
  if (rate === 0 || rate >= 100) return `${short(Math.round(rate))}/s`;
  return `${rate.toFixed(rate < 1 ? 2 : 1)}/s`;
}

/** Seconds in the two largest units: 8 s, 3 min 5 s, 2 h 10 min, 4 d 3 h. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const units: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const at = units.findIndex(([size]) => whole >= size);
  if (at < 0) return "0 s";
  const [size, unit] = units[at]!;
  const next = units[at + 1];
  const left = next ? Math.floor((whole % size) / next[0]) : 0;
  return `${Math.floor(whole / size)} ${unit}${next && left ? ` ${left} ${next[1]}` : ""}`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count / 1000;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function percent(share: number): string {
  return share === 0 ? "0 %" : share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

export function milliseconds(value: number): string {
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} s`;
}

/** A moment with its day: 3 May, 14:05. */
export function moment(at: string): string {
  return new Date(at).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

/** From one moment to another; the day only once, and one of them where they are the same. */
export function between(first: string, last: string): string {
  const [from, to] = [moment(first), moment(last)];
  if (from === to) return from;
  const [day, hour] = to.split(", ");
  return from.startsWith(`${day},`) && hour ? `${from} to ${hour}` : `${from} to ${to}`;
}

/** The gate's scope for people: the whole channel, tenant mill, principal 17. */
export function scope(text: string): string {
  if (text === "*") return "the whole channel";
  const [kind, ...name] = text.split(":");
  return `${kind} ${name.join(":")}`;
}

/** How much of a gate's time is left: `opens in 8 s`, `until opened`. */
export function opening(closedUntil: string | null, now: number): string {
  if (closedUntil === null) return "until somebody opens it";
  const left = (Date.parse(closedUntil) - now) / 1000;
  return left > 0 ? `opens in ${span(Math.ceil(left))}` : "opening…";
}

/** A payload in a readable form where it is whole JSON; else as it is. */
export function pretty(text: string, cut: boolean): string {
  if (cut) return text;
  try {
    // numbers beyond a double's precision must not change under the reader's eyes
    return /\d{16}/.test(text) ? text : JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
