"""What dividing costs, in figures of one run: `python bench/linear_cost.py [--json PATH|-]`, exit code 1 on a miss.

Requests and characters are counted by the scripted server, over real HTTP on the loopback; speeds are ratios, so that a
slow machine misses no aim. Texts come from the standard library and from this file alone. DESIGN.md, "Linear cost".
"""

import argparse
import base64
import json
import math
import os
import pydoc_data.topics
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from overflow.cli.output import write_text
from overflow.division import divide, divide_many
from overflow.division.spans import Division
from overflow.embedding.http import EmbeddingClient
from overflow.embedding.script import Script
from overflow.embedding.server import PathCount, ScriptedServer
from overflow.measure.stdlib_docs import texts as documentation
from overflow.store import MemoryStore, Scope
from overflow.tokens.e5 import E5Window
from overflow.tokens.http import HttpWindow
from overflow.tokens.report import TokenWindow
from overflow.tokens.synthetic import SyntheticWindow
from overflow.tokens.wordllama import WordllamaWindow

RECORD = 16_000
BACKLOG = 50
SHORT, LONG = 10_000, 1_000_000
#: The folder of real texts, by default beside a checkout.
CORPORA = Path(os.environ.get("OVERFLOW_CORPORA", Path(__file__).parents[2] / "shared" / "corpora"))
HOSTILE = (10_000, 40_000, 160_000)

_SUBJECTS = [
    "請求書",
    "データベース",
    "会議の議事録",
    "新しい規則",
    "彼女の提案",
    "北側の倉庫",
    "古い時計",
    "研究班",
    "市役所の窓口",
    "編集者",
]
_PLACES = [
    "京都で",
    "昨日の午後に",
    "三階の資料室で",
    "来週までに",
    "港の近くで",
    "予定より早く",
    "雨の中で",
    "静かな村で",
]
_OBJECTS = [
    "報告書を",
    "三つの箱を",
    "契約の条件を",
    "次の目標を",
    "失われた手紙を",
    "測定の結果を",
    "旅の記録を",
    "小さな橋を",
]
_VERBS = [
    "確認した",
    "書き直した",
    "見つけた",
    "比べている",
    "説明し、全員が納得した",
    "送り返した",
    "保存してある",
    "直すつもりだ",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure beside its aim, if there is one; `least` tells that the aim is a lower bound."""

    name: str
    value: float
    aim: float | None
    least: bool = False

    @property
    def met(self) -> bool:
        if self.aim is None:
            return True
        return self.value >= self.aim if self.least else self.value <= self.aim


@cache
def paragraphs() -> list[str]:
    """The prose in the standard library's documentation: its paragraphs of some length, each as one line."""
    every = [paragraph for _, text in documentation() for paragraph in text.split("\n\n")]
    return [" ".join(each.split()) for each in every if len(each) > 150 and each[0].isalpha() and each.endswith(".")]


def english(length: int) -> str:
    """One line of those, from the start again where they are too few."""
    prose = " ".join(paragraphs()) + " "
    return (prose * (length // len(prose) + 1))[:length]


def japanese(length: int) -> str:
    """One line of sentences without any white space, drawn from a fixed seed."""
    draw = random.Random(1).choice
    found, size = [], 0
    while size < length:
        found.append(f"{draw(_PLACES)}{draw(_SUBJECTS)}が{draw(_OBJECTS)}{draw(_VERBS)}。")
        size += len(found[-1])
    return "".join(found)[:length]


def over_http(window: TokenWindow, texts: Sequence[str]) -> tuple[list[Division], PathCount]:
    """The divisions of `texts` in lockstep against `window` behind the server, and what was posted for them."""
    script = Script(window, model=lambda texts: np.zeros((len(texts), 1), np.float32))
    with ScriptedServer(script, keep_requests=False) as server, HttpWindow(server.url) as behind:
        outcomes = [outcome for _, outcome in divide_many(texts, behind)]
        count = server.counts()["/count_tokens"]
    return [outcome for outcome in outcomes if isinstance(outcome, Division)], count


def one_record(name: str, text: str, window: TokenWindow) -> list[Figure]:
    """A record alone: what is posted, and how much of it beside the texts of the nodes as such."""
    (division,), posted = over_http(window, [text])
    nodes = len(division.spans)
    # The last node is what remained: it was posted as a probe alone.
    own = division.spans[-1].start
    return [
        Figure(f"{name}: characters posted per character", posted.characters / len(text), 2.5),
        Figure(f"{name}: of them in probes", (posted.characters - own) / len(text), 1.6),
        Figure(f"{name}: requests for {nodes} nodes", posted.requests, 1.1 * nodes + 2),
    ]


def documents() -> dict[str, str]:
    """Whole documents as one line, commands and tables in it, by language; other than English where corpora are there.

    They are none of the prose that the aims are for: what a stretch of them counts says less of the next one.
    """
    found = {"English": " ".join(pydoc_data.topics.topics.values())}
    for language, name in (("Japanese", "ja_book"), ("Chinese", "zh_book")):
        path = CORPORA / f"{name}.jsonl"
        if path.is_file():
            found[language] = " ".join(json.loads(line)["text"] for line in path.read_bytes().splitlines())
    return {language: " ".join(text.split())[:RECORD] for language, text in found.items()}


def whole_documents(window: TokenWindow) -> list[Figure]:
    """What is posted for each of those; without an aim."""
    found = []
    for language, text in documents().items():
        (division,), posted = over_http(window, [text])
        nodes = len(division.spans)
        name = f"{language}, a whole document, {window.name}: characters posted per character, {nodes} nodes"
        found.append(Figure(name, posted.characters / len(text), None))
    return found


def in_store(name: str, text: str, window: TokenWindow) -> list[Figure]:
    """What the store's own build of a queued record posts to /count_tokens; a span's count comes from /embed."""
    script = Script(window, model=lambda texts: np.ones((len(texts), 1), np.float32))
    with (
        tempfile.TemporaryDirectory() as directory,
        ScriptedServer(script, keep_requests=False) as server,
        EmbeddingClient(server.url) as client,
        MemoryStore(str(Path(directory) / "store.sqlite3"), client) as store,
    ):
        store.store(text, Scope("agent", "", ""))
        server.reset()
        if store.drain().built != 1:
            raise SystemExit("the store built nothing: its figure would be of no build")
        posted = server.counts()["/count_tokens"]
    return [Figure(f"{name}: characters a build posts to /count_tokens", posted.characters / len(text), 1.6)]


def backlog(name: str, text: str, window: TokenWindow) -> list[Figure]:
    """Many records in lockstep."""
    texts = [text[start : start + RECORD] for start in range(0, len(text), RECORD)]
    divisions, posted = over_http(window, texts)
    nodes = sum(len(division.spans) for division in divisions)
    return [Figure(f"{name}, {len(divisions)} records: requests per node", posted.requests / nodes, 0.15)]


def speed(name: str, text: str, window: TokenWindow) -> list[Figure]:
    """The speed on one long text against that on the same text in short ones, with a local tokenizer."""
    short = [text[start : start + SHORT] for start in range(0, len(text), SHORT)]

    def seconds(texts: Sequence[str]) -> float:
        begin = time.perf_counter()
        for each in texts:
            divide(each, window)
        return time.perf_counter() - begin

    seconds(short)  # Vocabulary loaded and caches as warm for one as for the other.
    rounds = [(seconds(short), seconds([text])) for _ in range(2)]
    ratio = min(short for short, _ in rounds) / min(long for _, long in rounds)
    return [Figure(f"{name}, {len(text):,} characters: speed against {SHORT:,}", ratio, 0.8, least=True)]


def hostile(length: int) -> dict[str, str]:
    """Texts without a place to cut, or that repeat themselves, by name."""
    address = "https://example.org/" + "".join(f"{word}-{at}/" for at, word in enumerate(english(length).split()))
    encoded = base64.b64encode(random.Random(3).randbytes(length)).decode()
    texts = {unit: unit * length for unit in ("a", "=", "日", "word", "word ")}
    return {name: text[:length] for name, text in {**texts, "one address": address, "base64": encoded}.items()}


def unbroken(window: TokenWindow, *, dear: Sequence[str] = ()) -> list[Figure]:
    """What hostile texts cost at each length; processor time a character, against the shortest.

    How much of those in `dear` is measured has no aim: it grows with their length.
    """
    found = []
    first: dict[str, float] = {}
    for length in HOSTILE:
        texts = hostile(length)
        measured: dict[str, float] = {}
        paces = dict.fromkeys(texts, math.inf)
        # All of them each time, so that none is remembered from the time before.
        for _ in range(3):
            for name, text in texts.items():
                begin = time.process_time()
                measured[name] = divide(text, window).cost.characters / length
                paces[name] = min(paces[name], (time.process_time() - begin) / length)
        for name, pace in paces.items():
            slower = pace / first.setdefault(name, pace)
            what = f"{name!r} × {length:,}, {window.name}"
            aim = None if name in dear else 4.5
            found.append(Figure(f"{what}: characters measured per character", measured[name], aim))
            if length > HOSTILE[0]:
                found.append(Figure(f"{what}: processor time a character against {HOSTILE[0]:,}", slower, 1 / 0.8))
    return found


def figures() -> list[Figure]:
    """Every figure of "Linear cost", in groups: each group is a function that returns its figures."""
    e5, wordllama = E5Window(), WordllamaWindow()
    record, kana = english(RECORD), japanese(RECORD)
    found = []
    for window in (e5, wordllama):
        found += one_record(f"English, {window.name}", record, window)
        found += one_record(f"Japanese, {window.name}", kana, window)
        found += whole_documents(window)
    found += in_store("English, e5", record, e5)
    found += in_store("Japanese, e5", kana, e5)
    found += backlog("English, e5", english(BACKLOG * RECORD), e5)
    found += backlog("Japanese, e5", japanese(BACKLOG * RECORD), e5)
    found += speed("English, wordllama", english(LONG), wordllama)
    found += speed("Japanese, e5", japanese(LONG), e5)
    # Windows of one letter close elsewhere when more of it follows, so that the whole rest is measured for each node.
    found += unbroken(e5, dear=("a", "="))
    others: list[TokenWindow] = [wordllama, SyntheticWindow("chars", 100), SyntheticWindow("words", 40)]
    for other in others:
        found += unbroken(other)
    return found


def line(figure: Figure) -> str:
    if figure.aim is None:
        return f"      {figure.value:8.3f}           {figure.name}"
    sign = "≥" if figure.least else "≤"
    return f"{'pass' if figure.met else 'MISS'}  {figure.value:8.3f} {sign} {figure.aim:6.2f}  {figure.name}"


def main() -> int:
    parser = argparse.ArgumentParser(description="What dividing costs, and whether each figure meets its aim.")
    parser.add_argument("--json", metavar="PATH|-", help="write the figures as JSON as well")
    arguments = parser.parse_args()
    found = figures()
    if arguments.json != "-":
        for figure in found:
            print(line(figure))
    if arguments.json is not None:
        write_text(arguments.json, json.dumps([asdict(figure) | {"met": figure.met} for figure in found]) + "\n")
    return 0 if all(figure.met for figure in found) else 1


if __name__ == "__main__":
    from script import run

    run(main)
