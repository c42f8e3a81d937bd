/** What the console's endpoints say, as on the wire. */

export interface Session {
  readonly signed_in: boolean;
  readonly name: string;
  readonly mark: string;
  readonly service: string;
  readonly instance: string;
  readonly panels: readonly string[];
  readonly is_demo: boolean;
}

export interface Stats {
  readonly channel: string;
  readonly pending_count: number;
  readonly held_count: number;
  readonly claimed_count: number;
  readonly dead_count: number;
  readonly backlog_bytes: number;
  readonly oldest_pending_age_seconds: number | null;
  readonly delivered_per_second: number;
  readonly last_success_at: string | null;
  readonly last_error_at: string | null;
  /** The fields above that are estimates, because so much waits or is dead. */
  readonly approximate: readonly string[];
}

export type Points = readonly (number | null)[];

export interface Channel {
  readonly stats: Stats;
  readonly mode: string;
  readonly lately: {
    readonly latency_ms: number | null;
    readonly error_share: number | null;
  };
  readonly series: {
    readonly slot_seconds: number;
    readonly waiting: Points;
    readonly oldest: Points;
    readonly dead: Points;
    readonly delivered: Points;
    readonly latency_ms: Points;
    readonly errors: Points;
  };
}

export interface Gate {
  readonly channel: string;
  readonly scope: string;
  readonly closed_until: string | null;
  readonly reason: string;
  readonly consecutive_failures: number;
  readonly asked: boolean;
}

export interface Sign {
  readonly doing: "duty" | "lease" | "rest";
  readonly what: string;
  readonly entries: number;
  readonly since: string | null;
  readonly until: string;
}

export interface Replica {
  readonly owner: string;
  readonly alive_until: string;
  readonly signs: readonly Sign[];
}

export interface Tenant {
  readonly channel: string;
  readonly tenant_id: string;
  readonly waiting: number;
}

export interface Overview {
  readonly at: string;
  readonly instance: string;
  readonly channels: readonly Channel[];
  readonly gates: readonly Gate[];
  readonly replicas: readonly Replica[];
  readonly tenants: readonly Tenant[];
  readonly counted_up_to: number;
}

export const STATES = ["dead", "pending", "claimed", "delivered"] as const;
export type State = (typeof STATES)[number];

export interface Line {
  readonly id: string;
  readonly channel: string;
  readonly tenant_id: string;
  readonly group_key: string | null;
  readonly event_type: string;
  readonly key: string | null;
  readonly payload_size_bytes: number;
  readonly created_at: string;
  readonly state: State;
  readonly next_attempt_at: string | null;
  readonly attempt_count: number;
  readonly last_error_code: string | null;
  readonly last_error_message: string | null;
  readonly claimed_by: string | null;
  readonly delivered_at: string | null;
  readonly failed_at: string | null;
  readonly dlq_reason: string | null;
}

export interface Lines {
  readonly entries: readonly Line[];
  readonly next: string | null;
}

/** What was found, and by which of its names: id, key, group, tenant. */
export interface Hit {
  readonly matches: readonly string[];
  readonly entry: Line;
}

export interface Search {
  readonly hits: readonly Hit[];
  readonly cut: boolean;
  readonly tenants_unseen: boolean;
  readonly ended_unseen: boolean;
}

export interface Cause {
  readonly reason: string;
  readonly error_code: string | null;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
}

/** What dead entries died of, as they stood at `at`. */
export interface Dead {
  readonly at: string;
  readonly count: number;
  readonly counted_up_to: number;
  readonly causes: readonly Cause[];
  readonly oldest: readonly Line[];
}

export interface Happening {
  readonly at: string | null;
  readonly event: string;
  readonly detail: string;
}

export interface Entry {
  readonly standing: Omit<Line, "key" | "payload_size_bytes"> & {
    readonly now: string;
    readonly principal: string | null;
    readonly crash_count: number;
  };
  readonly contents: {
    readonly seq: number;
    readonly key: string | null;
    readonly payload: string;
    readonly cut: boolean;
    readonly headers: Readonly<Record<string, unknown>> | null;
    readonly payload_size_bytes: number;
    readonly priority: number;
    readonly traceparent: string | null;
    readonly occurred_at: string | null;
  };
  readonly reason: string;
  readonly sentence: string;
  readonly story: readonly Happening[];
}

export interface Changed {
  readonly count: number;
  readonly dry_run: boolean;
  /** The time was up before all were done. */
  readonly left: boolean;
}

export interface Osm {
  readonly block: { readonly blocked_at: string; readonly header: string } | null;
  readonly endings: readonly { readonly endpoint: string; readonly said: string; readonly ends_at: string | null }[];
  readonly users: readonly {
    readonly user_id: number;
    readonly name: string;
    readonly revoked_at: string | null;
    readonly last_used_at: string | null;
    readonly remaining: number | null;
    readonly limit: number | null;
    readonly reset_at: string | null;
    readonly blocked_until: string | null;
  }[];
  readonly problem: string;
}

export interface Device {
  readonly id: number;
  readonly client_id: string;
  readonly name: string;
  readonly section_id: number;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
}
