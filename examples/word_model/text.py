"""The words of Python's help texts."""

import re
from collections import Counter
from pydoc_data.topics import topics

import torch

UNKNOWN = 0


class Corpus:
    """The text as numbers: each word, mark and end of line is one of a vocabulary."""

    def __init__(self, vocabulary_size, validation_share=0.1):
        words = [
            word for name in sorted(topics) for word in re.findall(r"\w+|[^\w\s]|\n", topics[name].lower())
        ]
        common = [word for word, _ in Counter(words).most_common(vocabulary_size - 1)]
        self.vocabulary = ["<unknown>", *common]
        numbers = {word: number for number, word in enumerate(self.vocabulary)}
        tokens = torch.tensor([numbers.get(word, UNKNOWN) for word in words])
        split = int(len(tokens) * (1 - validation_share))
        self.training, self.validation = tokens[:split], tokens[split:]
