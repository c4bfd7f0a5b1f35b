"""The catalogue of named mutants: what it may say, and that each mutant is applied to a copy, once, or is stale."""

import subprocess
import sys
from pathlib import Path

import pytest

from overflow.errors import InputError, UnavailableError
from overflow.gate.mutants import Mutant, load
from overflow.gate.trees import StaleError, copied, importing, locate, was_imported

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
        ('name = "control"', 'name = "con\\u001btrol"', "on a line"),
        ('find = "x"', 'find = ""', "'find'"),
        ('replace = ""', "", "'replace'"),
        ('replace = ""', 'replace = "x"', "by itself"),
        ('replace = ""', 'replace = ""\nwhy = "?"', "'why'"),
        (WHOLE, "\x00", "no TOML"),
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


def test_a_catalogue_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    """A missing file is told by its name."""
    with pytest.raises(InputError, match=r"none\.toml"):
        load(tmp_path / "none.toml", LAWS)


def package(folder: Path) -> Path:
    """A package `toy` with a text in it."""
    source = folder / "toy"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("VALUE = 1\nTWICE = 'a' 'a'\n", newline="")
    return source


def mutant(find: str, replace: str, file: str = "__init__.py") -> Mutant:
    return Mutant("m", "?", frozenset({"1"}), file, find, replace)


def test_a_mutant_changes_the_copy_alone(tmp_path: Path) -> None:
    """The copy differs by the mutant, the source by nothing, and the copy is gone afterwards."""
    source = package(tmp_path)
    before = (source / "__init__.py").read_bytes()
    with copied(source, mutant("VALUE = 1", "VALUE = 2")) as folder:
        changed = (folder / "toy" / "__init__.py").read_bytes()
        assert changed.startswith(b"VALUE = 2\nTWICE = 'a' 'a'\n")
    assert (source / "__init__.py").read_bytes() == before
    assert not folder.exists()


@pytest.mark.parametrize(
    ("stale", "said"),
    [
        (mutant("VALUE = 3", "VALUE = 2"), "not in"),
        (mutant("'a'", "'b'"), "2 times"),
        (mutant("VALUE", "V", "gone.py"), "no file"),
        (mutant("root", "r", "../../../../../../etc/passwd"), "no file"),
    ],
)
def test_a_text_that_is_not_there_once_is_stale(tmp_path: Path, stale: Mutant, said: str) -> None:
    """A mutant is applied where its text is there exactly once, inside the package, and nowhere else."""
    with pytest.raises(StaleError, match=said), copied(package(tmp_path), stale):
        pass


def test_the_copy_is_what_gets_imported(tmp_path: Path) -> None:
    """The interpreter under test finds the copy, in place of the source it found before."""
    source = package(tmp_path)
    assert locate(sys.executable, "toy", importing(tmp_path)) == source
    with copied(source, None) as folder:
        copy = folder / "toy"
        assert locate(sys.executable, "toy", importing(folder)) == copy
        assert not was_imported(copy)
        subprocess.run([sys.executable, "-P", "-c", "import toy"], env=importing(folder), check=True)
        assert was_imported(copy)
        with copied(copy, None) as another:
            assert not was_imported(another / "toy"), "a copy of a copy was not imported yet"


def test_a_single_module_is_copied_and_changed_as_a_package_is(tmp_path: Path) -> None:
    """Its file is named as it is called, beside nothing else."""
    (tmp_path / "single.py").write_text("LIMIT = 3\n")
    source = locate(sys.executable, "single", importing(tmp_path))
    assert source == tmp_path / "single.py"
    with copied(source, Mutant("m", "b", frozenset(), "single.py", "LIMIT = 3", "LIMIT = 4")) as folder:
        command = [sys.executable, "-P", "-c", "import single; print(single.LIMIT)"]
        assert subprocess.run(command, env=importing(folder), capture_output=True, check=True).stdout == b"4\n"
        assert was_imported(folder / "single.py")


def test_a_package_that_no_interpreter_finds_is_unavailable(tmp_path: Path) -> None:
    """A missing package, and a missing interpreter, are told as such."""
    with pytest.raises(InputError, match="no package or module 'no_such_package'"):
        locate(sys.executable, "no_such_package", importing(tmp_path))
    with pytest.raises(UnavailableError, match="cannot say"):
        locate(str(tmp_path / "python"), "toy", importing(tmp_path))
