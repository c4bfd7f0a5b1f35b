"""Real texts and a real tokenizer for the division: the standard library's documentation, and a WordPiece vocabulary
trained from it."""

import pydoc_data.topics
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers


@pytest.fixture(scope="session")
def topics() -> list[str]:
    """English documentation topics of up to 12,000 characters, shortest first."""
    return sorted((text for text in pydoc_data.topics.topics.values() if len(text) <= 12_000), key=len)


@pytest.fixture(scope="session")
def wordpiece(topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WordPiece `tokenizer.json` as BERT's is: 2 special tokens a text, words of over 100 letters unknown."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=2000, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator(topics, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    )
    path = tmp_path_factory.mktemp("wordpiece") / "tokenizer.json"
    tokenizer.save(str(path))
    return path
