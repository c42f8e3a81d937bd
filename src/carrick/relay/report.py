"""What one bounded run has done, and whether something is left because of errors."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from carrick.entry import ChannelStats
from carrick.outbox.store import Store
from carrick.relay.meter import Tally


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run, by channel. It has failed when something is left because of errors: tried in vain, ever, or held."""

    channels: dict[str, Tally]
    held: dict[str, int]
    held_approximate: list[str]
    """The channels whose number of held entries is an estimate."""
    troubled: dict[str, int]
    failed: bool


def report_of(store: Store, totals: Mapping[str, Tally]) -> RunReport:
    """The report of a run that ended just now."""
    stats = {stats.channel: stats for stats in store.stats()}
    return report(totals, stats, {name: store.troubled(name) for name in totals})


def report(totals: Mapping[str, Tally], stats: Mapping[str, ChannelStats], troubled: Mapping[str, int]) -> RunReport:
    """The same, from what the store says."""
    left = [tally.retried + tally.released + tally.dead + tally.lost for tally in totals.values()]
    held = {name: stats[name].held_count for name in totals}
    return RunReport(
        channels=dict(totals),
        held=held,
        held_approximate=[name for name in totals if "held_count" in stats[name].approximate],
        troubled=dict(troubled),
        failed=any(left) or any(held.values()) or any(troubled.values()),
    )
