/** ADMIN_TOKEN, once; the browser keeps a cookie that no script can read. */
import { useState } from "preact/hooks";
import { Refused, signIn } from "../server.ts";
import type { Session } from "../wire.ts";

export function SignIn({ service, done }: { service: string; done: (session: Session) => void }) {
  const [refused, setRefused] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      done(await signIn(String(given.get("token")), String(given.get("name"))));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setRefused(error.status === 401 ? "This is not the admin token." : error.message);
      setBusy(false);
    }
  };
  return (
    <main class="alone">
      <form class="card sign-in" onSubmit={(event) => void submit(event)}>
        <h1>
          Carrick <span class="soft">{service}</span>
        </h1>
        <div class="field">
          <label for="name">Your name</label>
          <input id="name" name="name" required maxLength={60} autocomplete="username" aria-describedby="name-hint" />
          <p id="name-hint" class="soft">
            It is written beside what you do.
          </p>
        </div>
        <div class="field">
          <label for="token">Admin token</label>
          <input id="token" name="token" type="password" required maxLength={1000} autocomplete="current-password" />
        </div>
        {refused && (
          <p class="refused" role="alert">
            {refused}
          </p>
        )}
        <button type="submit" class="main" disabled={busy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
