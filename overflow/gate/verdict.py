"""What the gate says of one mutant or saboteur: the laws that went red, and whether they are those that had to.

Only a violation of a law is red. A crash, a lost subject, or a law that found nothing to be asked about is neither red
nor green, and no mutant passes by it. DESIGN.md, principle 4 and "Command line" (`overflow mutate`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["source", "saboteur"]
Outcome = Literal["as_expected", "survived", "wrong_red", "broken", "stale", "timeout"]


@dataclass(frozen=True, slots=True)
class LawResult:
    """How one law ended, after so many examples: `state` is green, red, skipped, broken for a crash, or idle where its
    few examples did not come to what it is about; `reason` says why."""

    law: str
    state: Literal["green", "red", "skipped", "broken", "idle"]
    reason: str | None
    examples: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """One mutant or saboteur. `noticed` are the laws that went red, each with the title of its violation, `after` with
    the examples that it took, `asked` those that could be asked; `reason` is for people; times are seconds."""

    name: str
    kind: Kind
    breaks: str
    expected: frozenset[str]
    noticed: Mapping[str, str]
    after: Mapping[str, int]
    asked: frozenset[str]
    outcome: Outcome
    reason: str | None
    seconds: float

    @property
    def red(self) -> frozenset[str]:
        return frozenset(self.noticed)

    @property
    def passes(self) -> bool:
        return self.outcome == "as_expected"


def law_result(result: dict[str, Any]) -> LawResult:
    """From a result as `overflow check --json` prints it."""
    state: Literal["green", "red", "skipped", "broken", "idle"]
    if result["status"] == "skipped":
        state = "skipped"
    elif result["status"] == "holds":
        state = "green"
    else:
        # Violated without a counterexample: too few examples divided, or what the law is about never happened.
        state = "broken" if result["error"] else "idle" if result["counterexample"] is None else "red"
    return LawResult(result["invariant"], state, result["reason"], result["examples"], result["seconds"])


def judged(
    expected: Mapping[str, Sequence[str]],
    results: Sequence[LawResult],
    unbroken: Sequence[LawResult] = (),
    *,
    exact: bool = True,
) -> tuple[Outcome, str | None]:
    """The outcome of a whole run of the laws, and why when it is not the expected one.

    `expected` are the laws that must go red, each with the titles that its violation may have, none where any will do.
    A law that was green on the subject `unbroken`, and now cannot be asked or comes to nothing, has not stayed green.
    Where it is not `exact`, one of them that does so is enough, and any other of them may: that depends on the subject.
    """
    titles = {result.law: result.reason or "" for result in results if result.state == "red"}
    red, wanted = titles.keys(), expected.keys()
    noticed = {law for law in red & wanted if not expected[law] or titles[law] in expected[law]}
    if not exact and noticed and red <= wanted:
        # A law beside them may have asked the subject for what only the saboteur says is there.
        return "as_expected", None
    broken = [result for result in results if result.state == "broken"]
    if broken:
        return "broken", f"{broken[0].law}: {broken[0].reason}"
    if unasked := [result for result in results if result.law in wanted and result.state == "skipped"]:
        return "broken", f"{unasked[0].law} cannot be asked: {unasked[0].reason}"
    asked = {result.law for result in unbroken if result.state == "green"}
    if lost := [result for result in results if result.law in asked and result.state in ("skipped", "idle")]:
        return "broken", f"{lost[0].law} comes to nothing any more: {lost[0].reason}"
    if not red and wanted:
        return "survived", f"no law went red; {_named(wanted)} had to"
    if otherwise := sorted((red & wanted) - noticed):
        return "wrong_red", f"{otherwise[0]} went red for another reason: {titles[otherwise[0]]}"
    if red == wanted:
        return "as_expected", None
    parts = [(wanted - red, "stayed green"), (red - wanted, "went red")]
    return "wrong_red", "; ".join(f"{_named(laws)} {how}" for laws, how in parts if laws)


def _named(laws: Iterable[str]) -> str:
    return ", ".join(sorted(laws))
