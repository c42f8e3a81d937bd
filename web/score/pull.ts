/** Pull to refresh: drag the top of the page down with a finger and let go. */
import { useEffect, useState } from "preact/hooks";

const ENOUGH = 64;
const FARTHEST = 96;

/** How far the page is pulled now, in pixels; calls `act` when it is let go far enough down. */
export function usePull(act: () => void): number {
  const [pulled, setPulled] = useState(0);
  useEffect(() => {
    let from: number | undefined;
    let distance = 0;
    const start = (event: TouchEvent) => {
      from = scrollY <= 0 && event.touches.length === 1 ? event.touches[0]!.clientY : undefined;
    };
    const move = (event: TouchEvent) => {
      if (from === undefined) return;
      distance = Math.max(0, Math.min(FARTHEST, (event.touches[0]!.clientY - from) / 2));
      setPulled(distance);
    };
    const end = () => {
      if (from !== undefined && distance >= ENOUGH) act();
      from = undefined;
      distance = 0;
      setPulled(0);
    };
    const passive = { passive: true };
    const handlers = [
      ["touchstart", start],
      ["touchmove", move],
      ["touchend", end],
      ["touchcancel", end],
    ] as const;
    for (const [kind, handler] of handlers) addEventListener(kind, handler as EventListener, passive);
    return () => handlers.forEach(([kind, handler]) => removeEventListener(kind, handler as EventListener));
  }, []);
  return pulled;
}
