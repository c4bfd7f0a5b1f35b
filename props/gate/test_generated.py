"""Kept results of generated mutants, the score, and reviewed equivalents; and one small tree taken from end to end."""

import json
import os
import select
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from overflow.errors import InputError, UnavailableError
from overflow.gate.generated import (
    Equivalent,
    ModuleResult,
    Survivor,
    digest,
    groundless,
    load_equivalents,
    load_results,
    save_results,
    scores,
    unexplained,
)
from overflow.gate.mutating import pieces, run_generated

ROOT = Path(__file__).parents[2]
DIFF = """--- overflow/toy/sums.py
+++ overflow/toy/sums.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a + b
+    return a - b"""
SURVIVOR = Survivor("overflow.toy.sums.x_add__mutmut_1", DIFF)
OTHER = Survivor("overflow.toy.sums.x_add__mutmut_2", DIFF.replace("a - b", "a * b"))
RESULT = ModuleResult(
    "toy/sums", "0" * 16, "2026-01-31", "abc", {"mutmut": "3"}, 1.5, 5, 2, 1, survivors=(SURVIVOR, OTHER)
)
EQUIVALENT = Equivalent(SURVIVOR.key, "toy/sums", "b is always 0")


def test_the_score_leaves_out_what_was_skipped_and_what_is_equivalent() -> None:
    """(killed + timed out) / (all - skipped - reviewed equivalents), of each package."""
    both = [RESULT, replace(RESULT, module="toy/more", survivors=()), replace(RESULT, module="last/one", killed=0)]
    toy, last = scores(both, {EQUIVALENT.key: EQUIVALENT})
    assert (toy.package, toy.all, toy.value) == ("toy", 18, (5 + 2 + 5 + 2) / (18 - 2 - 1))
    # The same lines in another module are another matter.
    assert (last.package, last.all, last.value) == ("last", 5, 2 / (5 - 1))
    assert scores([replace(RESULT, killed=0, timed_out=0, survivors=())], {})[0].value == 1.0


def test_a_survivor_passes_only_by_its_reason_and_a_reason_only_by_its_survivor() -> None:
    """What is not listed is unexplained; listed without a survivor in a module that was run: groundless."""
    gone = Equivalent("f" * 16, "toy/sums", "of a line that is no more")
    elsewhere = Equivalent("e" * 16, "toy/never_run", "of a module not run")
    listed = {each.key: each for each in (EQUIVALENT, gone, elsewhere)}
    assert unexplained([RESULT], listed) == [OTHER]
    assert groundless([RESULT], listed) == [gone]
    assert groundless([RESULT, replace(RESULT, module="toy/never_run")], listed) == [gone, elsewhere]


def test_a_key_is_of_the_lines_and_not_of_where_they_stand() -> None:
    """An edit further up moves a mutant and keeps its review; a change of its own lines, or its file, does not."""
    moved = Survivor("overflow.toy.sums.x_add__mutmut_7", DIFF.replace("@@ -1,2 +1,2 @@", "@@ -9,2 +9,2 @@"))
    assert moved.key == SURVIVOR.key
    assert len({SURVIVOR.key, OTHER.key, Survivor("x", DIFF.replace("toy", "other")).key}) == 3


def test_results_are_kept_as_data(tmp_path: Path) -> None:
    """What is loaded is what was saved, and the file says the score and each survivor's diff and key."""
    file = tmp_path / "generated.json"
    assert load_results(file) == {}
    save_results(file, [RESULT], {EQUIVALENT.key: EQUIVALENT})
    assert load_results(file) == {"toy/sums": RESULT}
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept["packages"][0]["score"] == 0.875
    assert kept["modules"][0]["survivors"][0] == {"name": SURVIVOR.name, "diff": DIFF, "key": SURVIVOR.key}
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"modules": [{"module": "a"}]}', '{"modules": [1]}'])
def test_a_file_that_holds_no_results_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    """Anything else than kept results is refused by its path."""
    file = tmp_path / "generated.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"generated\.json holds no results"):
        load_results(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[equivalent]]\nkey = 'a'\nmodule = 'm'\n", "equivalent 1 needs key, module, reason"),
        ("[[equivalent]]\nkey = 'a'\nmodule = 'm'\nreason = ' '\n", "equivalent 1 needs"),
        ("[[equivalent]]\nkey = 1\nmodule = 'm'\nreason = 'r'\n", "equivalent 1 needs"),
        ("[[equivalent]]\nkey = 'a'\nmodule = 'm'\nreason = 'r'\n" * 2, "two equivalents have the key 'a'"),
        ("equivalent = 3", "holds no list"),
        ("equivalent = [3]", "equivalent 1 needs"),
        ("nonsense", "is no TOML"),
        (None, "cannot read"),
    ],
)
def test_a_mistake_in_the_equivalents_is_told_in_one_line(tmp_path: Path, text: str | None, told: str) -> None:
    """An entry without a reason, two of one key, and a file that is none are refused."""
    file = tmp_path / "equivalents.toml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told) as raised:
        load_equivalents(file)
    assert "\n" not in str(raised.value)


def test_the_configuration_names_what_is_there() -> None:
    """Every module and test that this checkout's configuration names exists, and each package has its modules."""
    assert {piece.module for piece in pieces(ROOT)} >= {"division/core", "tokens/spec", "store/repair"}
    load_equivalents(ROOT / "mutation" / "equivalents.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[toy]\ntests = ['props/none']", "there is no props/none"),
        ("[toy]\ntests = ['props']\n[toy.first]\nnone = ['props']", "there is no module toy/none"),
        ("[none]\ntests = ['props']", "there is no package none"),
        ("[toy]", "toy needs tests"),
        ("nonsense", "is no TOML"),
        (None, "run it in a checkout"),
    ],
)
def test_a_mistake_in_the_configuration_is_told_in_one_line(tmp_path: Path, text: str | None, told: str) -> None:
    """A module, package or test that is not there, and a folder that is no checkout, are refused."""
    for folder in ("overflow/toy", "props", "mutation"):
        (tmp_path / folder).mkdir(parents=True)
    if text is not None:
        (tmp_path / "mutation" / "generated.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        pieces(tmp_path)


SUMS = """def add(a, b):
    return a + b


def is_small(a):
    return a < 3
"""
TESTS = """from overflow.toy.sums import add

def test_add():
    assert add(1, 2) == 3
"""
BETTER = (
    TESTS
    + """
from overflow.toy.sums import is_small

def test_is_small():
    assert [is_small(a) for a in (2, 3)] == [True, False]
"""
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with one module of two functions, of which the tests know one."""
    root = tmp_path / "tree"
    texts = {
        "overflow/__init__.py": "",
        "overflow/contract/__init__.py": "",
        "overflow/contract/plugin.py": "",
        "overflow/toy/__init__.py": "",
        "overflow/toy/sums.py": SUMS,
        "props/toy/test_sums.py": TESTS,
        "bench/README.md": "",
        "mutation/generated.toml": "[toy]\ntests = ['props/toy']\n",
        "mutation/equivalents.toml": "",
        "mutation/test_contract_in_short.py": "def test_nothing():\n    pass\n",
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n",
        "mutation/generated.json": '{"packages": [], "modules": []}\n',
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "mutation" / "under_mutation.py", root / "mutation")
    identity = ["-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    return root


def test_a_tree_from_end_to_end(tree: Path) -> None:
    """Untested mutants survive and are kept; a better test kills them later, and what was killed is not run again."""
    pytest.importorskip("mutmut")
    told: list[ModuleResult] = []
    run_generated(tree, [], told.append)
    first, second = told
    assert "dirty" not in first.commit + second.commit, "the results themselves are no change of the tree"
    assert first.killed >= 1
    assert {each.name.split(".")[-1].split("__mutmut")[0] for each in first.survivors} == {"x_is_small"}
    assert all(each.diff.startswith("--- overflow/toy/sums.py") for each in first.survivors)
    assert first.source == digest(SUMS.encode())
    assert not (tree / "mutants").exists()
    assert told[-1].survivors == first.survivors

    (tree / "props" / "toy" / "test_sums.py").write_text(BETTER, encoding="utf-8")
    told.clear()
    kept = run_generated(tree, ["toy/sums"], told.append).results["toy/sums"]
    assert len(told) == 1
    assert kept.survivors == ()
    assert kept.killed == first.killed + len(first.survivors)
    assert "dirty" in kept.commit

    told.clear()
    assert run_generated(tree, ["toy"], told.append).results["toy/sums"] == kept
    assert told == []
    with pytest.raises(InputError, match="no module or package 'other'; there are toy/sums"):
        run_generated(tree, ["other"], told.append)


def test_the_scores_follow_a_review(tree: Path) -> None:
    """When every survivor is explained nothing is run, and the file says the score that the review gives."""
    pytest.importorskip("mutmut")
    file = tree / "mutation" / "generated.json"
    save_results(file, [replace(RESULT, source=digest(SUMS.encode()), survivors=(SURVIVOR,))], {})
    assert json.loads(file.read_text(encoding="utf-8"))["packages"][0]["score"] == 0.875
    entry = f'[[equivalent]]\nkey = "{SURVIVOR.key}"\nmodule = "toy/sums"\nreason = "b is always 0"\n'
    (tree / "mutation" / "equivalents.toml").write_text(entry, encoding="utf-8")
    told: list[ModuleResult] = []
    run_generated(tree, [], told.append)
    assert told == []
    assert json.loads(file.read_text(encoding="utf-8"))["packages"][0]["score"] == 1.0


def test_what_is_reviewed_must_be_of_a_module_there_is(tree: Path) -> None:
    """A reason for a module that was renamed would explain nothing, and never be missed."""
    text = '[[equivalent]]\nkey = "0123456789abcdef"\nmodule = "toy/gone"\nreason = "r"\n'
    (tree / "mutation" / "equivalents.toml").write_text(text, encoding="utf-8")
    pytest.importorskip("mutmut")
    with pytest.raises(InputError, match="there is no module toy/gone"):
        run_generated(tree, [], lambda _: None)


def test_a_test_that_fails_unchanged_kills_nothing(tree: Path) -> None:
    """One that fails in the copy, whatever is mutated, says nothing of a mutant: the run stops, and says which."""
    pytest.importorskip("mutmut")
    (tree / "props" / "toy" / "test_elsewhere.py").write_text("def test_elsewhere():\n    open('README.md')\n")
    first = "[toy]\ntests = ['props/toy']\n[toy.first]\nsums = ['props/toy/test_sums.py']\n"
    (tree / "mutation" / "generated.toml").write_text(first, encoding="utf-8")
    with pytest.raises(UnavailableError, match=r"before anything is changed: .*test_elsewhere"):
        run_generated(tree, [], lambda _: None)


WAITING = """import os, time

def test_waits():
    with open(os.environ["TOLD"], "w") as pipe:
        pipe.write("waiting")
        pipe.flush()
        time.sleep(600)
"""


def test_a_run_that_is_terminated_leaves_no_process_behind(tree: Path, tmp_path: Path) -> None:
    """SIGTERM ends it as Ctrl-C does, and first mutmut and the tests that it runs."""
    pytest.importorskip("mutmut")
    (tree / "props" / "toy" / "test_sums.py").write_text(WAITING, encoding="utf-8")
    told = tmp_path / "told"
    os.mkfifo(told)
    command = [sys.executable, "-P", "-m", "overflow", "mutate", "--generated"]
    environment = {**os.environ, "TOLD": str(told)}
    run = subprocess.Popen(command, cwd=tree, env=environment, stderr=subprocess.PIPE, text=True)
    with run, told.open("rb", buffering=0) as pipe:
        assert pipe.read(7) == b"waiting"
        run.terminate()
        _, err = run.communicate(timeout=60)
        # The test holds the other end as long as it lives.
        ready, _, _ = select.select([pipe], [], [], 60)
        assert ready
        assert pipe.read(1) == b""
    assert run.returncode == 130, err
