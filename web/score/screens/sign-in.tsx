import { counted } from "../../shared/words.ts";
import { useModel } from "../app.tsx";
import { unsent } from "../queue.ts";

export const LOGIN = "/admin/login";

/** The first page: who are you? */
export function SignIn() {
  const { state } = useModel();
  const kept = unsent(state.outbox);
  return (
    <main class="welcome" id="main">
      <img src="/admin/icon.svg" alt="" width="96" height="96" />
      <h1>Patrol points</h1>
      <p>Give patrols their points, with or without signal. They end up in Online Scout Manager.</p>
      {kept > 0 && (
        <p class="notice calm">
          {counted(kept, "change")} from before is safe on this device and goes out after you sign in.
        </p>
      )}
      {state.reachable ? (
        <a class="button main" href={LOGIN}>
          Sign in with Online Scout Manager
        </a>
      ) : (
        <p class="notice bad">There is no connection. You need one to sign in for the first time.</p>
      )}
    </main>
  );
}

/** Shown on every screen when the server or Online Scout Manager no longer knows us. */
export function SignInBanner() {
  const { state } = useModel();
  if (state.signedIn !== false && !state.signInAgain) return null;
  return (
    <div class="notice bad banner" role="alert">
      <span>
        {state.signedIn === false
          ? "You are signed out. Your points are safe on this device and go out when you sign in."
          : "Online Scout Manager wants you to sign in again. Your points are safe and go out when you do."}
      </span>
      <a class="button main" href={LOGIN}>
        Sign in
      </a>
    </div>
  );
}
