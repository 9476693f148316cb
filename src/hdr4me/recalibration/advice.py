"""One line that says what was done, what to expect of it, and whether it harms."""

from __future__ import annotations

from hdr4me.recalibration.expected import Announced

__all__ = ["TOLERANCE", "advise"]

_NAMES = {
    "l1": "HDR4ME L1",
    "l2": "HDR4ME L2",
    "zeros": "All zeros",
    "clip": "Clipping to the domain",
    "james_stein": "James–Stein shrinkage",
    "sure": "SURE-tuned soft threshold",
    "james_stein_mean": "James–Stein shrinkage towards the mean",
    "bayes": "Hierarchical Bayes",
    "bayes_by_noise": "Hierarchical Bayes for each level of noise",
    "structure": "Declared structure averaged with hierarchical Bayes",
    "none": "Nothing was changed",
}
_ACCOUNTS = {
    "null": "no dimension differs from zero by more than the noise explains",
    "centred": "some means stand out from zero",
    "free": "the means gather around a common value",
    "smooth": "the means follow a smooth distribution",
    "sharp": "the means gather in a few values",
}
# Expected errors are estimates themselves; a difference below this is not called harm.
TOLERANCE = 1.05


def advise(
    used: str,
    *,
    before: float,
    after: Announced,
    best: float | None,
    share: float,
    signal_share: float,
    probabilities: dict[str, float] | None,
) -> str:
    """The advice line from mean squared errors before, after, and under `auto` (None: this is `auto`, or needs none).

    >>> after = Announced(0.05, 0.002)
    >>> advise("l1", before=0.01, after=after, best=0.009, share=1.0, signal_share=1.0, probabilities=None)
    'HDR4ME L1 HARMS here: expected error 0.01 before, 0.05 ± 0.002 after (5.0 times worse); auto would give 0.009. The
    signal exceeds the noise in 100 % of the dimensions.'
    """
    line = _NAMES[used]
    if used == "bayes" and probabilities is not None:
        account = max(probabilities, key=lambda name: probabilities[name])
        line += f" ({_ACCOUNTS[account]}, weight {probabilities[account]:.2f})"
    if share < 1 and used != "clip":
        line += f", {100 * share:.0f} % of it"
    doubt = f" ± {after.standard_error:.1g}" if after.standard_error > 0 and used != "clip" else ""
    errors = f"expected error {before:.3g} before, {after.value:.3g}{doubt} after"
    if after.bound:
        # A bound above the error before is no measured harm.
        line += f": expected error {before:.3g} before, at most {after.value:.3g} after (the noise hides how much less)"
    elif after.value > TOLERANCE * before:
        ratio = f"{after.value / before:.1f} times worse" if before > 0 else "worse"
        line += f" HARMS here: {errors} ({ratio})"
    else:
        line += f": {errors}"
    if best is not None and after.value > TOLERANCE * best:
        line += f"; auto would give {'at most ' if after.bound else ''}{best:.3g}"
    return f"{line}. The signal exceeds the noise in {100 * signal_share:.0f} % of the dimensions."
