from __future__ import annotations

import sys

import pytest

from carrick.contacts.phones import check_region, e164
from carrick.errors import InvalidInput, MissingExtra


def test_a_region_is_a_country_that_the_library_knows() -> None:
    assert check_region("GB") == "GB"
    with pytest.raises(InvalidInput, match="'XX' is unknown"):
        check_region("XX")


def test_an_italian_zero_is_kept() -> None:
    assert e164("phone", "+39 06 6982", None) == "+39066982"


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    with pytest.raises(MissingExtra, match=r"carrick\[contacts\]"):
        e164("phone", "+442079460958", None)
