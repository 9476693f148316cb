"""Frequent words without a list of words: prefix extension over five rounds, on the frequencies of English words.

    pip install wordfreq
    PYTHONPATH=src python benchmarks/unknown_words.py benchmarks/results/unknown_words.md

A million users have one word each, drawn by the frequencies of the package wordfreq (20,000 words of a to z). A word
ends with "_". A round asks 200,000 other users for a longer prefix. Prefixes are kept by one of two rules: those of
`top()`, or those above .75·√(2 ln candidates) standard errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from string import ascii_lowercase

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
from wordfreq import top_n_list, word_frequency  # type: ignore[import-not-found]

import hdr4me as hd
from hdr4me.atomic import write_text
from hdr4me.simulation.collection import simulate_tally

USERS, LENGTHS, MOST, TIMES = 1_000_000, (2, 3, 4, 5, 6), 200, 4
LETTERS = [*ascii_lowercase, "_"]


def population(rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """The users' words with their end mark, and the 20 most frequent words."""
    words = [word for word in top_n_list("en", 20_000) if set(word) <= set(ascii_lowercase)]
    shares = np.array([word_frequency(word, "en") for word in words])
    drawn = rng.choice(len(words), USERS, p=shares / shares.sum())
    padded = np.array([word + "_" for word in words])
    return padded[drawn].tolist(), [word + "_" for word in words[:20]]


def by_top(answer: hd.Answer) -> list[str]:
    """Prefixes that are significantly larger than all others."""
    return [str(name) for name in answer.top(MOST).categories]


def by_threshold(answer: hd.Answer) -> list[str]:
    """Prefixes above .75·√(2 ln candidates) standard errors, the largest first."""
    z = answer.value / answer.standard_error
    kept = [i for i in np.argsort(-z).tolist() if z[i] > 0.75 * np.sqrt(2 * np.log(len(answer)))]
    return [str(answer.categories[i]) for i in kept[:MOST]]


def found(words: list[str], epsilon: float, keep: Callable[[hd.Answer], list[str]], seed: int) -> list[str]:
    """The prefixes of the last round."""
    prefixes, size = [""], USERS // len(LENGTHS)
    for k, length in enumerate(LENGTHS):
        step = length - (LENGTHS[k - 1] if k else 0)
        candidates = prefixes
        for _ in range(step):
            candidates = [p + x for p in candidates for x in (LETTERS if not p.endswith("_") else [""])]
        names = sorted({p for p in candidates if p != "_"})
        if len(names) < 2:
            return names
        asked = hd.Categorical("word", [*names, "(other)"], default="(other)")
        users = pa.table({"word": [word[:length] for word in words[k * size : (k + 1) * size]]})
        tally = simulate_tally(users, hd.Survey(hd.Schema([asked]), epsilon=epsilon), seed=seed + k)
        prefixes = [p for p in keep(tally.estimate().frequencies("word")) if p != "(other)"]
    return prefixes


def main(path: str | None) -> None:
    lines = [
        "# Frequent words without a list of words\n",
        "Made by `benchmarks/unknown_words.py`: a million users, five rounds,",
        f"the share of the 20 most frequent English words that are found, and words found in all ({TIMES} runs).\n",
        "| ε | rule | of the top 20 | words found | of these among the 1,000 most frequent |",
        "|---:|---|---:|---:|---:|",
    ]
    for epsilon in (2.0, 4.0):
        for name, keep in (("`top()`", by_top), (".75·√(2 ln candidates) standard errors", by_threshold)):
            shares, sizes, right = [], [], []
            for run in range(TIMES):
                words, top = population(np.random.default_rng(run))
                known = {word + "_" for word in top_n_list("en", 1000)}
                last = [p for p in found(words, epsilon, keep, 10 * run) if p.endswith("_")]
                shares.append(len(set(last) & set(top)) / 20)
                sizes.append(len(last))
                right.append(len(set(last) & known))
            numbers = f"{100 * np.mean(shares):.0f} % | {np.mean(sizes):.1f} | {np.mean(right):.1f}"
            lines.append(f"| {epsilon:g} | {name} | {numbers} |")
            print(lines[-1], flush=True)
    if path is not None:
        write_text(path, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
