"""The catalogue of named mutants: what it may say, and that every mistake in it is told in one line."""

from pathlib import Path

import pytest

from overflow.errors import InputError
from overflow.gate.mutants import Mutant, load

LAWS = ["1", "2", "swap"]
WHOLE = """
package = "toy"
[[mutant]]
name = "off-by-one"
breaks = "The last character is lost."
red = ["1", "swap"]
file = "store/a.py"
find = "end"
replace = "end - 1"
[[mutant]]
name = "control"
breaks = "Nothing."
red = []
file = "b.sql"
find = "x"
replace = ""
"""


def test_a_catalogue_is_read_as_it_is_written(tmp_path: Path) -> None:
    """Each table becomes one mutant, with its laws as a set."""
    (tmp_path / "m.toml").write_text(WHOLE)
    catalogue = load(tmp_path / "m.toml", LAWS)
    assert catalogue.package == "toy"
    assert catalogue.mutants == (
        Mutant("off-by-one", "The last character is lost.", frozenset({"1", "swap"}), "store/a.py", "end", "end - 1"),
        Mutant("control", "Nothing.", frozenset(), "b.sql", "x", ""),
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('package = "toy"', "", "package"),
        ('package = "toy"', 'package = "a b"', "package"),
        ('package = "toy"', 'package = "toy"\nextra = 1', "nothing else"),
        ("[[mutant]]", "[mutants]", "no TOML"),
        ('name = "control"', 'name = "off-by-one"', "two mutants"),
        ('name = "control"', 'name = "no-limit"', "a saboteur"),
        ('breaks = "Nothing."', 'breaks = " "', "'breaks'"),
        ('breaks = "Nothing."', "breaks = 3", "'breaks'"),
        ("red = []", 'red = ["7"]', "'7'"),
        ("red = []", 'red = "1"', "red"),
        ("red = []", "", "red"),
        ("red = []", 'red = ["1"]\ntitles = "x"', "titles"),
        ("red = []", 'red = ["1"]\ntitles = [1]', "titles"),
        ("red = []", 'red = []\ntitles = ["x"]', "titles"),
        ('name = "control"', 'name = "con\\u001btrol"', "printable"),
        ('name = "control"', 'name = "list"', "list"),
        (WHOLE, "x = " + "[" * 5000 + "]" * 5000, "no TOML"),
        ('find = "x"', 'find = ""', "'find'"),
        ('replace = ""', "", "'replace'"),
        ('replace = ""', 'replace = "x"', "by itself"),
        ('replace = ""', 'replace = ""\nwhy = "?"', "'why'"),
        (WHOLE, "\x00", "no TOML"),
        ('file = "b.sql"', 'file = "b\\u0000.sql"', "NUL"),
    ],
)
def test_a_mistake_in_a_catalogue_is_told_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Whatever is wrong, the message names the file and the thing."""
    assert old in WHOLE
    path = tmp_path / "m.toml"
    path.write_text(WHOLE.replace(old, new))
    with pytest.raises(InputError) as raised:
        load(path, LAWS)
    assert str(path) in str(raised.value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_catalogue_that_is_no_utf_8_is_told_in_one_line(tmp_path: Path) -> None:
    """A comment in Latin-1 is no TOML."""
    path = tmp_path / "m.toml"
    path.write_text(WHOLE + "# caf\xe9\n", encoding="latin-1")
    with pytest.raises(InputError, match=r"m\.toml is no TOML"):
        load(path, LAWS)


def test_a_catalogue_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    """A missing file is told by its name."""
    with pytest.raises(InputError, match=r"none\.toml"):
        load(tmp_path / "none.toml", LAWS)
