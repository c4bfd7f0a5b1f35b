"""Kept results of generated mutants, the score, and reviewed equivalents; and one small tree taken from end to end."""

import fcntl
import importlib.metadata
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from overflow.cli.generated import generated
from overflow.errors import InputError, UnavailableError
from overflow.gate import workspace as workspaces
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
from overflow.gate.mutating import Generated, run_generated
from overflow.gate.pieces import Piece, pieces
from overflow.gate.workspace import KILLED, SKIPPED, TIMED_OUT, Workspace, fresh_workspace

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
    "toy/sums", "0" * 16, "1" * 16, "2026-01-31", "abc", {"mutmut": "3"}, 1.5, 5, 2, 1, survivors=(SURVIVOR, OTHER)
)
TOY = Piece("toy/sums", ("props/toy",), ("props/toy",))
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


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"modules": [{"module": "a"}]}', '{"modules": [1]}', "[" * 100_000, "\xff"]
)
def test_a_file_that_holds_no_results_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    """Anything else than kept results is refused by its path."""
    file = tmp_path / "generated.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"generated\.json holds no results"):
        load_results(file)


@pytest.mark.parametrize(
    "odd",
    [
        {"killed": "x"},
        {"killed": -5},
        {"killed": True},
        {"skipped": 1.5},
        {"timed_out": None},
        {"seconds": "1"},
        {"seconds": float("nan")},
        {"seconds": 10**400},
        {"module": ["a"]},
        {"module": "\ud800"},
        {"source": 1},
        {"tests": 1},
        {"date": None},
        {"versions": []},
        {"versions": {"mutmut": 3}},
        {"survivors": [{"name": "a", "diff": 1}]},
        {"survivors": ["a"]},
        {"survivors": 3},
        {"more": 1},
    ],
)
def test_a_result_that_no_run_keeps_is_refused(tmp_path: Path, odd: dict[str, object]) -> None:
    """A count is a whole number from 0, and a text is one that can be written: a score is made of nothing else."""
    file = tmp_path / "generated.json"
    save_results(file, [RESULT], {})
    kept = json.loads(file.read_text(encoding="utf-8"))
    kept["modules"][0] |= odd
    file.write_text(json.dumps(kept), encoding="utf-8")
    with pytest.raises(InputError, match=r"generated\.json holds no results"):
        load_results(file)


def test_results_that_cannot_be_kept_are_told_in_one_line(tmp_path: Path) -> None:
    """A folder where the file is written first, too, is told, and what was kept stays."""
    file = tmp_path / "generated.json"
    save_results(file, [RESULT], {})
    (tmp_path / "generated.partial").mkdir()
    with pytest.raises(InputError, match=r"cannot keep the results in .*generated\.json: generated\.partial") as raised:
        save_results(file, [], {})
    assert "\n" not in str(raised.value)
    assert load_results(file) == {"toy/sums": RESULT}


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
        ("toy = 1", "toy needs tests"),
        ("[toy]\ntests = [1]", "toy needs tests = "),
        ("[toy]\ntests = 'props'", "toy needs tests = "),
        ("[toy]\ntests = []", "toy needs tests = "),
        ("[toy]\ntests = ['props']\nfirst = 3", "toy needs tests = .* no more"),
        ("[toy]\ntests = ['props']\nlast = []", "toy needs tests = .* no more"),
        ("[toy]\ntests = ['props']\n[toy.first]\nsums = 'props'", "toy needs sums = "),
        ("[toy]\ntests = ['props']\n[toy.first]\nsums = [1]", "toy needs sums = "),
        ("[toy]\ntests = ['props']\n[toy.first]\nsums = []", "toy needs sums = "),
        ("[toy]\ntests = ['..']", r"there is no \.\."),
        ('[toy]\ntests = ["props\\u0000"]', "there is no props"),
        ('[""]\ntests = ["props"]', "there is no package"),
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
    with pytest.raises(InputError, match=told) as raised:
        pieces(tmp_path)
    assert "\n" not in str(raised.value)


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


def run(tree: Path, names: list[str]) -> tuple[Generated, list[ModuleResult], list[ModuleResult]]:
    """What is kept after a run, what it told as each piece ended, and the results that it found stale."""
    pytest.importorskip("mutmut")
    told: list[ModuleResult] = []
    stale: list[ModuleResult] = []
    return run_generated(tree, names, told.append, stale.append), told, stale


def kept_by(tree: Path, *survivors: Survivor) -> ModuleResult:
    """A result that is of the present text and tests of `toy/sums`."""
    return replace(RESULT, source=TOY.source(tree), tests=TOY.rests_on(tree), survivors=survivors)


def test_a_tree_from_end_to_end(tree: Path) -> None:
    """Untested mutants survive and are kept; other tests make the result stale; one that is fresh is not run again."""
    _, (first, second), stale = run(tree, [])
    assert stale == []
    assert "dirty" not in first.commit + second.commit, "the results themselves are no change of the tree"
    assert first.killed >= 1
    assert {each.name.split(".")[-1].split("__mutmut")[0] for each in first.survivors} == {"x_is_small"}
    assert all(each.diff.startswith("--- overflow/toy/sums.py") for each in first.survivors)
    assert first.source == digest(SUMS.encode())
    assert not (tree / "mutants").exists()
    assert second.survivors == first.survivors

    (tree / "props" / "toy" / "test_sums.py").write_text(BETTER, encoding="utf-8")
    found, told, stale = run(tree, ["toy/sums"])
    kept = found.results["toy/sums"]
    assert (told, stale, found.stale) == ([kept], [second], [])
    assert kept.survivors == ()
    assert kept.killed == first.killed + len(first.survivors)
    assert "dirty" in kept.commit

    found, told, stale = run(tree, ["toy"])
    assert (found.results["toy/sums"], told, stale) == (kept, [], [])
    with pytest.raises(InputError, match="no module or package 'other'; there are toy/sums"):
        run(tree, ["other"])


def test_the_scores_follow_a_review(tree: Path) -> None:
    """When every survivor is explained nothing is run, and the file says the score that the review gives."""
    file = tree / "mutation" / "generated.json"
    save_results(file, [kept_by(tree, SURVIVOR)], {})
    assert json.loads(file.read_text(encoding="utf-8"))["packages"][0]["score"] == 0.875
    entry = f'[[equivalent]]\nkey = "{SURVIVOR.key}"\nmodule = "toy/sums"\nreason = "b is always 0"\n'
    (tree / "mutation" / "equivalents.toml").write_text(entry, encoding="utf-8")
    assert run(tree, [])[1] == []
    assert json.loads(file.read_text(encoding="utf-8"))["packages"][0]["score"] == 1.0


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("overflow/toy/sums.py", True),
        ("props/toy/test_sums.py", True),
        ("props/toy/test_new.py", True),
        ("props/toy/helper.py", True),
        ("props/conftest.py", True),
        ("props/helper.py", True),
        ("mutation/under_mutation.py", True),
        ("mutation/test_contract_in_short.py", True),
        ("props/test_pages.py", False),
        ("props/other/test_other.py", False),
        ("props/other/conftest.py", False),
        ("mutation/equivalents.toml", False),
        ("README.md", False),
    ],
)
def test_a_result_is_of_the_text_and_of_the_tests_that_it_met(tree: Path, file: str, counts: bool) -> None:
    """A change of either makes it stale, also where a test is new; one of another package's tests does not."""
    kept = kept_by(tree)
    assert TOY.is_fresh(kept, tree)
    (tree / file).parent.mkdir(exist_ok=True)
    with (tree / file).open("a", encoding="utf-8") as changed:
        changed.write("# more\n")
    assert TOY.is_fresh(kept, tree) is not counts


def test_a_test_that_is_gone_makes_a_result_stale(tree: Path) -> None:
    """What it killed may survive now."""
    kept = kept_by(tree)
    (tree / "props" / "toy" / "test_sums.py").unlink()
    assert not TOY.is_fresh(kept, tree)


@pytest.mark.parametrize("tool", ["mutmut", "pytest", "hypothesis"])
def test_a_result_is_of_the_tools_that_made_it(tree: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    """Another version of one of them thinks of other mutants, or draws other examples."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{name} 1")
    kept = kept_by(tree)
    assert TOY.is_fresh(kept, tree)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{name} {1 + (name == tool)}")
    assert not TOY.is_fresh(kept, tree)


def test_a_result_that_does_not_say_its_tests_is_stale(tree: Path) -> None:
    """It is read, and shown, and run again."""
    file = tree / "mutation" / "generated.json"
    save_results(file, [kept_by(tree)], {})
    file.write_text(file.read_text(encoding="utf-8").replace('"tests"', '"source"'), encoding="utf-8")
    assert not TOY.is_fresh(load_results(file)["toy/sums"], tree)


def test_what_stays_stale_is_said(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result that was not asked for is kept as it is, and told apart, beside the JSON."""
    (tree / "overflow" / "toy" / "more.py").write_text("LIMIT = 3\n", encoding="utf-8")
    more = replace(TOY, module="toy/more")
    fresh = replace(kept_by(tree), module="toy/more", source=more.source(tree))
    stale = replace(RESULT, survivors=())
    save_results(tree / "mutation" / "generated.json", [fresh, stale], {})
    found, told, again = run(tree, ["toy/more"])
    assert (found.stale, told, again) == ([stale], [], [])
    monkeypatch.chdir(tree)
    assert generated(["toy/more"], "-") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["survivors"] == []
    assert err.startswith("toy/sums: stale, ")
    assert "2026-01-31" in err


def test_what_is_reviewed_must_be_of_a_module_there_is(tree: Path) -> None:
    """A reason for a module that was renamed would explain nothing, and never be missed."""
    text = '[[equivalent]]\nkey = "0123456789abcdef"\nmodule = "toy/gone"\nreason = "r"\n'
    (tree / "mutation" / "equivalents.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="there is no module toy/gone"):
        run(tree, [])


def test_a_test_that_fails_unchanged_kills_nothing(tree: Path) -> None:
    """One that fails in the copy, whatever is mutated, says nothing of a mutant: the run stops, and says which."""
    (tree / "props" / "toy" / "test_elsewhere.py").write_text("def test_elsewhere():\n    open('README.md')\n")
    first = "[toy]\ntests = ['props/toy']\n[toy.first]\nsums = ['props/toy/test_sums.py']\n"
    (tree / "mutation" / "generated.toml").write_text(first, encoding="utf-8")
    with pytest.raises(UnavailableError, match=r"before anything is changed: .*test_elsewhere"):
        run(tree, [])


def test_two_runs_do_not_keep_results_side_by_side(tree: Path) -> None:
    """The second is told so in a line, and begins nothing."""
    lock = os.open(tree / "mutation", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match=r"another run keeps its results in .*mutation; wait until it ends"):
            run(tree, [])
    finally:
        os.close(lock)
    save_results(tree / "mutation" / "generated.json", [kept_by(tree)], {})
    assert run(tree, [])[1] == [], "the lock ends with its owner"


def test_a_checkout_that_lacks_a_folder_is_told_in_one_line(tree: Path) -> None:
    """What the tests need is copied whole, or nothing is run."""
    shutil.rmtree(tree / "bench")
    with pytest.raises(InputError, match=r"cannot copy the checkout .*bench") as raised:
        run(tree, [])
    assert "\n" not in str(raised.value)


def test_a_tree_without_a_commit_is_told_in_one_line(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result says which commit it is of; what cannot say it makes none: no checkout, or no git."""
    shutil.rmtree(tree / ".git")
    with pytest.raises(InputError, match="is no git checkout with a commit") as raised:
        run(tree, [])
    assert "\n" not in str(raised.value)
    monkeypatch.setenv("PATH", str(tree))
    with pytest.raises(UnavailableError, match="git does not start"):
        run(tree, [])


FAILING, INTERRUPTED, HANGING = (
    f"overflow.toy.sums.x_{end}" for end in ("is_small__mutmut_1", "is_small__mutmut_2", "add__mutmut_1")
)
#: A package and a contract that do something else under a mutant, before a test begins.
PACKAGE = f"""import os

while os.environ.get("MUTANT_UNDER_TEST") == "{HANGING}":
    pass
"""
CONTRACT = f"""import os

if os.environ["MUTANT_UNDER_TEST"] == "{FAILING}":
    raise ValueError
if os.environ["MUTANT_UNDER_TEST"] == "{INTERRUPTED}":
    raise KeyboardInterrupt

def test_nothing():
    pass
"""


def test_what_becomes_of_tests_that_do_not_begin(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that cannot be collected under a mutant have noticed it, an interruption has not, and a hang times out."""
    pytest.importorskip("mutmut")
    (tree / "overflow" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (tree / "mutation" / "test_contract_in_short.py").write_text(CONTRACT, encoding="utf-8")
    with fresh_workspace(tree, TOY) as workspace:
        assert workspace.mutmut([FAILING, INTERRUPTED]).keys() == {FAILING, INTERRUPTED}
        assert workspace.everything(FAILING) in KILLED
        assert workspace.everything(INTERRUPTED) not in KILLED | SKIPPED | TIMED_OUT
        # Only now, for the two before are not to be ended by a busy machine.
        monkeypatch.setattr(workspaces, "_SLOWER", 0)
        monkeypatch.setattr(workspaces, "_GRACE", 1.0)
        assert workspace.everything(HANGING) in TIMED_OUT


def test_tests_that_hang_unchanged_are_told_in_one_line(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mutmut waits for them as long as they take, and is ended."""
    pytest.importorskip("mutmut")
    (tree / "props" / "toy" / "test_sums.py").write_text("while True:\n    pass\n", encoding="utf-8")
    monkeypatch.setattr(workspaces, "_MODULE", 1.0)
    with (
        fresh_workspace(tree, TOY) as workspace,
        pytest.raises(UnavailableError, match="cannot be run under mutmut: no end within 1 s"),
    ):
        workspace.mutmut([])


def test_what_mutmut_says_by_half_is_told_in_one_line(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may end while it writes its results, or have nothing to show of a mutant."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Workspace, "_call", lambda *_: (1, "why\nit ended"))
    with fresh_workspace(tree, TOY) as workspace:
        with pytest.raises(UnavailableError, match=r"what .*mutmut_1 changes: it ended"):
            workspace.diff(FAILING)
        (mutants,) = tmp_path.glob("overflow-generated-*/mutants")
        (mutants / "overflow" / "toy").mkdir(parents=True)
        (mutants / "overflow" / "toy" / "sums.py.meta").write_text('{"exit_code_by')
        with pytest.raises(UnavailableError, match="while it wrote its results: it ended"):
            workspace.mutmut([])


WAITING = """import os, time

def test_waits():
    with open(os.environ["TOLD"], "w") as pipe:
        pipe.write("waiting")
        pipe.flush()
        time.sleep(600)
"""


@pytest.mark.parametrize(("end", "code"), [(signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_that_is_ended_leaves_no_process_behind(tree: Path, tmp_path: Path, end: int, code: int) -> None:
    """SIGTERM ends it as Ctrl-C does, and first mutmut and the tests that it runs; these follow one that is killed."""
    pytest.importorskip("mutmut")
    (tree / "props" / "toy" / "test_sums.py").write_text(WAITING, encoding="utf-8")
    told = tmp_path / "told"
    os.mkfifo(told)
    command = [sys.executable, "-P", "-m", "overflow", "mutate", "--generated"]
    environment = {**os.environ, "TOLD": str(told), "TMPDIR": str(tmp_path)}
    run = subprocess.Popen(command, cwd=tree, env=environment, stderr=subprocess.PIPE, text=True)
    with run, told.open("rb", buffering=0) as pipe:
        assert pipe.read(7) == b"waiting"
        run.send_signal(end)
        _, err = run.communicate(timeout=60)
        # The test holds the other end as long as it lives.
        ready, _, _ = select.select([pipe], [], [], 60)
        assert ready
        assert pipe.read(1) == b""
    assert run.returncode == code, err
