/** Displays, with the way to shut one out. */
import { ago } from "../../shared/words.ts";
import { useAsk } from "../dialog.tsx";
import { act } from "../server.ts";
import type { Device } from "../wire.ts";
import { useLoaded } from "./loaded.ts";

export function Devices() {
  const { value, refused, load } = useLoaded<{ readonly devices: readonly Device[] }>("devices", () => true);
  const ask = useAsk();
  if (refused) return <p class="refused" role="alert">{refused}</p>;
  if (!value) return <p class="soft">One moment…</p>;
  const revoke = (device: Device): void =>
    ask({
      title: "Shut this display out?",
      text: `${device.name} shows nothing any more until somebody signs it in again.`,
      yes: "Shut out",
      danger: true,
      act: async () => {
        await act(`devices/${device.id}/revoke`);
        load();
        return `${device.name} is shut out.`;
      },
    });
  return (
    <section aria-labelledby="devices">
      <h2 id="devices">Displays</h2>
      {value.devices.length === 0 && <p class="soft">There is none yet.</p>}
      <ul class="rows">
        {value.devices.map((device) => (
          <li key={device.id} class="card row">
            <div class="row-main">
              <b>{device.name}</b>
              <p class="soft">
                section {device.section_id} · {device.client_id} · signed in {ago(Date.parse(device.created_at), Date.now())}
              </p>
            </div>
            <p class="row-side">
              {device.revoked_at ? (
                <span class="tag bad">shut out</span>
              ) : (
                <span class="soft">{device.last_used_at ? `seen ${ago(Date.parse(device.last_used_at), Date.now())}` : "not seen yet"}</span>
              )}
            </p>
            {!device.revoked_at && (
              <button type="button" onClick={() => revoke(device)}>
                Shut out…<span class="unseen"> {device.name}</span>
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
