/** The colour of each patrol, on the cards and on the displays. */
import { COLOURS, colour, type Patrol } from "../../shared/wire.ts";
import { useModel } from "../app.tsx";

export function Colours() {
  const { state } = useModel();
  return (
    <section class="panel" aria-labelledby="colours">
      <h2 id="colours">Patrol colours</h2>
      <ul class="lines bare">
        {(state.scores?.patrols ?? []).map((patrol) => (
          <Choice key={patrol.id} patrol={patrol} />
        ))}
      </ul>
    </section>
  );
}

function Choice({ patrol }: { patrol: Patrol }) {
  const { model, state } = useModel();
  const now = state.colours[patrol.id] ?? "";
  return (
    <li class="line">
      <span class={`swatch fill-${now || "none"}`} aria-hidden="true" />
      <label class="field grow">
        <span>{patrol.name}</span>
        <select
          value={now}
          onChange={(event) =>
            void model.saveColours({ ...state.colours, [patrol.id]: colour(event.currentTarget.value) })
          }
        >
          <option value="">no colour</option>
          {COLOURS.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </li>
  );
}
