"""What the tests of several parts share: the corpora in three languages, where they are at hand, the standard library's
documentation topics, and a small WordPiece `tokenizer.json` trained from those, so that no vocabulary is committed.

It knows no part of the package. DESIGN.md, "Layout": `props/`.
"""

import json
import os
import pydoc_data.topics
from pathlib import Path

import pytest
from hypothesis import settings
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

# The first example of many a test loads a model; no test here is about time.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")


#: The folder of real texts, by default beside a checkout.
CORPORA = Path(os.environ.get("OVERFLOW_CORPORA", Path(__file__).parents[2] / "shared" / "corpora"))


@pytest.fixture(scope="session")
def corpora() -> list[str]:
    """The text of every record of the corpora; without them its tests are skipped."""
    files = sorted(CORPORA.glob("*.jsonl"))
    if not files:
        pytest.skip(f"no JSONL file in {CORPORA}; name the folder of the corpora in OVERFLOW_CORPORA")
    return [json.loads(line)["text"] for file in files for line in file.read_bytes().splitlines()]


@pytest.fixture(scope="session")
def topics() -> list[str]:
    """The standard library's documentation topics, English of 1 to 60 thousand characters, shortest first."""
    return sorted(pydoc_data.topics.topics.values(), key=len)


@pytest.fixture(scope="session")
def wordpiece_file(topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BERT-like: 2 special tokens a text, words of over 100 letters unknown.

    The file itself truncates to 64 tokens and pads every batch.
    """
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(topics, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding(length=100)
    path = tmp_path_factory.mktemp("wordpiece") / "tokenizer.json"
    tokenizer.save(str(path))
    return path
