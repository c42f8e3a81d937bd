"""The world as it begins: made-up groups in made-up places, with every kind of section, term and right.

Terms lie around the day it is made for, so a demo always has sections in a term, between terms and in two terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from carrick_osmsim.clock import ClockState
from carrick_osmsim.world import App, Level, Member, Patrol, Section, Term, User, World

PASSWORD = "campfire"  # noqa: S105 - everybody's, and shown on the sign-in page
DEMO_APP = "carrick-demo"
DEMO_SECRET = "not-a-secret"  # noqa: S105 - of an application that exists in the simulator only

# fmt: off
FIRST_NAMES = (
    "Alder", "Bramble", "Clover", "Dandelion", "Elowen", "Finch", "Gorse", "Heather", "Iris", "Juniper", "Kestrel",
    "Linden", "Marigold", "Nettle", "Oakley", "Peregrine", "Quince", "Rowan", "Sorrel", "Teasel", "Umber", "Violet",
    "Wren", "Yarrow",
)
# fmt: on
# fmt: off
LAST_NAMES = (
    "Applecart", "Bellweather", "Candlewick", "Dewpond", "Eaglestone", "Feathergale", "Goosefoot", "Hollowell",
    "Inkpot", "Jollybody", "Kettlewood", "Lamplighter", "Mossman", "Nightjar", "Otterbank", "Puddlecote",
    "Quillfeather", "Rushlight", "Snowdrop", "Thistlewood", "Underhill", "Wayfarer",
)
# fmt: on

ASHMERE = (7101, "1st Ashmere-on-the-Wold")
QUILLBECK = (7102, "2nd Lower Quillbeck Sea Scouts")
WENDLE = (7103, "Port Wendle District")
AREAS = (
    "administration",
    "attendance",
    "badge",
    "event",
    "finance",
    "flexirecord",
    "member",
    "programme",
    "quartermaster",
)
"""What scopes can be about."""


def seeded(today: date, clock: ClockState | None = None) -> World:
    """A new world for that day; the same one each time."""
    sections = _sections(today)
    return World(
        users={user.user_id: user for user in _users()},
        sections={section.section_id: section for section in sections},
        apps={app.client_id: app for app in _apps()},
        clock=clock or ClockState(),
        serial=1000,
    )


def _sections(today: date) -> list[Section]:
    return [
        _section(40101, "Acorn Squirrels", "squirrels", ASHMERE, _in_term(today, 50101), []),
        _section(
            40102,
            "Kingfisher Beavers",
            "beavers",
            ASHMERE,
            _in_term(today, 50201),
            [(61001, "Amber Lodge", 12), (61002, "Blue Lodge", 9), (61003, "Green Lodge", 15)],
        ),
        _section(
            40103,
            "Oakwood Cubs",
            "cubs",
            ASHMERE,
            _in_term(today, 50301),
            [(62001, "Badger Six", 21), (62002, "Fox Six", 18), (62003, "Hedgehog Six", 25), (62004, "Stoat Six", 7)],
        ),
        _section(
            40104,
            "Wold Scouts",
            "scouts",
            ASHMERE,
            _in_term(today, 50401),
            [(72699, "Eagles", 32), (72700, "Lions", 30), (132322, "Wolves", 47)],
            empty=[(175221, "Snr Patrol Leader", 0)],
        ),
        _section(
            40201,
            "Quillbeck Cubs",
            "cubs",
            QUILLBECK,
            _in_two_terms(today, 50501),
            [(63001, "Red Six", 40), (63002, "White Six", 38)],
        ),
        _section(
            40202,
            "Tidewater Scouts",
            "scouts",
            QUILLBECK,
            _in_term(today, 50601),
            [
                (72699, "Herons", 5),
                (64002, "Curlews", -3),
                (64003, "Ospreys & Terns", 104),
                (64004, "O'Malley's Gulls", 0),
                (64005, "Môr-wenoliaid", 1250),
                (64006, "Cormorants of the Outer Harbour Wall", 66),
            ],
        ),
        _section(
            40301,
            "Lantern Explorers",
            "explorers",
            WENDLE,
            _between_terms(today, 50701),
            [(65001, "Beacon", 10), (65002, "Compass", 20)],
        ),
        _section(40302, "Harbour Explorers", "explorers", WENDLE, [], [(66001, "Anchor", 3)]),
    ]


def _section(
    number: int,
    name: str,
    kind: str,
    group: tuple[int, str],
    terms: list[Term],
    patrols: Sequence[tuple[int, str, int]],
    empty: Sequence[tuple[int, str, int]] = (),
) -> Section:
    return Section(
        section_id=number,
        section_name=name,
        section_type=kind,
        group_id=group[0],
        group_name=group[1],
        terms=terms,
        patrols=[Patrol(*patrol) for patrol in (*patrols, *empty)],
        members=_members(number, kind, [patrol[0] for patrol in patrols]),
    )


def _members(section_id: int, kind: str, patrol_ids: Sequence[int]) -> list[Member]:
    """Four in each patrol, the first two leading it, and two in none."""
    age = {"squirrels": 4, "beavers": 6, "cubs": 8, "scouts": 11, "explorers": 14}[kind]
    places = [(patrol_id, role) for patrol_id in patrol_ids for role in (2, 1, 0, 0)] + [(0, 0), (0, 0)]
    first = section_id * 37
    return [
        Member(
            scout_id=section_id * 100 + number,
            firstname=FIRST_NAMES[(first + number) % len(FIRST_NAMES)],
            lastname=LAST_NAMES[(first + number * 5) % len(LAST_NAMES)],
            patrol_id=patrol_id,
            role=role,
            years=age + number % 3,
            months=number * 7 % 12,
        )
        for number, (patrol_id, role) in enumerate(places)
    ]


def _in_term(today: date, first_id: int) -> list[Term]:
    return [
        _term(today, first_id, -150, -50),
        _term(today, first_id + 1, -40, 50),
        _term(today, first_id + 2, 60, 150),
    ]


def _in_two_terms(today: date, first_id: int) -> list[Term]:
    """The day is the last of one term and the first of the next."""
    return [_term(today, first_id, -100, 0), _term(today, first_id + 1, 0, 90)]


def _between_terms(today: date, first_id: int) -> list[Term]:
    return [_term(today, first_id, -110, -10), _term(today, first_id + 1, 12, 100)]


def _term(today: date, term_id: int, begins: int, ends: int) -> Term:
    first, last = today + timedelta(days=begins), today + timedelta(days=ends)
    return Term(term_id, term_name(first), first.isoformat(), last.isoformat())


def term_name(first: date) -> str:
    """How a term that begins on that day is called."""
    season = "Spring" if first.month <= 3 else "Summer" if first.month <= 8 else "Autumn"
    return f"{season} {first.year}"


def _users() -> list[User]:
    return [
        person(100001, "Robin Merriweather", "Leads the Wold Scouts and helps the Oakwood Cubs", write=(40104, 40103)),
        person(100002, "Hazel Fernsby", "Second leader of the Wold Scouts, leads the Beavers", write=(40104, 40102)),
        person(100003, "Jasper Quill", "Helper: may look at scouts and cubs, not change them", read=(40104, 40103)),
        person(100004, "Willow Tidewell", "Leads cubs and scouts at Lower Quillbeck", write=(40201, 40202)),
        person(100005, "Ash Lanternby", "Explorer leader: between terms, or without any", write=(40301, 40302)),
        person(
            100006,
            "Olive Underhill",
            "District volunteer: most sections, and the explorers to look at",
            write=(40101, 40102, 40103, 40104, 40201, 40202),
            read=(40301,),
        ),
        person(100007, "Perry Nightjar", "A parent: no section at all"),
    ]


def person(user_id: int, name: str, about: str, write: Sequence[int] = (), read: Sequence[int] = ()) -> User:
    """Somebody who can sign in, with the same right in every area of a section."""
    first, _, last = name.lower().partition(" ")
    return User(
        user_id=user_id,
        full_name=name,
        email=f"{first}.{last}@ashmere.example",
        password=PASSWORD,
        about=about,
        rights={**{number: rights("write") for number in write}, **{number: rights("read") for number in read}},
    )


def rights(level: Level) -> dict[str, Level]:
    """The same level in every area."""
    return dict.fromkeys(AREAS, level)


def _apps() -> list[App]:
    callbacks = [
        f"http://{host}:{port}{path}"
        for host in ("localhost", "127.0.0.1")
        for port in (8080, 8000)
        for path in ("/admin/callback", "/oauth/callback")
    ]
    return [
        App(DEMO_APP, DEMO_SECRET, "Carrick scoreboard (demo)", callbacks),
        App("campsite-finder", "another-secret", "Campsite Finder", ["https://campsites.example/callback"]),
    ]
