"""How many examples a property is tried on: the tests of one folder decide nothing for those of another."""

from hypothesis import settings


def test_the_profile_is_that_of_all_tests() -> None:
    """A profile loaded in a sub-folder would be the whole run's: a property that needs other settings states them."""
    assert settings().max_examples == settings.get_profile("patient").max_examples
    assert settings().suppress_health_check == settings.get_profile("patient").suppress_health_check
