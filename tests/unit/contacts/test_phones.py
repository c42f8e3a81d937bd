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


@pytest.mark.parametrize(
    ("value", "region"),
    [("555-0123", "US"), ("7946 0958", "GB"), ("+1 5550123", None), ("+44 7946 0958", None), ("tel:5550123", "US")],
)
def test_a_local_number_without_its_area_code_is_refused(value: str, region: str | None) -> None:
    with pytest.raises(InvalidInput, match="^phone: .* has no area code; accepted: a number with its country code"):
        e164("phone", value, region)


@pytest.mark.parametrize("value", ["+44 20", "+44 20 7946 0958 1234", "+1 212 555 01234"])
def test_a_number_of_another_length_than_its_country_has_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="^phone: .* has too few or too many digits; accepted: "):
        e164("phone", value, None)


@pytest.mark.parametrize(
    ("value", "region", "number"),
    [("(212) 555-0123", "US", "+12125550123"), ("020 7946 0958", "GB", "+442079460958")],
)
def test_a_national_number_is_read_as_of_the_region(value: str, region: str, number: str) -> None:
    assert e164("phone", value, region) == number


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    with pytest.raises(MissingExtra, match=r"carrick\[contacts\]"):
        e164("phone", "+442079460958", None)
