"""The contract of shared state: what the application relies on, wherever the values are.

Subclass it where your tests are, and give it two fixtures:

    class TestMyState(StateContract):
        @pytest.fixture
        def replica(self): ...  # opens one more replica of the same, empty state: an async context manager
        @pytest.fixture
        def clock(self): ...    # a carrick.testing.Clock that shifts the clock that values end by
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any

import pytest

from carrick.errors import InvalidInput
from carrick.state.kv import MAX_KEY, MAX_KEYS, MAX_MESSAGE_BYTES, MAX_TTL_SECONDS, MAX_VALUE_BYTES, Gap, Heard, Message
from carrick.state.shared import SharedState
from carrick.testing.clock import Clock

PATIENCE_SECONDS = 30.0

Replica = Callable[[], AbstractAsyncContextManager[SharedState]]

GOOD_KEYS = [
    "k",
    "osm_ratelimit:42",
    "patrol:1:2:sync_lock",
    "with space\nand line",
    'it\'s "quoted" \\ %s {} $1 :name',
    "a*b?[c]",
    "100%_",
    "k#1",
    "ключ-鍵-🔑",
    "k" * MAX_KEY,
    "🔑" * MAX_KEY,
]
BAD_KEYS: list[Any] = ["", "a\x00b", "\x00", "lone \ud800", "k" * (MAX_KEY + 1), None, 7, b"bytes"]
BAD_TTLS: list[Any] = [0, -1, 0.0, float("nan"), float("inf"), MAX_TTL_SECONDS + 1, None, "60", True]
BAD_VALUES: list[Any] = ["text", None, 7, b"x" * (MAX_VALUE_BYTES + 1), bytearray(b"x")]
BAD_MESSAGES: list[Any] = [
    "a\x00b",
    "lone \ud800",
    "x" * (MAX_MESSAGE_BYTES + 1),
    "é" * (MAX_MESSAGE_BYTES // 2 + 1),
    b"x",
    None,
]


def run(story: Coroutine[Any, Any, None]) -> None:
    """A test's story, which must come to its end."""

    async def within() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await story

    asyncio.run(within())


async def next_message(heard: AsyncGenerator[Heard, None]) -> str:
    """The next message, whatever gaps come before it."""
    while True:
        item = await anext(heard)
        if isinstance(item, Message):
            return item.text


class ValueContract:
    """Values that end by themselves."""

    def test_what_one_replica_writes_another_reads(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as one, replica() as other:
                for key in GOOD_KEYS:
                    await one.set(key, b"1", ttl=60)
                    assert await other.get(key) == b"1"
                    assert [item.key for item in await other.scan(key[:3])] == [key]
                    assert await other.delete(key) == b"1"
                    assert await one.get(key) is None

        run(story())

    def test_a_value_is_any_bytes(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                for value in (b"", bytes(range(256)), b"\xff\x00", b"x" * MAX_VALUE_BYTES):
                    await state.set("k", value, ttl=60)
                    assert await state.get("k") == value
                    assert await state.compare_and_set("k", value, b"next", ttl=60)
                    assert not await state.compare_and_delete("k", value)

        run(story())

    def test_many_are_read_at_once_and_missing_ones_are_left_out(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                await state.set("a", b"1", ttl=60)
                await state.set("b", b"2", ttl=60)
                assert await state.get_many(["b", "x", "a", "a"]) == {"a": b"1", "b": b"2"}
                assert await state.get_many([]) == {}
                assert await state.get_many(["x"]) == {}

        run(story())

    def test_an_ended_value_is_as_if_it_had_never_been(self, replica: Replica, clock: Clock) -> None:
        async def story() -> None:
            async with replica() as state:
                for key in "abcdef":
                    await state.set(key, b"7", ttl=60)
                clock.shift(61)
                assert await state.get("a") is None
                assert await state.get_many(["a", "b"]) == {}
                assert await state.scan("") == []
                assert await state.delete("a") is None
                assert not await state.compare_and_delete("b", b"7")
                assert not await state.compare_and_set("c", b"7", b"8", ttl=60)
                assert await state.set_if_absent("d", b"8", ttl=60)
                assert (await state.increment("e", ttl=60)).sum == 1
                assert await state.get("d") == b"8"

        run(story())

    def test_a_value_is_there_until_its_time_is_up(self, replica: Replica, clock: Clock) -> None:
        async def story() -> None:
            async with replica() as state:
                await state.set("k", b"1", ttl=100)
                clock.shift(50)
                assert await state.get("k") == b"1"
                await state.set("k", b"2", ttl=100)
                clock.shift(60)
                assert await state.get("k") == b"2"
                clock.shift(60)
                assert await state.get("k") is None

        run(story())

    def test_a_list_shows_keys_with_the_prefix_and_what_is_left_of_them(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                for key in ("a*b:2", "a*b:1", "aXb:1", "a_b:1", "b"):
                    await state.set(key, key.encode(), ttl=1000)
                found = await state.scan("a*")
                assert [(item.key, item.value) for item in found] == [("a*b:1", b"a*b:1"), ("a*b:2", b"a*b:2")]
                assert all(item.ends_in == pytest.approx(1000, abs=60) for item in found)
                assert [item.key for item in await state.scan("a_")] == ["a_b:1"]
                assert [item.key for item in await state.scan("")] == ["a*b:1", "a*b:2", "aXb:1", "a_b:1", "b"]
                assert len(await state.scan("a", limit=3)) == 3

        run(story())

    def test_what_is_no_counter_is_refused_and_kept(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                for value in (b"", b"x", b"1.5", b"007", b" 1", b"\xff", b"9" * 400):
                    await state.set("k", value, ttl=60)
                    with pytest.raises(InvalidInput, match="no counter"):
                        await state.increment("k", ttl=60)
                    assert await state.get("k") == value

        run(story())


class LockContract:
    """Who takes and who gives back."""

    def test_of_fifty_who_try_at_once_one_takes_the_lock(self, replica: Replica, clock: Clock) -> None:
        async def story() -> None:
            async with AsyncExitStack() as stack:
                replicas = [await stack.enter_async_context(replica()) for _ in range(5)]

                async def tried() -> list[bool]:
                    tries = [replicas[n % 5].set_if_absent("lock", b"%d" % n, ttl=60) for n in range(50)]
                    return await asyncio.gather(*tries)

                for _ in range(3):  # the first time there is nothing, then something that has ended
                    assert (await tried()).count(True) == 1
                    assert (await tried()).count(True) == 0
                    clock.shift(61)

        run(story())

    def test_a_lock_that_is_held_keeps_its_value_and_its_time(self, replica: Replica, clock: Clock) -> None:
        async def story() -> None:
            async with replica() as state:
                assert await state.set_if_absent("lock", b"a", ttl=100)
                clock.shift(50)
                assert not await state.set_if_absent("lock", b"b", ttl=100)
                assert await state.get("lock") == b"a"
                clock.shift(60)
                assert await state.set_if_absent("lock", b"b", ttl=100)

        run(story())

    def test_an_owner_whose_time_was_up_gives_back_nothing(self, replica: Replica, clock: Clock) -> None:
        async def story() -> None:
            async with replica() as old, replica() as new:
                assert await old.set_if_absent("lock", b"old", ttl=10)
                clock.shift(11)
                assert await new.set_if_absent("lock", b"new", ttl=10)
                assert not await old.compare_and_delete("lock", b"old")
                assert not await old.compare_and_set("lock", b"old", b"old", ttl=10)
                assert await old.get("lock") == b"new"
                assert await new.compare_and_delete("lock", b"new")
                assert await old.set_if_absent("lock", b"old", ttl=10)

        run(story())

    def test_an_owner_extends_its_lock(self, replica: Replica, clock: Clock) -> None:
        async def story() -> None:
            async with replica() as state:
                assert await state.set_if_absent("lock", b"me", ttl=10)
                assert await state.compare_and_set("lock", b"me", b"me", ttl=100)
                clock.shift(50)
                assert await state.get("lock") == b"me"

        run(story())

    def test_of_many_who_compare_and_set_one_succeeds(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as one, replica() as other:
                await one.set("k", b"start", ttl=60)
                tries = [(one if n % 2 else other).compare_and_set("k", b"start", b"%d" % n, ttl=60) for n in range(30)]
                won = await asyncio.gather(*tries)
                assert won.count(True) == 1
                assert await one.get("k") == b"%d" % won.index(True)

        run(story())

    def test_of_many_who_delete_a_value_one_is_given_it(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as one, replica() as other:
                await one.set("k", b"note", ttl=60)
                given = await asyncio.gather(*((one if n % 2 else other).delete("k") for n in range(20)))
                assert (given.count(b"note"), given.count(None)) == (1, 19)

        run(story())

    def test_nothing_is_compared_with_a_value_that_is_not_there(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                assert not await state.compare_and_set("k", b"", b"x", ttl=60)
                assert not await state.compare_and_delete("k", b"")
                assert await state.get("k") is None

        run(story())


class CounterContract:
    """Counters of a fixed window."""

    def test_increments_of_many_replicas_add_up(self, replica: Replica) -> None:
        async def story() -> None:
            async with AsyncExitStack() as stack:
                replicas = [await stack.enter_async_context(replica()) for _ in range(5)]
                sums = await asyncio.gather(*(replicas[n % 5].increment("hits", ttl=60) for n in range(150)))
                assert sorted(count.sum for count in sums) == list(range(1, 151))
                assert (await replicas[0].increment("hits", ttl=60, by=50)).sum == 200

        run(story())

    def test_a_window_ends_when_its_first_increment_said(self, replica: Replica, clock: Clock) -> None:
        async def story() -> None:
            async with replica() as state:
                found = [await state.increment("hits", ttl=600)]
                clock.shift(500)
                found.append(await state.increment("hits", ttl=600))
                clock.shift(101)
                found.append(await state.increment("hits", ttl=600, by=3))
                clock.shift(500)
                found.append(await state.increment("hits", ttl=600))
                assert [count.sum for count in found] == [1, 2, 3, 4]
                left = [count.ends_in for count in found]
                assert left == pytest.approx([600, 100, 600, 100], abs=60)

        run(story())


class InputContract:
    """Bad input is refused by name, wherever the values are."""

    def test_a_bad_key_is_refused(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                for key in BAD_KEYS:
                    for attempt in (
                        state.get(key),
                        state.get_many(["fine", key]),
                        state.set(key, b"", ttl=1),
                        state.set_if_absent(key, b"", ttl=1),
                        state.compare_and_set(key, b"", b"", ttl=1),
                        state.delete(key),
                        state.compare_and_delete(key, b""),
                        state.increment(key, ttl=1),
                    ):
                        with pytest.raises(InvalidInput, match=r"^key: .*accepted: 1 to 512 characters"):
                            await attempt
                    with pytest.raises(InvalidInput, match=r"^topic: "):
                        await state.publish(key, "x")
                    with pytest.raises(InvalidInput, match=r"^topic: "):
                        state.subscribe(key)
                    if key != "":
                        with pytest.raises(InvalidInput, match=r"^prefix: "):
                            await state.scan(key)

        run(story())

    def test_a_bad_time_to_live_is_refused(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                for ttl in BAD_TTLS:
                    for attempt in (
                        state.set("k", b"", ttl=ttl),
                        state.set_if_absent("k", b"", ttl=ttl),
                        state.compare_and_set("k", b"", b"", ttl=ttl),
                        state.increment("k", ttl=ttl),
                    ):
                        with pytest.raises(InvalidInput, match=r"^ttl: .*more than 0, at most"):
                            await attempt
                    assert await state.get("k") is None

        run(story())

    def test_a_bad_value_is_refused(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                for value in BAD_VALUES:
                    for attempt in (
                        state.set("k", value, ttl=1),
                        state.set_if_absent("k", value, ttl=1),
                        state.compare_and_set("k", b"", value, ttl=1),
                    ):
                        with pytest.raises(InvalidInput, match=rf"^value: .*bytes, at most {MAX_VALUE_BYTES}"):
                            await attempt
                    with pytest.raises(InvalidInput, match=r"^expected: "):
                        await state.compare_and_delete("k", value)

        run(story())

    def test_absurd_numbers_and_lists_are_refused(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                bad: Any
                for bad in (0, -1, 1.5, "1", True, 10**10):
                    with pytest.raises(InvalidInput, match=r"^by: "):
                        await state.increment("k", ttl=1, by=bad)
                for bad in (0, -1, 1001, "1"):
                    with pytest.raises(InvalidInput, match=r"^limit: "):
                        await state.scan("", limit=bad)
                for bad in ("text", ["k"] * (MAX_KEYS + 1)):
                    with pytest.raises(InvalidInput, match=r"^keys: "):
                        await state.get_many(bad)

        run(story())

    def test_a_bad_message_is_refused(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                for text in BAD_MESSAGES:
                    with pytest.raises(InvalidInput, match=rf"^text: .*at most {MAX_MESSAGE_BYTES} bytes"):
                        await state.publish("t", text)

        run(story())

    def test_the_shortest_and_the_longest_times_are_taken(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                for ttl in (0.000_001, 0.001, 1, MAX_TTL_SECONDS):
                    await state.set("k", b"1", ttl=ttl)
                    await state.increment("n", ttl=ttl)

        run(story())


class MessageContract:
    """Messages to those who listen."""

    def test_a_subscriber_hears_a_gap_first_and_then_every_message_in_order(self, replica: Replica) -> None:
        async def story() -> None:
            texts = ["1", "", "двa ' \" \\ \n %s", "x" * MAX_MESSAGE_BYTES, "1", "1"]
            async with replica() as one, replica() as other, aclosing(other.subscribe("topic")) as heard:
                assert isinstance(await anext(heard), Gap)
                for text in texts:
                    await one.publish("topic", text)
                assert [await next_message(heard) for _ in texts] == texts

        run(story())

    def test_every_subscriber_hears_its_own_topic_only(self, replica: Replica) -> None:
        async def story() -> None:
            async with (
                replica() as state,
                aclosing(state.subscribe("a")) as first,
                aclosing(state.subscribe("a")) as second,
                aclosing(state.subscribe("A" * MAX_KEY)) as other,
            ):
                for heard in (first, second, other):
                    assert isinstance(await anext(heard), Gap)
                for topic in ("a*", "b", "a", "A" * MAX_KEY):
                    await state.publish(topic, topic)
                assert [await next_message(heard) for heard in (first, second)] == ["a", "a"]
                assert await next_message(other) == "A" * MAX_KEY

        run(story())

    def test_a_message_that_nobody_hears_is_gone(self, replica: Replica) -> None:
        async def story() -> None:
            async with replica() as state:
                await state.publish("topic", "before")
                async with aclosing(state.subscribe("topic")) as heard:
                    assert isinstance(await anext(heard), Gap)
                    await state.publish("topic", "after")
                    assert await next_message(heard) == "after"

        run(story())


class StateContract(ValueContract, LockContract, CounterContract, InputContract, MessageContract):
    """Everything that the application relies on."""
