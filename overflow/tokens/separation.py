"""Whether a tokenizer.json keeps words apart, read from its own description; never from what it does to some text.

Where white space ends a token, a report on a prefix says of the words inside it what a report on the whole says. Where
it does not, a text of any length can be one word, which WordPiece then collapses into one unknown token. DESIGN.md,
"Words" (`prefix_safe`).
"""

from collections.abc import Iterator, Mapping

_BERT_LIKE = frozenset({"BertPreTokenizer", "Whitespace", "WhitespaceSplit"})

#: Models that build a token by merging or choosing pieces, and so never turn a whole text into one because it is long.
_PIECEWISE = frozenset({"BPE", "Unigram"})


def separates_words(description: Mapping[str, object]) -> bool:
    """Whether white space ends every token of the tokenizer that `description`, its JSON, describes."""
    piecewise = _kind(description.get("model")) in _PIECEWISE
    if any(_splits(step, piecewise) for step in _steps(description.get("pre_tokenizer"), "pretokenizers")):
        return True
    # As Llama's: the normalizer writes the mark of a word, and pieces begin with it.
    normalizers = _steps(description.get("normalizer"), "normalizers")
    return piecewise and any(_kind(step) == "Replace" and step.get("content") == "\u2581" for step in normalizers)


def _splits(step: Mapping[str, object], piecewise: bool) -> bool:
    kind = _kind(step)
    if kind == "Metaspace":
        # `split` false leaves the text whole, with a mark before each word.
        return piecewise or step.get("split", True) is True
    if kind == "ByteLevel":
        return step.get("use_regex", True) is True
    if kind == "Split":
        # Byte-level files of late carry GPT-2's expression, or one like it, as a step of their own.
        pattern = step.get("pattern")
        expression = pattern.get("Regex") if isinstance(pattern, Mapping) else None
        return isinstance(expression, str) and "\\s+" in expression
    return kind in _BERT_LIKE


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
