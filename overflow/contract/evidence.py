"""How hard to look, and whether a run without a failure proves anything.

A law that found no force in its own examples (too few of them divided, or what it is about never happened) does not
hold: a check that can't fail is a defect. DESIGN.md, principle 4.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import Phase

from overflow.contract.laws.law import Law
from overflow.contract.results import Status
from overflow.contract.watched import SubjectCrash
from overflow.contract.world import World

#: The share of examples in which what a law is about must really have happened.
_EVIDENCE = 0.05


@dataclass(frozen=True)
class Profile:
    """How hard to look: examples an invariant, the share of them that must really divide, steps of a state machine.

    `beside` is the share of the examples that a law beside the six invariants runs.
    """

    name: str
    examples: int
    divided: float
    steps: int
    beside: float = 1.0
    phases: tuple[Phase, ...] = (Phase.explicit, Phase.generate, Phase.target, Phase.shrink)

    def count(self, law: Law) -> int:
        """Examples of one law."""
        share = law.share if law.is_invariant else min(law.share, self.beside)
        return max(1, round(self.examples * share))


PROFILES = {
    "quick": Profile("quick", 40, 0.5, 12),
    "ci": Profile("ci", 300, 0.5, 20, 1 / 3),
    "deep": Profile("deep", 3_000, 0.5, 50, 1 / 3),
}


@dataclass
class Tally:
    """Counts over one law's examples, until the first failure: shrinking is no evidence."""

    examples: int = 0
    divided: int = 0
    evidence: Counter[str] = field(default_factory=Counter)
    failed: bool = False
    gone: SubjectCrash | None = None

    def add(self, world: World) -> None:
        if not self.failed:
            self.examples += 1
            self.divided += bool(world.divided)
            self.evidence += world.evidence


def force(law: Law, tally: Tally, profile: Profile) -> tuple[Status, str | None]:
    """What examples without a failure prove: that the law holds, nothing (and why), or that it could not be asked."""
    if tally.divided < profile.divided * tally.examples:
        few = f"too few examples divided: nodes were seen in {tally.divided} of {tally.examples}"
        hint = "does the subject divide when it writes, or in settle, and does nodes() read what it wrote?"
        return "violated", f"{few}, {profile.divided:.0%} are needed; {hint}"
    return evident(law, tally)


def evident(law: Law, tally: Tally) -> tuple[Status, str | None]:
    """The same for a run of which it is known that enough divided."""
    if law.occasion is not None and not tally.evidence[law.occasion]:
        return "skipped", f"the subject had no {law.occasion}, in {tally.examples} examples: there was nothing to ask"
    for name in law.evidence:
        needed = max(1, math.ceil(_EVIDENCE * tally.examples))
        if tally.evidence[name] < needed:
            few = f"{name}: {tally.evidence[name]} in {tally.examples} examples, {needed} are needed to prove anything"
            return "violated", few
    return "holds", None
