"""Whether a tokenizer.json keeps words apart, read from its own description; never from what it does to some text.

Where white space ends a token, a report on a prefix says of the words inside it what a report on the whole says. Where
it does not, a text of any length can be one word, which WordPiece collapses into one unknown token, and a piece may
reach into the next word. In doubt the answer is no, which costs time and moves no cut. DESIGN.md, "Words"
(`prefix_safe`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

_BERT_LIKE = frozenset({"BertPreTokenizer", "Whitespace", "WhitespaceSplit"})

#: Models that build a token by merging or choosing pieces, and so never turn a whole text into one because it is long.
_PIECEWISE = frozenset({"BPE", "Unigram"})

#: Normalizers that leave white space in its place, as white space. A Replace is looked into.
_KEEPING = frozenset(
    {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Prepend", "Strip"}
    | {"StripAccents"}
)

#: SentencePiece's mark of a space; space, tab, line feed and carriage return as byte-level vocabularies spell them.
_MARK = "\u2581"
_BYTES = "\u0120\u0109\u010a\u010d"
_ACROSS = re.compile(rf"[^\s{_MARK}{_BYTES}][\s{_MARK}{_BYTES}]+[^\s{_MARK}{_BYTES}]")
#: White space behind something else in a piece, and white space with anything behind it.
_BEHIND = re.compile(rf"(?<=[^\s{_MARK}])[\s{_MARK}]")
_AHEAD = re.compile(rf"[\s{_MARK}](?=[\s\S])")


def separates_words(description: Mapping[str, object]) -> bool:
    """Whether white space ends every token of the tokenizer that `description`, its JSON, describes."""
    normalizers = list(_steps(description.get("normalizer"), "normalizers"))
    if _any(_ACROSS, _contents(description.get("added_tokens"))) or not all(map(_keeps_spaces, normalizers)):
        return False
    model = description.get("model")
    pieces = _pieces(model.get("vocab")) if isinstance(model, Mapping) and _kind(model) in _PIECEWISE else None
    # As Llama's: the normalizer writes the mark in place of white space, which no later step then sees.
    marked = any(_kind(step) == "Replace" and _MARK in str(step.get("content")) for step in normalizers)
    for step in [] if marked else _steps(description.get("pre_tokenizer"), "pretokenizers"):
        if _splits(step, pieces):
            return True
        if _kind(step) in ("Metaspace", "ByteLevel"):
            marked = _kind(step) == "Metaspace" and step.get("replacement", _MARK) == _MARK
            break
    return marked and pieces is not None and _end_at_spaces(pieces)


def _keeps_spaces(normalizer: Mapping[str, object]) -> bool:
    if _kind(normalizer) != "Replace":
        return _kind(normalizer) in _KEEPING
    content, pattern = normalizer.get("content"), normalizer.get("pattern")
    if isinstance(content, str) and content and not content.replace(_MARK, " ").strip():
        return True
    literal = pattern.get("String") if isinstance(pattern, Mapping) else None
    return isinstance(literal, str) and not any(map(str.isspace, literal))


def _splits(step: Mapping[str, object], pieces: list[str] | None) -> bool:
    """Whether a step of the pre-tokenizer ends a word at all white space; it still has the white space to see."""
    kind = _kind(step)
    if kind == "ByteLevel":
        return step.get("use_regex", True) is True
    if kind == "Split":
        # Byte-level files of late carry GPT-2's expression, or one like it, as a step of their own.
        pattern = step.get("pattern")
        expression = pattern.get("Regex") if isinstance(pattern, Mapping) else None
        like = isinstance(expression, str) and "\\s+" in expression
        return like and pieces is not None and not _any(_ACROSS, pieces)
    return kind in _BERT_LIKE


def _end_at_spaces(pieces: list[str]) -> bool:
    """Whether one of `pieces` always ends at the first white space after a word, though nothing splits there.

    Before it where no piece goes on into such white space (`▁the`, `▁▁`), after it where none goes on from it (`;\\r`).
    """
    behind, ahead = ({found for piece in pieces for found in each.findall(piece)} for each in (_BEHIND, _AHEAD))
    return behind.isdisjoint(ahead)


def _any(pattern: re.Pattern[str], texts: Iterable[str]) -> bool:
    return any(pattern.search(text) for text in texts)


def _contents(added_tokens: object) -> list[str]:
    tokens = added_tokens if isinstance(added_tokens, list) else []
    return [str(token["content"]) for token in tokens if isinstance(token, Mapping) and "content" in token]


def _pieces(vocabulary: object) -> list[str]:
    """Those of a vocabulary: an object from piece to id, or a list of pieces with their scores."""
    if isinstance(vocabulary, Mapping):
        return list(vocabulary)
    return [str(entry[0]) for entry in vocabulary] if isinstance(vocabulary, list) else []


def _steps(component: object, key: str) -> Iterator[Mapping[str, object]]:
    """The component itself, or each step of a sequence of them, however deep."""
    if not isinstance(component, Mapping):
        return
    inner = component.get(key)
    if _kind(component) == "Sequence" and isinstance(inner, list):
        for step in inner:
            yield from _steps(step, key)
    else:
        yield component


def _kind(component: object) -> object:
    """The `type` of a component; old files leave that of a model out, and only a BPE has merges."""
    if not isinstance(component, Mapping):
        return None
    return component.get("type", "BPE" if "merges" in component else None)
