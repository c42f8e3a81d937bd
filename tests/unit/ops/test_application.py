from __future__ import annotations

import sys
from pathlib import Path
from uuid import uuid4

import pytest

from carrick import wiring
from carrick.errors import InvalidInput
from carrick.ops.application import load_outbox


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory that is not on the path of modules yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    wiring.migrate("sqlite:///shop.db")
    return tmp_path


def module(here: Path, text: str) -> str:
    """A module with that text, of a name that was never imported."""
    name = f"shop_{uuid4().hex[:8]}"
    (here / f"{name}.py").write_text(f"from carrick import Outbox\n{text}\n")
    return name


CONNECT = 'Outbox.connect("sqlite:///shop.db")'


def test_the_only_outbox_of_a_module_is_found_from_the_working_directory(here: Path) -> None:
    name = module(here, f"outbox = {CONNECT}\n@outbox.handler('mail')\ndef send(batch): ...")
    with load_outbox(name) as outbox:
        assert list(outbox.handlers) == ["mail"]


def test_an_outbox_with_two_names_is_one(here: Path) -> None:
    with load_outbox(module(here, f"outbox = same = {CONNECT}")) as outbox:
        assert outbox.handlers == {}


def test_a_named_attribute_is_taken(here: Path) -> None:
    name = module(here, f"one = {CONNECT}\nother = {CONNECT}\nother.handler('mail')(print)")
    with load_outbox(f"{name}:other") as outbox:
        assert list(outbox.handlers) == ["mail"]


@pytest.mark.parametrize(
    ("text", "target", "problem"),
    [
        ("", "no_such_shop", "there is no module 'no_such_shop'"),
        ("", "no_such_shop.jobs", "there is no module 'no_such_shop'"),
        ("", "{name}.jobs", "there is no module '{name}.jobs'"),
        ("", "not a module", "'not a module' is not the name of a module"),
        ("", "../shop", "'../shop' is not the name of a module"),
        ("", "", "'' is not the name of a module"),
        ("\n1 / 0", "{name}", "importing {name} failed with ZeroDivisionError: division by zero"),
        ("import no_such_thing", "{name}", "importing {name} failed with ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "{name}", "importing {name} failed with SystemExit: 3"),
        ("", "{name}", "{name} has no Outbox"),
        ("x = 1", "{name}:x", "{name}:x is a int, not an Outbox"),
        ("", "{name}:y", "{name} has no 'y'"),
        (f"a = {CONNECT}\nb = {CONNECT}", "{name}", r"{name} has several Outboxes (a, b); name one"),
    ],
)
def test_what_cannot_be_loaded_is_told_in_one_line(here: Path, text: str, target: str, problem: str) -> None:
    name = module(here, text)
    with pytest.raises(InvalidInput) as caught:
        load_outbox(target.format(name=name))
    assert str(caught.value).startswith(f"app: {problem.format(name=name)}")
    assert "\n" not in str(caught.value)


def test_an_error_while_importing_is_told_with_its_place(here: Path) -> None:
    name = module(here, "\n1 / 0")
    with pytest.raises(InvalidInput, match=rf"{name}\.py, line 3\)"):
        load_outbox(name)
