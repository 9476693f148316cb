"""The recipe for unknown words in docs/categories.md, on the words of scikit-learn's descriptions of its data."""

from __future__ import annotations

import re
from collections import Counter
from string import ascii_lowercase

import numpy as np
import pyarrow as pa
from sklearn import datasets

import hdr4me as hd
from hdr4me.simulation.collection import simulate_tally

USERS, LENGTHS = 200_000, (2, 3, 4, 5)
LOADERS = ("load_breast_cancer", "load_diabetes", "load_digits", "load_iris", "load_linnerud", "load_wine")


def kept(answer: hd.Answer, by_top: bool) -> list[str]:
    if by_top:
        names = answer.top(200).categories
    else:
        z = answer.value / answer.standard_error
        names = tuple(np.array(answer.categories)[z > 0.75 * np.sqrt(2 * np.log(len(answer)))].tolist())
    return [str(name) for name in names if name != "(other)"]


def found(words: list[str], by_top: bool) -> set[str]:
    """The words of at most four letters that are found in four rounds."""
    prefixes, size = [*ascii_lowercase], USERS // len(LENGTHS)
    for k, length in enumerate(LENGTHS):
        longer = {p if p.endswith("_") else p + x for p in prefixes for x in (*ascii_lowercase, "_")}
        if not longer:
            return set()
        asked = hd.Categorical("word", [*sorted(longer), "(other)"], default="(other)")
        users = pa.table({"word": [word[:length] for word in words[k * size : (k + 1) * size]]})
        tally = simulate_tally(users, hd.Survey(hd.Schema([asked]), epsilon=4.0), seed=k)
        prefixes = kept(tally.estimate().frequencies("word"), by_top)
    return {p for p in prefixes if p.endswith("_")}


def test_frequent_words_are_found() -> None:
    """Ten most frequent words of at most four letters, seeded: the threshold finds at least 8, and `top` at most 4."""
    text = " ".join(getattr(datasets, name)().DESCR for name in LOADERS).lower()
    count = Counter(word for word in re.findall(r"[a-z]+", text))
    words, numbers = zip(*sorted(count.items()), strict=True)
    shares = np.array(numbers) / sum(numbers)
    drawn = np.random.default_rng(1).choice([word + "_" for word in words], USERS, p=shares).tolist()
    top = {word + "_" for word, _ in count.most_common() if len(word) <= 4}
    largest = sorted(top, key=lambda word: -count[word[:-1]])[:10]
    assert len(found(drawn, by_top=False) & set(largest)) >= 8
    assert len(found(drawn, by_top=True) & set(largest)) <= 4
