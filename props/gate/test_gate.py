"""The gate from end to end, on a small subject of a package of its own, and on a law that was weakened by hand."""

import json
import os
import select
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import overflow
from overflow.contract.laws import all_laws
from overflow.gate import run
from overflow.gate.mutants import Mutant, load
from overflow.gate.run import Breaking, Gate, Ran
from overflow.gate.trees import copied
from overflow.gate.verdict import LawResult, Verdict

#: A store that divides as it writes, keeps all in memory, and so has little to be asked.
TOY = """
from overflow.contract.subject import Node, Ref, Stored
from overflow.division import divide
from overflow.errors import HarnessError
from overflow.tokens.http import HttpWindow

class Store:
    name, version = "toy", "1"

    def open(self, directory, embedding_url):
        self.texts, self.spans, self.window = {}, {}, HttpWindow(embedding_url)

    def close(self):
        self.window.close()

    def store(self, text, scope):
        ref = Ref("mem", len(self.texts) + 1)
        self.texts[ref] = text
        try:
            self.spans[ref] = divide(text, self.window).spans
        except HarnessError:
            self.spans[ref] = ()
        return Stored(ref, None)

    def text(self, ref):
        return self.texts.get(ref)

    def nodes(self, ref):
        spans = self.spans[ref]
        return [Node(i, s.start, s.end, s.token_count, s.window, b"", "") for i, s in enumerate(spans)]
"""
MUTANTS = """
package = "toy"
[[mutant]]
name = "lost-end"
breaks = "The last node is left out."
red = ["4"]
file = "__init__.py"
find = "in enumerate(spans)]"
replace = "in enumerate(spans[:-1] if len(spans) > 2 else spans)]"
[[mutant]]
name = "nothing"
breaks = "Nothing."
red = []
file = "__init__.py"
find = '"toy", "1"'
replace = '"toy", "2"'
[[mutant]]
name = "named-wrongly"
breaks = "The token count is one too high, which is no matter of the partition."
red = ["4"]
file = "__init__.py"
find = "s.token_count,"
replace = "s.token_count + 1,"
[[mutant]]
name = "survives"
breaks = "Nothing that is noticed."
red = ["3"]
file = "__init__.py"
find = "spans = self.spans[ref]"
replace = "spans = list(self.spans[ref])"
[[mutant]]
name = "raises"
breaks = "It crashes."
red = ["4"]
file = "__init__.py"
find = "return self.texts.get(ref)"
replace = "return self.texts[ref][10**9]"
[[mutant]]
name = "not-asked"
breaks = "What the store has no method for."
red = ["4", "repair"]
file = "__init__.py"
find = "in enumerate(spans)]"
replace = "in enumerate(spans[:-1] if len(spans) > 2 else spans)]"
[[mutant]]
name = "gone-and-not-asked"
breaks = "Its text is not there any more."
red = ["repair"]
file = "__init__.py"
find = "no such text"
replace = ""
[[mutant]]
name = "gone"
breaks = "Its text is not there any more."
red = ["4"]
file = "__init__.py"
find = "no such text"
replace = ""
"""


#: A subject that says through a pipe which process opened it, and never answers.
WAITING = """
import os, sys, time
class Waiting:
    name, version = "waiting", "1"
    def open(self, directory, embedding_url):
        with open(os.environ["TOLD"], "w") as pipe:
            pipe.write(str(os.getpid()))
        time.sleep(600)
    def close(self): pass
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder to import the package `toy` from, with its mutants beside it."""
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "__init__.py").write_text(TOY)
    (tmp_path / "mutants.toml").write_text(MUTANTS)
    return tmp_path


def mutate(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `overflow mutate` in `folder`, where subjects and their packages are found."""
    # -P: as the installed command, which does not import from where it is run.
    command = [sys.executable, "-P", "-m", "overflow", "mutate", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def test_each_outcome_on_a_third_partys_sources(toy: Path) -> None:
    """Mutants of another package end as they must: found, controlled, wrong, survived, broken, stale."""
    names = ["lost-end", "nothing", "named-wrongly", "survives", "raises", "not-asked", "gone-and-not-asked", "gone"]
    chosen = [word for name in names for word in ("--mutant", name)]
    code, out, err = mutate(toy, "--subject", "toy:Store", "--mutants", "mutants.toml", *chosen, "--json", "-")
    told: dict[str, Any] = json.loads(out)
    assert (code, told["baseline"]) == (1, "green"), err
    assert {each["name"]: (each["outcome"], each["red"]) for each in told["mutants"]} == {
        "lost-end": ("as_expected", ["4"]),
        "nothing": ("as_expected", []),
        "named-wrongly": ("wrong_red", ["3"]),
        "survives": ("survived", []),
        "raises": ("broken", []),
        "not-asked": ("broken", ["4"]),
        "gone-and-not-asked": ("stale", []),
        "gone": ("stale", []),
    }
    assert "Traceback" not in err


def test_saboteurs_go_around_a_subject_of_few_capabilities(toy: Path) -> None:
    """Without a catalogue the saboteurs are run, each for the laws that this subject can be asked."""
    code, out, err = mutate(toy, "--subject", "toy:Store", "--mutant", "leave-gap", "--json", "-")
    (gap,) = json.loads(out)["mutants"]
    assert (code, gap["kind"], gap["outcome"]) == (0, "saboteur", "as_expected"), err
    assert gap["expected"] == ["4"]
    code, out, err = mutate(toy, "--subject", "toy:Store", "--mutant", "export-nodes")
    assert (code, out) == (2, "")
    assert "export" in err
    code, out, err = mutate(toy, "--subject", "toy:Store", "--mutant", "touch-record")
    assert (code, out) == (2, "")
    assert "touch-record: the subject lacks design_schema, execute, refs, settle" in err
    code, out, err = mutate(toy, "--subject", "toy:Store", "--mutant", "leave-gap", "--mutant", "touch-record")
    assert code == 0, err
    assert "not asked, the subject lacks design_schema, execute, refs, settle: touch-record" in " ".join(out.split())


def test_a_subject_that_imports_other_sources_than_the_copy_is_told(toy: Path) -> None:
    """A program whose own folder comes first, and a module that puts one there, run what no mutant changed."""
    (toy / "serve.py").write_text(
        "import sys\nfrom overflow.contract.stdio import main\nsys.exit(main(['toy:Store']))\n"
    )
    (toy / "forced.py").write_text("import sys\nsys.path.insert(0, '.')\nfrom toy import Store\n")
    python = shlex.quote(sys.executable)
    for subject in (f"cmd:{python} serve.py", f"cmd:{python} -m overflow.contract.stdio toy:Store", "forced:Store"):
        code, out, err = mutate(toy, "--subject", subject, "--mutants", "mutants.toml", "--mutant", "lost-end")
        assert (code, out) == (3, ""), subject
        assert "imports another toy than the mutated copy" in err
        assert "-P" in err


def test_the_laws_red_at_once_are_told(toy: Path) -> None:
    """A subject that breaks a law unbroken: which, why, and the command that shows it; CI sees a failure."""
    (toy / "gap.py").write_text(
        "import toy\nclass Store(toy.Store):\n    def nodes(self, ref):\n        return super().nodes(ref)[1:]\n"
    )
    code, out, err = mutate(toy, "--subject", "gap:Store", "--mutant", "leave-gap", "--junit", "out.xml")
    assert code == 1, err
    assert "red on the subject unbroken: 4:" in out
    assert "overflow check --subject gap:Store --invariant 4" in out
    assert ET.parse(toy / "out.xml").getroot().get("failures") == "1"


def test_what_a_subject_prints_is_no_result(toy: Path) -> None:
    """A subject in process may write to stdout, also what looks like a line of the gate's own."""
    (toy / "loud.py").write_text(
        "import os, toy\n"
        "class Store(toy.Store):\n"
        "    def store(self, text, scope):\n"
        "        print('{}')\n"
        "        os.write(1, b'no JSON\\n')\n"
        "        return super().store(text, scope)\n"
    )
    code, out, err = mutate(toy, "--subject", "loud:Store", "--mutant", "leave-gap", "--json", "-")
    assert code == 0, err
    assert [each["outcome"] for each in json.loads(out)["mutants"]] == ["as_expected"]


def test_a_subject_that_ends_the_process_proves_nothing(toy: Path) -> None:
    """With exit code 0 too: the laws that it left unasked are not green, unbroken or under a mutant."""
    (toy / "ends.py").write_text(
        "import os, toy\nclass Store(toy.Store):\n    def store(self, text, scope):\n        os._exit(0)\n"
    )
    code, out, err = mutate(toy, "--subject", "ends:Store", "--mutant", "leave-gap", "--json", "-")
    assert (code, out) == (3, "")
    assert "laws, with exit code 0" in err
    (toy / "ending.toml").write_text(
        'package = "toy"\n[[mutant]]\nname = "ends"\nbreaks = "It ends."\nred = []\nfile = "__init__.py"\n'
        'find = \'ref = Ref("mem",\'\nreplace = \'__import__("os")._exit(0); ref = Ref("mem",\'\n'
    )
    code, out, err = mutate(
        toy, "--subject", "toy:Store", "--mutants", "ending.toml", "--mutant", "ends", "--json", "-"
    )
    assert (code, json.loads(out)["mutants"][0]["outcome"]) == (1, "broken"), err


def test_the_sources_are_those_of_the_subjects_own_environment(toy: Path, tmp_path: Path) -> None:
    """A program's package is found, and replaced by the mutated copy, where its own interpreter imports it from."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (toy / "toy").rename(elsewhere / "toy")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{elsewhere}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    subject = f"cmd:{python} -m overflow.contract.stdio toy:Store"
    chosen = [word for name in ("lost-end", "nothing") for word in ("--mutant", name)]
    code, out, err = mutate(toy, "--subject", subject, "--mutants", "mutants.toml", *chosen, "--json", "-")
    assert code == 0, err
    assert [(each["outcome"], each["red"]) for each in json.loads(out)["mutants"]] == [
        ("as_expected", ["4"]),
        ("as_expected", []),
    ]


def test_the_reference_outside_a_checkout_says_where_its_mutants_are(tmp_path: Path) -> None:
    """Only its saboteurs are installed, and nobody may take them for all that there is."""
    code, out, err = mutate(tmp_path, "--mutant", "list")
    assert code == 0
    assert "leave-gap" in out
    assert "admit-nodes-to-vector-search" not in out
    assert "saboteurs alone" in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--mutant", "no-such"], 2, "no-such"),
        (["--mutants", "none.toml"], 2, "none.toml"),
        (["--html", "no/folder/x.html"], 2, "no/folder"),
        (["--workers", "0"], 2, "--workers"),
        (["--subject", "cmd:false", "--mutant", "leave-gap"], 3, "false"),
        (["--subject", "no-such"], 2, "no-such"),
    ],
)
def test_bad_usage_is_one_line(toy: Path, arguments: list[str], code: int, said: str) -> None:
    """Every mistake ends with the code of DESIGN.md and one line that names it."""
    found, _, err = mutate(toy, *arguments)
    assert found == code, err
    assert said in err
    assert "Traceback" not in err


def test_a_law_weakened_by_hand_lets_a_mutant_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate itself bites: with one assertion taken out of invariant 6, a mutant it alone notices survives."""
    weaker = Mutant(
        "weaker",
        "Invariant 6 does not ask whether an id is used again.",
        frozenset({"6"}),
        "contract/laws/lifecycle.py",
        'expect(newest not in stored, "6",',
        'expect(True, "6",',
    )
    package = Path(overflow.__file__).parent
    catalogue = load(package.parent / "mutation" / "mutants.toml", [law.id for law in all_laws()])
    noticed = next(each for each in catalogue.mutants if each.name == "ids-used-again")
    assert noticed.red == {"6"}
    with copied(package, weaker) as folder:
        monkeypatch.setenv("PYTHONPATH", str(folder))
        with Gate("reference", catalogue, python=sys.executable, seed=0, workers=1) as gate:
            weakened = Breaking(noticed.name, "source", noticed.breaks, {"6": ()}, noticed)
            (verdict,) = gate.break_each([weakened], gate.baseline(), lambda _: None)
    assert verdict.outcome == "survived", verdict.reason


def test_a_law_that_is_not_asked_of_the_reference_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A requirement that nothing meets would take a law, and all its mutants with it, out of the gate in silence."""
    weaker = Mutant(
        "weaker",
        "The law on the length limit asks for what there is not.",
        frozenset(),
        "contract/laws/portability.py",
        'requires="store nodes text length_limit"',
        'requires="store nodes text no_such_notion"',
    )
    with copied(Path(overflow.__file__).parent, weaker) as folder:
        monkeypatch.setenv("PYTHONPATH", str(folder))
        code, out, err = mutate(tmp_path, "--mutant", "no-limit")
    assert code == 1, err
    assert "red on the subject unbroken: limit: the subject lacks no_such_notion" in out


def test_no_result_is_written_over_what_is_read(toy: Path) -> None:
    """The catalogue, also the default one, the sources that are mutated, and the kept results."""
    (toy / "mutation").mkdir()
    (toy / "mutants.toml").rename(toy / "mutation" / "mutants.toml")
    chosen = ("--subject", "toy:Store", "--mutants", "mutation/mutants.toml", "--mutant", "nothing")
    for output in ("mutation/mutants.toml", "toy/__init__.py", "toy/new.json"):
        code, _, err = mutate(toy, *chosen, "--json", output)
        assert (code, output in err) == (2, True), err
    assert mutate(toy, "--mutant", "leave-gap", "--json", "mutation/mutants.toml")[0] == 2
    for name in ("equivalents.toml", "generated.toml", "generated.json"):
        (toy / "mutation" / name).touch()
        code, _, err = mutate(toy, "--generated", "--json", f"mutation/{name}")
        assert (code, "files to read" in err) == (2, True), err
    assert (toy / "toy" / "__init__.py").read_text() == TOY
    assert (toy / "mutation" / "mutants.toml").read_text() == MUTANTS


def test_a_gate_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    """SIGKILL cannot be answered: what the gate started notices that it is gone, and ends."""
    (tmp_path / "waiting.py").write_text(WAITING)
    told = tmp_path / "told"
    os.mkfifo(told)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TOLD": str(told), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "overflow", "mutate", "--subject", "waiting:Waiting"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as gate:
        child = int(told.read_text())
        ended = os.pidfd_open(child)
        gate.kill()
        assert select.select([ended], [], [], 60.0)[0]
        os.close(ended)


def test_what_a_subject_does_to_its_temporary_folder_and_its_output_is_a_verdict(toy: Path) -> None:
    """It may remove the one and write into the other: the run is told to be broken, and no traceback."""
    (toy / "removes.py").write_text(
        "import os, shutil, toy\nclass Store(toy.Store):\n    def store(self, text, scope):\n"
        "        shutil.rmtree(os.environ['TMPDIR'])\n        return super().store(text, scope)\n"
    )
    (toy / "writes.py").write_text(
        "import os, toy\nclass Store(toy.Store):\n    def store(self, text, scope):\n"
        "        for number in range(3, 20):\n"
        "            try:\n                if os.readlink(f'/proc/self/fd/{number}').endswith('/stdout'):\n"
        "                    os.write(number, b'no JSON\\n')\n"
        "            except OSError:\n                pass\n"
        "        return super().store(text, scope)\n"
    )
    for subject in ("removes:Store", "writes:Store"):
        code, _, err = mutate(toy, "--subject", subject, "--mutant", "leave-gap")
        assert code in (1, 3), err
        assert "Traceback" not in err


def test_a_mutant_that_never_ends_is_timed_out(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has a limit, after which its process and what it started are gone."""
    monkeypatch.syspath_prepend(str(toy))
    monkeypatch.setenv("PYTHONPATH", str(toy))
    monkeypatch.setattr(run, "_SLOWER", 0)
    monkeypatch.setattr(run, "_GRACE", 3.0)
    loops = Mutant("loops", "?", frozenset({"4"}), "__init__.py", "return self.texts.get(ref)", "while True: pass")
    (toy / "mutants.toml").write_text(MUTANTS)
    catalogue = load(toy / "mutants.toml", [law.id for law in all_laws()])
    with Gate("toy:Store", catalogue, python=sys.executable, seed=0, workers=1) as gate:
        breaking = Breaking("loops", "source", "?", {"4": ()}, loops)
        (verdict,) = gate.break_each([breaking], gate.baseline(), lambda _: None)
    assert (verdict.outcome, verdict.red) == ("timeout", frozenset())


def test_a_gate_that_is_terminated_leaves_no_process_behind(tmp_path: Path) -> None:
    """SIGTERM ends the gate as Ctrl-C does, and first what it started."""
    (tmp_path / "waiting.py").write_text(WAITING)
    told = tmp_path / "told"
    os.mkfifo(told)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TOLD": str(told)}
    command = [sys.executable, "-m", "overflow", "mutate", "--subject", "waiting:Waiting"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as gate:
        child = int(told.read_text())  # A pipe is read when the subject writes to it.
        gate.terminate()
        _, err = gate.communicate(timeout=60)
    assert gate.returncode == 130, err
    assert "interrupted" in err
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_rare_fault_of_the_subject_is_not_taken_for_a_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that needed more examples than the unbroken subject was asked is asked as many of that, the share apart."""
    asked: dict[str, int] = {}

    def unbroken(_mutant: None, _saboteur: None, examples: Mapping[str, int], _limit: float) -> Ran:
        asked.update(examples)
        red = "4"
        ended = [LawResult(law, "red" if law == red else "green", "why", count, 1.0) for law, count in examples.items()]
        return Ran(frozenset(), tuple(ended), None, 1.0)

    def noticed(**after: int) -> Verdict:
        laws = {law.lstrip("_"): count for law, count in after.items()}
        titles = dict.fromkeys(laws, "?")
        return Verdict("a", "source", "?", frozenset(laws), titles, laws, frozenset(laws), "as_expected", None, 1.0)

    before = [LawResult(law, "green", None, 3, 1.0) for law in ("3", "4")]
    before.append(LawResult("interleavings", "green", None, 1, 1.0))
    with Gate("reference", None, python=sys.executable, seed=0, workers=2) as gate:
        monkeypatch.setattr(gate, "_run", unbroken)
        verdicts = [noticed(_3=2, _4=40), noticed(_4=17, interleavings=10)]
        red = gate.confirm(verdicts, Ran(frozenset(), tuple(before), None, 1.0))
    assert asked == {"4": 40, "interleavings": 40}, "a quarter of the examples of an invariant are its share"
    assert [(result.law, result.reason) for result in red] == [("4", "why")]
