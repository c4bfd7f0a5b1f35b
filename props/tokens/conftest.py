"""Real texts for the tests of tokenizers: the standard library's documentation."""

import pydoc_data.topics

import pytest


@pytest.fixture(scope="session")
def topics() -> list[str]:
    """The standard library's documentation topics, English prose of 1 to 60 thousand characters."""
    return sorted(pydoc_data.topics.topics.values(), key=len)
