"""What led to a failure on a corpus: the document it is about, and the steps that concern it.

The corpus itself is not written out again: a person has it. It never judges. DESIGN.md, "The check" (a real corpus).
"""

from collections.abc import Mapping
from typing import Any

from overflow.contract.steps import Steps
from overflow.contract.subject import Ref
from overflow.contract.violation import Violation
from overflow.contract.watched import SubjectCrash


def concerned(failure: SubjectCrash | Violation, steps: Steps, documents: Mapping[str, str]) -> dict[str, Any]:
    """The failure's context with its `document`, where its record has the text of one, and its `steps`.

    `documents` maps a text to its document's id.
    """
    ref, text = _record(failure, steps)
    quoted = failure.context.get("text")
    # A law shows a text as Python writes it; it is what the failure is about, whatever was written since.
    text = next((each for each in documents if quoted is not None and repr(each) == quoted), text)
    document = {} if text is None or text not in documents else {"document": documents[text]}
    return {**document, **failure.context, "steps": steps.about(ref, text)}


def _record(failure: SubjectCrash | Violation, steps: Steps) -> tuple[Ref | None, str | None]:
    """The record that a law names or a call failed on, and the text written to it last."""
    failed = next((step for step in steps if step.raised is failure), None)
    if failed is not None and failed.text is not None:
        return failed.ref, failed.text
    ref = failure.context.get("record") if failed is None else failed.ref
    written = [step.text for step in steps if step.ref == ref and step.text is not None]
    return ref, written[-1] if ref is not None and written else None
