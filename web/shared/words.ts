/** How numbers and times are said to people. Pure: the time of reading is passed in. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Points with their sign, with a real minus: +5, −1. */
export function signed(points: number): string {
  return points < 0 ? `−${-points}` : `+${points}`;
}

/** A score as shown: a real minus below zero. */
export function figure(score: number): string {
  return score < 0 ? `−${-score}` : String(score);
}

/** `1 point`, `3 points`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** How long ago `then` was: just now, 3 minutes ago, 2 hours ago, 5 days ago. A time to come is just now. */
export function ago(then: number, now: number): string {
  const age = now - then;
  if (age < MINUTE) return "just now";
  if (age < HOUR) return `${counted(Math.floor(age / MINUTE), "minute")} ago`;
  if (age < DAY) return `${counted(Math.floor(age / HOUR), "hour")} ago`;
  return `${counted(Math.floor(age / DAY), "day")} ago`;
}

/** A time of day, with the day in front when it is not today's. */
export function clock(then: number, now: number): string {
  const time = new Date(then).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (new Date(then).toDateString() === new Date(now).toDateString()) return time;
  return `${new Date(then).toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" })}, ${time}`;
}
