"""The control panel: one page for people, made of forms that do what the control API does. It needs no script."""

from __future__ import annotations

from carrick_osmsim.calls import CallRecord
from carrick_osmsim.faults import KINDS, Fault
from carrick_osmsim.html import button, hidden, options, page, text
from carrick_osmsim.simulator import Simulator
from carrick_osmsim.world import Patrol, Section, User

MINUS = "\N{MINUS SIGN}"
SHOWN_CALLS = 12
LOGGED_CALLS = 200
OPEN_SECTION = "40104"
"""The section whose scores are seen at once."""
RENEW_SECONDS = 3
ENDPOINTS = (
    ("", "every call"),
    ("points", "writing points"),
    ("patrols", "reading patrols"),
    ("resource", "reading the profile"),
    ("token", "tokens"),
    ("authorize", "the sign-in pages"),
)
TIMES = (("1", "once"), ("2", "twice"), ("5", "5 times"), ("always", "until cleared"))


def panel(simulator: Simulator, done: str = "", problem: str = "", opened: str = "") -> str:
    """The whole page, with what was just done or refused. `opened` is the id of the section or user to unfold."""
    opened = opened or OPEN_SECTION
    parts = [
        _header(simulator),
        _said(done, problem),
        _block(simulator),
        '<div class="columns">',
        _scores(simulator, opened),
        _trouble(simulator),
        _people(simulator, opened),
        _time(simulator),
        _log(simulator),
        "</div>",
    ]
    return page("OSM simulator", f'<main class="panel">{"".join(parts)}</main>')


def log_page(simulator: Simulator) -> str:
    """The last calls, newest first; it renews itself."""
    calls = simulator.calls.newest(LOGGED_CALLS)
    body = (
        '<main class="panel"><header><h1>Calls</h1><p><a href="/control/">Back to the panel</a></p></header>'
        f"<p class='hint'>Newest first. This page renews itself every {RENEW_SECONDS} seconds.</p>"
        f"{_calls(simulator, calls)}</main>"
    )
    return page("Calls - OSM simulator", body, head=f'<meta http-equiv="refresh" content="{RENEW_SECONDS}">')


def _header(simulator: Simulator) -> str:
    clock = simulator.clock.moment().strftime("%a %d %b %Y, %H:%M:%S UTC")
    stands = " (stands still)" if simulator.world.clock.stands_at is not None else ""
    return (
        "<header><h1>Online Scout Manager <span>simulator</span></h1>"
        f"<p>{text(clock)}{stands} · {simulator.calls.last_number} calls so far · "
        '<a href="/control/">Refresh</a> · <a href="/control/log">All calls</a></p></header>'
    )


def _said(done: str, problem: str) -> str:
    if problem:
        return f'<p class="problem" role="alert">{text(problem)}</p>'
    return f'<p class="done" role="status">Done: {text(done)}</p>' if done else ""


def _block(simulator: Simulator) -> str:
    block = simulator.world.block
    if block is None:
        return ""
    for_good = f" for good: {block.sins} calls were made while it was blocked" if block.permanent else ""
    lift = button("unblock", "Lift the block", {"forgive": "true"} if block.permanent else {})
    return (
        f'<section class="blocked" role="alert"><h2>The application is blocked{for_good}</h2>'
        f"<p>{text(block.reason)}</p>{lift}</section>"
    )


def _scores(simulator: Simulator, opened: str) -> str:
    sections = "".join(_section(simulator, section, opened) for section in simulator.world.sections.values())
    return (
        "<section><h2>Scores</h2><p class='hint'>As somebody else would change them in OSM itself.</p>"
        f"{sections}</section>"
    )


def _section(simulator: Simulator, section: Section, opened: str) -> str:
    today = simulator.clock.today().isoformat()
    current = [term for term in section.terms if term.startdate <= today <= term.enddate]
    term = " and ".join(f"{term.name}, until {term.enddate}" for term in current) or "not in a term"
    rows = "".join(_patrol(section, patrol) for patrol in section.patrols)
    table = f"<table><tbody>{rows}</tbody></table>" if rows else "<p class='hint'>No patrols.</p>"
    number = {"section_id": section.section_id}
    return (
        f"{_details(section.section_id, opened)}<summary><strong>{text(section.section_name)}</strong> "
        f"<span>{text(section.group_name)} · {text(term)}</span></summary>{table}"
        f'<div class="row">{button("end-term", "End the term", number)}'
        f"{button('start-term', 'Start one today', number)}</div></details>"
    )


def _details(number: int, opened: str) -> str:
    """The beginning of what can be unfolded."""
    return f'<details id="at-{number}"{" open" if str(number) == opened else ""}>'


def _patrol(section: Section, patrol: Patrol) -> str:
    fields = {"section_id": section.section_id, "patrol_id": patrol.patrol_id}
    steps = "".join(button("points", f"{step:+d}".replace("-", MINUS), {**fields, "add": step}) for step in (-1, 1, 5))
    return (
        f'<tr><th scope="row">{text(patrol.name)}</th><td class="number">{patrol.points}</td>'
        f'<td><div class="row">{steps}</div></td></tr>'
    )


def _trouble(simulator: Simulator) -> str:
    quick = "".join(
        button("fault", label, fields)
        for label, fields in (
            ("Next call: 429", {"kind": "rate_limited"}),
            ("Next call: 503", {"kind": "server_error", "status": 503}),
            ("Next write: done, no answer", {"kind": "apply_then_drop", "endpoint": "points"}),
            ("Next call: 10 s slow", {"kind": "slow", "seconds": 10}),
        )
    )
    waiting = "".join(_fault(simulator, fault) for fault in simulator.faults.waiting)
    waiting += "".join(
        f"<li><span>Hold <strong>{text(name)}</strong>: {len(gate.waiting)} waiting</span> "
        f"{button('release', 'Release', {'name': name})}</li>"
        for name, gate in simulator.holds.gates.items()
    )
    clear = button("clear-faults", "Clear all") if simulator.faults.waiting else ""
    shown = f"<h3>Waiting for calls</h3><ul class='list'>{waiting}</ul>{clear}" if waiting else ""
    return (
        f'<section><h2>Trouble</h2><div class="row">{quick}</div>{shown}<h3>Something else</h3>{_fault_form(simulator)}'
        f'<h3>Block the application</h3><div class="row">'
        f"{button('block', 'With X-Blocked', {'style': 'header'}, 'danger')}"
        f"{button('block', 'With the HTML page', {'style': 'page'}, 'danger')}</div></section>"
    )


def _fault(simulator: Simulator, fault: Fault) -> str:
    user = simulator.world.users.get(fault.user_id or 0)
    whose = f", {user.full_name}" if user else ""
    where = dict(ENDPOINTS).get(fault.endpoint or "", "every call")
    times = "until cleared" if fault.times is None else f"{fault.times} more"
    return (
        f"<li><span><strong>{text(_spoken(fault.kind))}</strong>: {text(where + whose)}, {times}</span> "
        f"{button('clear-faults', 'Clear', {'id': fault.id})}</li>"
    )


def _fault_form(simulator: Simulator) -> str:
    people = [("", "everybody"), *((user.user_id, user.full_name) for user in simulator.world.users.values())]
    return (
        '<form method="post" action="/control/fault" class="grid">'
        f'<label>What<select name="kind">{options((kind, _spoken(kind)) for kind in KINDS)}</select></label>'
        f'<label>Which calls<select name="endpoint">{options(ENDPOINTS)}</select></label>'
        f'<label>Whose<select name="user_id">{options(people)}</select></label>'
        f'<label>How often<select name="times">{options(TIMES)}</select></label>'
        '<label>Seconds (slow)<input name="seconds" type="number" min="0" max="3600" placeholder="5"></label>'
        '<label>Retry-After (429)<input name="retry_after" type="number" min="0" placeholder="60"></label>'
        '<label>Status (5xx, custom)<input name="status" type="number" min="200" max="599" placeholder="500"></label>'
        '<label>Text, reason or date<input name="text" placeholder="as usual"></label>'
        '<button class="main">Make it happen</button></form>'
    )


def _spoken(kind: str) -> str:
    return kind.replace("_", " ")


def _people(simulator: Simulator, opened: str) -> str:
    everybody = "".join(_person(simulator, user, opened) for user in simulator.world.users.values())
    return f"<section><h2>People</h2><p class='hint'>Password: <code>campfire</code></p>{everybody}</section>"


def _person(simulator: Simulator, user: User, opened: str) -> str:
    budget, left = simulator.budgets.of(user.user_id), simulator.budgets.remaining(user.user_id)
    minutes = (simulator.budgets.reset_seconds(user.user_id) + 59) // 60
    number = {"user_id": user.user_id}
    signed_in = len(simulator.tokens.live(user.user_id))
    return (
        f"{_details(user.user_id, opened)}<summary><strong>{text(user.full_name)}</strong> "
        f"<span>{left} of {budget.limit} calls left · "
        f"{'signed in' if signed_in else 'not signed in'}</span></summary><p>{text(user.about)}. "
        f'<code>{text(user.email)}</code></p><meter min="0" max="{budget.limit}" low="{budget.limit // 5}" '
        f'optimum="{budget.limit}" value="{left}" aria-label="calls left">{left}</meter>'
        f"<p class='hint'>The count starts again in {minutes} minutes. "
        f"{budget.over} calls were made with nothing left.</p>"
        f'<form method="post" action="/control/budget" class="row">{hidden(number)}'
        f'<label>Calls left<input name="remaining" type="number" min="0" value="{left}"></label>'
        "<button>Set</button></form>"
        f'<div class="row">{button("expire", "Expire access", number)}{button("rotate", "Rotate tokens", number)}'
        f"{button('revoke', 'Revoke', number, 'danger')}</div></details>"
    )


def _time(simulator: Simulator) -> str:
    steps = "".join(
        button("clock", label, {"advance_seconds": seconds})
        for label, seconds in (("+1 minute", 60), ("+1 hour", 3600), ("+1 day", 86400), ("+1 week", 604800))
    )
    stands = simulator.world.clock.stands_at is not None
    run = (
        button("clock", "Let it run", {"stands": "false"}) if stands else button("clock", "Stop it", {"stands": "true"})
    )
    refusal = (
        '<form method="post" action="/control/settings" class="row"><label>A used refresh token is refused with'
        f'<select name="refresh_refusal">{options(REFUSALS, simulator.world.refresh_refusal)}</select></label>'
        "<button>Set</button></form>"
    )
    return (
        f'<section><h2>Clock</h2><div class="row">{steps}{run}</div><h2>Tokens</h2>{refusal}'
        f"<h2>Begin anew</h2>{button('reset', 'Reset everything to the seed data', style='danger')}</section>"
    )


REFUSALS = (
    ("alternate", "the one, then the other"),
    ("invalid_request", "401 invalid_request"),
    ("invalid_grant", "400 invalid_grant"),
)


def _log(simulator: Simulator) -> str:
    calls = simulator.calls.newest(SHOWN_CALLS)
    return f"<section><h2>Last calls</h2>{_calls(simulator, calls)}</section>"


def _calls(simulator: Simulator, calls: list[CallRecord]) -> str:
    if not calls:
        return "<p class='hint'>Nobody has called yet.</p>"
    rows = "".join(_call(simulator, call) for call in calls)
    return f'<ol class="calls">{rows}</ol>'


def _call(simulator: Simulator, call: CallRecord) -> str:
    user = simulator.world.users.get(call.user_id or 0)
    status = "…" if call.open else "no answer" if call.status is None else str(call.status)
    tone = "good" if call.status in (200, 302) and not call.fault and not call.effect.startswith("refused") else "bad"
    fields = {**call.query, **call.form}
    details = " ".join(f"{name}={value}" for name, value in fields.items())
    mark = ' <span class="tag">applied</span>' if call.applied else ""
    fault = f' <span class="tag bad">{text(_spoken(call.fault))}</span>' if call.fault else ""
    return (
        f'<li><span class="when">{text(call.at[11:19])}</span> <span class="status {tone}">{text(status)}</span> '
        f'<div><strong>{text(call.method)} {text(call.path)}</strong> <span class="who">'
        f"{text(user.full_name if user else 'nobody known')}</span>"
        f"<p>{text(call.effect or 'under way')}{mark}{fault}</p>"
        f'<p class="fields">{text(details)}</p></div></li>'
    )
