"""Copies of a package: each mutant is applied to one, once, or is stale; and a copy tells when it is imported."""

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from overflow.errors import InputError, UnavailableError
from overflow.gate import trees
from overflow.gate.mutants import Mutant
from overflow.gate.trees import StaleError, copied, importing, locate, was_imported


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
        (mutant("'a'", "'b'"), "more than once"),
        (mutant("' '", "x", "overlapping.txt"), "more than once"),
        (mutant("root", "r", "a" * 5_000), "no file"),
        (mutant("VALUE", "V", "gone.py"), "no file"),
        (mutant("root", "r", "../../../../../../etc/passwd"), "no file"),
        (mutant("a", "b", "latin.txt"), "latin.txt cannot be read"),
        (mutant("X", "\u3042", "declared.py"), "declared.py cannot be read, or changed"),
        (mutant("a", "b", "unknown.py"), "unknown.py cannot be read"),
        (mutant("a", "b", "rotated.py"), "rotated.py cannot be read"),
    ],
)
def test_a_text_that_is_not_there_once_is_stale(tmp_path: Path, stale: Mutant, said: str) -> None:
    """A mutant is applied where its text is there exactly once, inside the package, in the file's own encoding."""
    source = package(tmp_path)
    (source / "overlapping.txt").write_text("' ' '")
    (source / "latin.txt").write_bytes(b"a \xe9")
    (source / "declared.py").write_bytes(b"# coding: latin-1\nX = 'a\xe9'\n")
    (source / "unknown.py").write_bytes(b"# coding: none-such\na = 1\n")
    (source / "rotated.py").write_bytes(b"# coding: rot13\na = 1\n")
    with pytest.raises(StaleError, match=said), copied(source, stale):
        pass


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("# coding: latin-1\nVALUE = 'é1'\n", "latin-1"),
        ("# coding: shift_jis\nVALUE = 'あ1'\n", "shift_jis"),
        ("# coding: utf-7\nVALUE = 'あ1'\n", "utf-7"),
        ("VALUE = 'é1'\n", "utf-8-sig"),
        ("VALUE = 'é1'\n", "utf-8"),
    ],
)
def test_a_mutant_is_applied_in_the_encoding_of_its_file(tmp_path: Path, text: str, encoding: str) -> None:
    """As Python reads it: by its byte order mark, by what it declares (PEP 263), and as UTF-8 else."""
    source = tmp_path / "toy.py"
    source.write_bytes(text.encode(encoding))
    with copied(source, mutant("1'", "2'", "toy.py")) as folder:
        command = [sys.executable, "-P", "-c", "import toy; print(ascii(toy.VALUE))"]
        printed = subprocess.run(command, env=importing(folder), capture_output=True, check=True).stdout
        assert printed.decode().strip() == ascii(text.split("'")[1].replace("1", "2"))
        assert was_imported(folder / "toy.py")


@pytest.mark.parametrize(
    "text",
    [
        "def open(*arguments):\n    raise ValueError\n",
        "import builtins\nbuiltins.open = None\n",
        "import builtins\nstr = bytes = __import__ = None\ndel builtins.open\n",
        "del __file__\n",
        "__file__ = '/none/such'\n",
        "__file__ = None",
        "from __future__ import annotations",
        "x = 1  # a comment that ends in \\",
        "if True:\n    pass",
        "\f",
        "",
        "globals().clear()\n",
    ],
)
def test_a_copy_is_told_to_be_imported_whatever_it_does(tmp_path: Path, text: str) -> None:
    """What a package defines, changes or deletes is its own; and so is how its text ends."""
    source = package(tmp_path)
    (source / "__init__.py").write_text(text, newline="")
    names = "print(sorted(set(vars(toy)) - {'annotations'}))" if "__future__" in text else "print(sorted(vars(toy)))"
    command = [sys.executable, "-P", "-c", f"import toy; {names}"]
    before = subprocess.run(command, env=importing(tmp_path), capture_output=True, check=True).stdout
    with copied(source, None) as folder:
        assert not was_imported(folder / "toy")
        assert subprocess.run(command, env=importing(folder), capture_output=True, check=True).stdout == before
        assert was_imported(folder / "toy")


def test_a_folder_with_any_name_holds_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path is in the copy, where no quote, line break or letter may end or change what is said there."""
    odd = tmp_path / "a 'b' \"c\" \\ + {d}\n\u3042"
    odd.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(odd))
    with copied(package(tmp_path), None) as folder:
        assert folder.parent == odd
        subprocess.run([sys.executable, "-P", "-c", "import toy"], env=importing(folder), check=True)
        assert was_imported(folder / "toy")


def test_no_room_for_a_copy_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for temporary files that is not there is an input error."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(InputError, match="set TMPDIR to a folder with room"), copied(package(tmp_path), None):
        pass


def test_what_was_compiled_does_not_hide_a_mutant(tmp_path: Path) -> None:
    """A compiled file may say that nobody compares it with its source (PEP 552): of a mutated file it is gone."""
    source = package(tmp_path)
    (source / "part.py").write_text("PART = 1\n")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for name in ("__init__.py", "part.py"):
        py_compile.compile(str(source / name), invalidation_mode=mode)
    with copied(source, mutant("1", "2", "part.py")) as folder:
        command = [sys.executable, "-P", "-c", "from toy.part import PART; print(PART)"]
        ran = subprocess.run(command, env=importing(folder), capture_output=True, text=True, check=True)
        assert ran.stdout == "2\n"
        assert was_imported(folder / "toy")


def test_a_folder_that_no_path_of_imports_can_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONPATH parts folders by a colon: a copy under such a name would never be found."""
    odd = tmp_path / f"a{os.pathsep}b"
    odd.mkdir()
    source = package(tmp_path)
    monkeypatch.setattr(trees.tempfile, "tempdir", str(odd))
    with pytest.raises(InputError, match="set TMPDIR to one without"), copied(source, None):
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


def program(folder: Path, text: str) -> str:
    """A shell script, in place of an interpreter."""
    file = folder / "program"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_a_program_that_reads_its_input_is_not_waited_for(tmp_path: Path) -> None:
    """It reads the end of it at once, whatever this process reads itself."""
    told = tmp_path / "told"
    named = program(tmp_path, f"cat > {told}; echo read >> {told}; exit 3")
    asking = (
        "import os\nfrom overflow.gate.trees import locate\nfrom overflow.errors import UnavailableError\n"
        f"try:\n    locate({named!r}, 'toy', os.environ)\nexcept UnavailableError as error:\n    print(error)"
    )
    process = subprocess.Popen([sys.executable, "-c", asking], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line == f"{named} cannot say where the package 'toy' lies: exit code 3\n"
        assert told.read_text() == "read\n"


def test_a_program_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked where a package lies may be no interpreter at all, and may leave others behind."""
    monkeypatch.setattr(trees, "_ASKING", 0.5)
    with pytest.raises(UnavailableError, match="cannot say where the package 'toy' lies: no end within"):
        locate(program(tmp_path, "sleep 600 & wait"), "toy", os.environ)


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_that_writes_no_utf_8_is_told_in_one_line(tmp_path: Path, code: int) -> None:
    """Its last line is shown as far as it is text; nothing of it is a place to import from."""
    named = program(tmp_path, f"printf '\\377\\n\\376'; printf '\\376 no' >&2; exit {code}")
    with pytest.raises((UnavailableError, InputError), match="\ufffd no" if code else "finds no package") as raised:
        locate(named, "toy", os.environ)
    assert "\n" not in str(raised.value)


def test_what_an_interpreter_prints_when_it_starts_is_no_place(tmp_path: Path) -> None:
    """A `sitecustomize` may greet; the place is the last line."""
    source = package(tmp_path)
    (tmp_path / "sitecustomize.py").write_text("print('hello')\n")
    assert locate(sys.executable, "toy", importing(tmp_path)) == source
