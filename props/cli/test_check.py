"""`overflow check` from the command line: the JSON of DESIGN.md, the exit codes, and one clear line for bad usage."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import pytest
from rich.progress import Progress

from overflow.cli.check import check as command
from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.saboteurs import SABOTEURS
from overflow.errors import UnavailableError

ROOT = Path(__file__).parent.parent.parent


def check(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "overflow", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_json_has_the_shape_of_the_design() -> None:
    """Every key of DESIGN.md, "Command line" is there, with what was asked for and what became of it."""
    ran = check("--invariant", "3", "--corpus", "none", "--seed", "5", "--json", "-")
    assert ran.returncode == 0, ran.stderr
    data = json.loads(ran.stdout)
    run = "subject saboteur contract profile seed corpus seconds results"
    assert set(data) == set(run.split())
    assert set(data["subject"]) == {"name", "version"}
    told = (data["subject"]["name"], data["saboteur"], data["contract"], data["profile"], data["seed"], data["corpus"])
    assert told == ("reference", None, "nodes", "quick", 5, None)
    (result,) = data["results"]
    a_law = "invariant name source status reason examples divided seconds counterexample error again corpus"
    assert set(result) == set(a_law.split())
    assert (result["invariant"], result["status"], result["examples"]) == ("3", "holds", 40)
    assert 20 <= result["divided"] <= 40
    assert (result["counterexample"], result["again"], result["corpus"]) == (None, None, None)


def test_saboteur_is_violated_and_explained(tmp_path: Path) -> None:
    """Exit 1, a counterexample a person can read, the command that shows it again, and a JUnit failure."""
    junit = tmp_path / "out.xml"
    ran = check("--saboteur", "infer-token-count", "--invariant", "3", "--corpus", "none", "--junit", str(junit))
    assert ran.returncode == 1
    assert ran.stdout.startswith("reference ")
    assert ", saboteur infer-token-count, contract nodes," in ran.stdout.splitlines()[0]
    assert "token_count is the span's own count" in ran.stdout
    assert "expected:" in ran.stdout
    assert "got:" in ran.stdout
    assert "overflow check --subject reference --profile quick --seed 0 --saboteur infer-token-count" in ran.stdout
    suite = ET.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    (again,) = (line for line in ran.stdout.splitlines() if line.startswith("again: "))
    (failure,) = suite.iter("failure")
    assert again.endswith(" --saboteur infer-token-count --invariant 3 --corpus none")
    assert (failure.text or "").splitlines()[-1] == again


def test_corpus_column(tmp_path: Path) -> None:
    """Documents of the user's own are a column of their own; one document of many words divides."""
    (tmp_path / "long.md").write_text("The billing database is PostgreSQL 15. " * 200)
    (tmp_path / "short.txt").write_text("A note.")
    ran = check("--invariant", "3", "--corpus", str(tmp_path), "--json", "-", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    data = json.loads(ran.stdout)
    assert set(data["corpus"]) == {"id", "sha256", "records", "window", "model"}
    corpus = data["results"][0]["corpus"]
    assert (corpus["status"], corpus["records"], corpus["divided"]) == ("holds", 2, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.md", "short.txt"], "a check leaves nothing behind"


class _Shown(Progress):
    """What a terminal would show, to be looked at."""

    totals: ClassVar[list[float | None]] = []

    def stop(self) -> None:
        _Shown.totals[:] = [task.total for task in self.tasks]
        super().stop()


def test_the_progress_bar_knows_its_end_from_the_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of the chosen laws, before the first of them is asked."""
    monkeypatch.setattr("overflow.cli.check._progress", lambda console: _Shown(console=console, disable=True))
    monkeypatch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", str(folder))
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(UnavailableError):
        command.main(["--subject", "mine:DoesNotOpen", "--invariant", "3", "--corpus", "none"], standalone_mode=False)
    assert _Shown.totals == [40]


def test_a_failure_on_the_corpus_names_the_document_everywhere(folder: Path) -> None:
    """In the box, in JUnit and in the JSON; the last line says where the law failed, and the corpus is not repeated."""
    text = "The billing database is PostgreSQL 15. "
    (folder / "corp").mkdir()
    for number in range(30):
        (folder / "corp" / f"{number}.md").write_text(f"{number} " + text * (60 if number < 29 else 200))
    asked = ("--subject", "mine:RefusesAPage", "--invariant", "3", "--corpus", "corp")
    ran = check(*asked, "--junit", "out.xml", "--json", "out.json", cwd=folder)
    assert ran.returncode == 1, ran.stderr
    assert "document: 29.md" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("0 holds, 0 violated, 1 error (on the corpus), 0 skipped, in ")
    (failure,) = ET.parse(folder / "out.xml").iter("error")
    assert "document: 29.md" in (failure.text or "").splitlines()
    corpus = json.loads((folder / "out.json").read_text())["results"][0]["corpus"]
    assert (corpus["status"], corpus["error"], corpus["counterexample"]["document"]) == ("violated", True, "29.md")
    assert len(json.dumps(corpus["counterexample"])) < 1_000


def test_corpus_that_never_divides_proves_nothing(tmp_path: Path) -> None:
    """Documents that all fit are bad usage, told in one line, and no law is said to hold on them."""
    (tmp_path / "short.txt").write_text("A note.")
    ran = check("--invariant", "4", "--corpus", str(tmp_path))
    assert ran.returncode == 2
    assert "no record that runs past the window" in ran.stderr
    assert ran.stderr.count("\n") == 1


CRASHING = """
import os
import time
from overflow.contract.subject import Ref, Stored

class Crashing:
    name, version = "crashing", "1"
    def open(self, directory, embedding_url): pass
    def close(self): pass
    def store(self, text, scope): raise OSError("no room")
    def settle(self): pass
    def nodes(self, ref): return []
    def text(self, ref): return ""

class NothingDivides(Crashing):
    def store(self, text, scope): return Stored(Ref("mem", 1), None)
    archive_episode = store

class Slow(Crashing):
    def store(self, text, scope): time.sleep(3600)

from overflow.subjects.reference import Reference

class RefusesAPage(Reference):
    def store(self, text, scope):
        if len(text) > 5_000:
            raise OSError("too long")
        return super().store(text, scope)
    archive_episode = store

class EndsOnAPage(Crashing):
    def store(self, text, scope):
        if len(text) > 5_000:
            os._exit(7)
        return super().store(text, scope)

class Printing(Crashing):
    def open(self, directory, embedding_url):
        import ctypes, subprocess, sys
        print("said by print")
        sys.__stdout__.write("said by the first stdout")
        os.write(1, b"said by a descriptor")
        ctypes.CDLL(None).puts(b"said by C")
        subprocess.run(["echo", "said by a child"], check=True)
    def store(self, text, scope): return Stored(Ref("mem", 1), None)

class Wandering(Printing):
    def open(self, directory, embedding_url): os.chdir(directory)

class DoesNotOpen(Crashing):
    def open(self, directory, embedding_url): raise OSError("no disk")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(CRASHING)
    return tmp_path


def test_crash_of_the_subject_is_no_violation(folder: Path) -> None:
    """A subject that raises is told apart from one that breaks a law: JSON `error`, the example, exit 1."""
    ran = check("--subject", "mine:Crashing", "--invariant", "4", "--corpus", "none", "--json", "-", cwd=folder)
    assert ran.returncode == 1
    (result,) = json.loads(ran.stdout)["results"]
    assert (result["status"], result["error"]) == ("violated", True)
    assert "scenario" in result["counterexample"]
    assert result["reason"].startswith("the subject's store raised OSError: no room")


def over_stdio(kind: str) -> str:
    return f"cmd:{sys.executable} -m overflow.contract.stdio mine:{kind}"


def test_a_crash_over_stdio_is_judged_as_in_process(folder: Path) -> None:
    """It ends neither the run nor the subject: each law that meets it is an error, the next is asked, exit 1."""
    arguments = ("--invariant", "3", "--invariant", "4", "--corpus", "none", "--json", "-")
    for subject in ("mine:Crashing", over_stdio("Crashing")):
        ran = check("--subject", subject, *arguments, cwd=folder)
        assert ran.returncode == 1
        results = json.loads(ran.stdout)["results"]
        assert [(each["status"], each["error"]) for each in results] == [("violated", True)] * 2


def test_a_subject_lost_on_the_corpus_ends_the_run(folder: Path) -> None:
    """Its process ends with a document alone: an error of JUnit, no violation, exit 3, and no later law asks it."""
    (folder / "text").mkdir()
    (folder / "text" / "page.md").write_text("The billing database is PostgreSQL 15. " * 200)
    corpus = ("--invariant", "3", "--invariant", "4", "--corpus", str(folder / "text"))
    ran = check("--subject", over_stdio("EndsOnAPage"), *corpus, "--junit", "out.xml", "--json", "-", cwd=folder)
    assert ran.returncode == 3, ran.stderr
    first, second = json.loads(ran.stdout)["results"]
    assert (first["corpus"]["status"], first["corpus"]["error"]) == ("violated", True)
    assert (second["status"], second["corpus"]["status"]) == ("skipped", "skipped")
    suite = ET.parse(folder / "out.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("0", "2")


def test_a_call_that_takes_too_long_ends_the_run(folder: Path) -> None:
    """`--timeout`: the subject is not available, in its time; the command to see it again has it."""
    arguments = ("--subject", "mine:Slow", "--invariant", "4", "--corpus", "none", "--timeout", "1")
    ran = check(*arguments, cwd=folder)
    assert ran.returncode == 3, ran.stderr
    assert "store" in ran.stdout
    assert " --timeout 1 --invariant 4 " in ran.stdout


def test_without_a_terminal_each_law_is_a_line(folder: Path) -> None:
    """A log shows how far a run is, on stderr alone, a line a law as it ends."""
    ran = check(
        "--subject", "mine:NothingDivides", "--invariant", "4", "--invariant", "1", "--corpus", "none", cwd=folder
    )
    assert ran.stderr.splitlines() == [
        "1 retrieval unchanged: skipped",
        "4 nodes partition their parent: violated, 0 of 40 divided",
    ]


def test_a_saboteur_without_a_law_to_ask_is_bad_usage(folder: Path) -> None:
    """When the subject lacks what every law of a saboteur needs, one line names it, and nothing is run."""
    ran = check("--subject", "mine:Crashing", "--saboteur", "admit-nodes", "--corpus", "none", cwd=folder)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("overflow: admit-nodes shows nothing on crashing")
    assert line.endswith("law 1 needs configure, recall")
    needed = check("--subject", "mine:Crashing", "--saboteur", "touch-record", "--corpus", "none", cwd=folder)
    assert (needed.returncode, needed.stdout) == (2, "")
    assert needed.stderr == "overflow: touch-record cannot break crashing, which lacks design_schema, execute, refs\n"
    one_law_is_enough = check(
        "--subject",
        "mine:NothingDivides",
        "--saboteur",
        "leave-gap",
        "--invariant",
        "4",
        "--corpus",
        "none",
        cwd=folder,
    )
    assert one_law_is_enough.returncode == 1


def test_every_law_is_listed() -> None:
    """`--invariant list`: id, name, source and needed capabilities, a line each where no terminal folds it."""
    ran = check("--invariant", "list")
    assert (ran.returncode, ran.stderr) == (0, "")
    rows = [re.split(r" {2,}", line.rstrip()) for line in ran.stdout.splitlines()]
    assert rows[0] == ["law", "name", "source", "needs"]
    assert rows[1:] == [[law.id, law.name, law.source, " ".join(sorted(law.requires))] for law in all_laws()]


def test_every_saboteur_is_listed_in_columns() -> None:
    """`--saboteur list`: name, laws and what it does, each column as wide as its longest entry."""
    ran = check("--saboteur", "list")
    assert (ran.returncode, ran.stderr) == (0, "")
    heading, *lines = ran.stdout.splitlines()
    second, third = heading.index("laws it breaks"), heading.index("what it does")
    assert [(line[:second].strip(), line[second:third].strip(), line[third:].strip()) for line in lines] == [
        (each.name, " ".join(sorted(each.expected)), each.breaks) for each in SABOTEURS.values()
    ]


@pytest.mark.parametrize("option", ["--saboteur", "--invariant"])
def test_a_list_is_readable_in_80_columns(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is longer, and what is typed stands whole at the start of one."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    lines = re.sub(r"\x1b\[\d*m", "", check(option, "list").stdout).splitlines()
    assert max(map(len, lines)) <= 80
    starts = {line.split()[0] for line in lines if not line.startswith(" ")}
    assert starts >= (set(SABOTEURS) if option == "--saboteur" else {law.id for law in all_laws()})


def test_the_help_says_what_profiles_are() -> None:
    """Their examples, as the runner has them, and what the contract is."""
    help_text = check("--help").stdout
    told = " ".join(help_text.split())
    assert max(map(len, help_text.splitlines())) <= 80
    profiles = [PROFILES[name] for name in ("quick", "ci", "deep")]
    quick, ci, deep = (f"{profile.examples:,}" for profile in profiles)
    assert f"{quick}, {ci} or {deep} generated examples an invariant" in told
    quick, ci, deep = (f"{round(profile.examples * profile.beside):,}" for profile in profiles)
    assert f"of a law beside them {quick}, {ci} or {deep}" in told
    assert "the six invariants of the Overflow Tree and the laws beside them" in told


def test_what_a_subject_prints_is_no_part_of_the_results(folder: Path) -> None:
    """`--json -` is JSON alone, whoever writes to stdout meanwhile; all of it is to be read on stderr."""
    ran = check("--subject", "mine:Printing", "--invariant", "3", "--corpus", "none", "--json", "-", cwd=folder)
    assert json.loads(ran.stdout)["subject"]["name"] == "crashing"
    for way in ("print", "the first stdout", "a descriptor", "C", "a child"):
        assert f"said by {way}" in ran.stderr


def test_a_closed_stderr_sends_what_a_subject_prints_nowhere(folder: Path) -> None:
    """Least of all into the results."""
    arguments = "--subject mine:Printing --invariant 3 --corpus none --json -"
    command = f"exec {sys.executable} -m overflow check {arguments} 2>&-"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder, check=False)
    assert json.loads(ran.stdout)["subject"]["name"] == "crashing"


def test_outputs_are_written_where_they_were_named(folder: Path) -> None:
    """Whatever folder the subject goes to; the corpus is read where it was named, too."""
    (folder / "page.md").write_text("The billing database is PostgreSQL 15. " * 200)
    arguments = ("--corpus", "page.md", "--json", "out.json", "--junit", "out.xml")
    ran = check("--subject", "mine:Wandering", "--invariant", "3", *arguments, cwd=folder)
    assert (ran.returncode, ran.stderr.count("overflow:")) == (1, 0), ran.stderr
    assert json.loads((folder / "out.json").read_text())["results"][0]["corpus"]["records"] == 1
    assert ET.parse(folder / "out.xml").getroot().tag == "testsuite"


def test_the_verdict_ends_the_screen_and_its_time_the_reports(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Skips, then counterexamples, then one line, with the seconds that passed; JSON and JUnit have them too."""
    ticks = iter([100.0, 112.5])
    monkeypatch.setattr("overflow.cli.check._clock", lambda: next(ticks))
    monkeypatch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", str(folder))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    laws = ["--invariant", "1", "--invariant", "4"]
    arguments = ["--subject", "mine:Crashing", *laws, "--corpus", "none", "--json", "a.json", "--junit", "a.xml"]
    assert command.main(arguments, standalone_mode=False) == 1
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert lines[-1] == "0 holds, 0 violated, 1 error, 1 skipped, in 12.5 s"
    above = [line for line in lines if line.startswith(("skipped", "╭", "again: "))]
    assert [line[:3] for line in above] == ["ski", "╭─ ", "aga"]
    data = json.loads((folder / "a.json").read_text())
    assert data["seconds"] == 12.5
    assert f"again: {data['results'][1]['again']}" == above[-1]
    assert ET.parse(folder / "a.xml").getroot().get("time") == "12.500"


def test_missing_capability_is_skipped_with_its_reason(folder: Path) -> None:
    """A law whose methods the subject lacks is skipped and names them; where nothing could be asked, exit 1."""
    ran = check("--subject", "mine:Crashing", "--invariant", "1", "--corpus", "none", "--json", "-", cwd=folder)
    assert ran.returncode == 1, "nothing was checked"
    (result,) = json.loads(ran.stdout)["results"]
    assert (result["status"], result["reason"]) == ("skipped", "the subject lacks configure, recall")


def test_examples_that_never_divide_fail_the_run(folder: Path) -> None:
    """A subject that builds no nodes at all violates no partition, and still the run does not hold."""
    ran = check("--subject", "mine:NothingDivides", "--invariant", "4", "--corpus", "none", "--json", "-", cwd=folder)
    assert ran.returncode == 1
    (result,) = json.loads(ran.stdout)["results"]
    assert result["status"] == "violated"
    assert result["reason"].startswith("too few examples divided: nodes were seen in 0 of 40, 50% are needed;")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--subject", "nobody"], 2, "unknown subject"),
        (["--subject", "no_such_module:Store"], 2, "no_such_module"),
        (["--subject", "json:NoSuchClass"], 2, "NoSuchClass"),
        (["--subject", "cmd:no-such-command-anywhere"], 3, "no-such-command-anywhere"),
        (["--subject", "mine:DoesNotOpen"], 3, "no disk"),
        (["--invariant", "7"], 2, "no invariant or law is called '7'"),
        (["--saboteur", "nobody"], 2, "no saboteur is called 'nobody'; --saboteur list names them\n"),
        (["--corpus", "no-such-corpus"], 2, "no-such-corpus"),
        (["--window", "words@40"], 2, "embeds nothing"),
        (["--window", "words@0"], 2, "words@0"),
        (["--profile", "slow"], 2, "slow"),
        (["--timeout", "0"], 2, "--timeout"),
        (["--timeout", "nan"], 2, "--timeout"),
        (["--json", "no/such/folder/out.json", "--invariant", "3", "--corpus", "none"], 2, "no/such/folder"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], code: int, said: str, folder: Path) -> None:
    """Whatever is wrong with what was typed: its exit code, and one line that names it."""
    ran = check(*arguments, cwd=folder)
    assert (ran.returncode, ran.stderr.count("\n")) == (code, 1), ran.stderr
    assert ran.stderr.startswith("overflow: ")
    assert said in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--corpus", "notes", "--json", "notes/a.md"], "cannot write notes/a.md: it is one of the files to read"),
        (["--corpus", "notes", "--junit", "link"], "cannot write link: it is one of the files to read"),
        (["--window", "hf:t.json@9", "--json", "t.json"], "cannot write t.json: it is one of the files to read"),
        (["--json", "same", "--junit", "./same"], "cannot write same: two results would be written there"),
    ],
)
def test_nothing_is_lost_by_a_result(tmp_path: Path, arguments: list[str], said: str) -> None:
    """A result is written over no text, no tokenizer and no other result: one line, before any work."""
    (tmp_path / "notes").mkdir()
    for name in ("notes/a.md", "t.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "link").symlink_to("notes/a.md")
    ran = check("--invariant", "3", *arguments, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"overflow: {said}")
    assert [(tmp_path / name).read_text() for name in ("notes/a.md", "t.json")] == ["{}", "{}"]
    assert not (tmp_path / "same").exists()


@pytest.mark.parametrize(
    ("act", "code", "said"),
    [
        ("sys.stdout.close()", 0, ""),
        ("os.closerange(3, 256)", 3, "overflow: the subject closed what this process writes to"),
    ],
)
def test_a_subject_that_closes_what_it_should_not(tmp_path: Path, act: str, code: int, said: str) -> None:
    """Its stdout is a stream of its own; a command whose result it made impossible says so, and is not red."""
    (tmp_path / "closing.py").write_text(
        "import os, sys\n"
        "from overflow.subjects.reference import Reference\n"
        "class Closing(Reference):\n"
        "    def close(self):\n"
        "        super().close()\n"
        f"        {act}\n"
    )
    ran = check("--subject", "closing:Closing", "--invariant", "limit", "--corpus", "none", cwd=tmp_path)
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr.splitlines()[-1]
