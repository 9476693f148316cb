"""`deviation`: the law of θ̂ − θ̄ from a mechanism, users and dimensions (section IV-B: Lemmas 2 and 3, Theorem 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.framework import normal
from hdr4me.framework.laws import as_law, bias_of, calibrate
from hdr4me.framework.moments import (
    Floats,
    mean_inverse_count,
    sampled_variance,
    sampling_factor,
    shared_draw,
)
from hdr4me.framework.population import from_frequencies, from_prior, from_values, worst_case
from hdr4me.framework.prediction import MAX_ROWS, Prediction
from hdr4me.mechanisms import mechanism as named_mechanism
from hdr4me.mechanisms.registry import scaled_mechanism

Variance = Literal["exact", "paper"]
Domain = Literal["scaled", "own"]


@dataclass(frozen=True, eq=False)
class Deviation(Prediction):
    """θ̂_j − θ̄_j ~ N(bias_j, variance_j), one coordinate per mean (or frequency).

    Reports of different dimensions are perturbed independently. With m < d they share the sampling of users, so that
    the errors of dimensions with correlated values are correlated. The errors of frequencies of one dimension are
    always correlated. `covariance`, `mse_law` and `norm_law` include these correlations if the values are known.

    Parameters
    ----------
    reports_per_dimension
        The mean number of reports of a dimension.
    berry_esseens
        For each class of coordinates, the bound of the distance from the normal law (Theorem 2).
    kind
        "exact" or "paper": the formula of the variance.

    Examples
    --------
    >>> import hdr4me as hd
    >>> result = hd.deviation(hd.mechanism("duchi", epsilon=1.0), users=10_000, dims=4, sampled=4)
    >>> result.n_coordinates, bool(result.probability_within(0.1) > 0.9)
    (4, True)
    """

    reports_per_dimension: float
    berry_esseens: Floats
    kind: Variance

    @property
    def berry_esseen(self) -> Floats:
        """Theorem 2: the largest difference between the true and the normal distribution function."""
        return self._out(self.berry_esseens)

    @property
    def covariance(self) -> Floats:
        if self.dependence is None:
            return np.diag(np.repeat(self.variances, self.counts))
        return super().covariance

    def logpdf(self, deviation: ArrayLike) -> float:
        """Logarithm of Theorem 1's d-dimensional density at a deviation vector (a number: the same in each)."""
        x = np.asarray(deviation, dtype=np.float64)
        if x.ndim > 1 or (x.ndim == 1 and x.size != self.n_coordinates):
            raise InvalidInput(
                f"deviation of shape {x.shape} is not allowed: one number, or one for each of {self.n_coordinates} rows"
            )
        δ, v = np.repeat(self.biases, self.counts), np.repeat(self.variances, self.counts)
        return float(np.sum(-0.5 * (np.log(2 * np.pi * v) + (x - δ) ** 2 / v)))

    def pdf(self, deviation: ArrayLike) -> float:
        """Theorem 1's density itself, which can under- or overflow; `logpdf` does not."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.exp(self.logpdf(deviation)))

    def probability_some_exceed(self, threshold: ArrayLike) -> float:
        """P(some coordinate deviates by more): what Theorems 3 and 4 print (thresholds 1 and 2)."""
        *law, k = self._aligned(threshold)
        return normal.probability_some_exceed(*law, counts=k)

    def probability_all_exceed(self, threshold: ArrayLike) -> float:
        """P(every coordinate deviates by more): the premise that the proofs of Theorems 3 and 4 use."""
        *law, k = self._aligned(threshold)
        return normal.probability_all_exceed(*law, counts=k)


# fmt: off
@overload
def deviation(
    mechanism: Any, *, users: int, epsilon: float | None = None,
    dims: int = 1, sampled: int = 1, values: Any = None, probabilities: Any = None, prior: Any = None,
    inclusion: Any = None, correlation: Any = None, variance_formula: Variance = "exact", calibrated: bool = False,
    domain: Domain = "scaled",
) -> Deviation: ...
@overload
def deviation(
    mechanism: Any, *, users: int, epsilon: Sequence[float] | Floats,
    dims: int = 1, sampled: int = 1, values: Any = None, probabilities: Any = None, prior: Any = None,
    inclusion: Any = None, correlation: Any = None, variance_formula: Variance = "exact", calibrated: bool = False,
    domain: Domain = "scaled",
) -> list[Deviation]: ...
# fmt: on
def deviation(
    mechanism: Any,
    *,
    users: int,
    epsilon: float | Sequence[float] | Floats | None = None,
    dims: int = 1,
    sampled: int = 1,
    values: Any = None,
    probabilities: Any = None,
    prior: Any = None,
    inclusion: Any = None,
    correlation: Any = None,
    variance_formula: Variance = "exact",
    calibrated: bool = False,
    domain: Domain = "scaled",
) -> Deviation | list[Deviation]:
    """The law of θ̂ − θ̄ when n users each report sampled of dims dimensions (Lemmas 2 and 3, Theorem 1).

    With μ_i = E[t*|t_i], V̄ the mean of Var(t*|t_i), S² the variance of μ_i over users and r ~ Bin(n, m/d):

    - "exact":  Var θ̂_j = E[1/r | r ≥ 1] (V̄ + S²) − S²/n, which includes the random r and the sampling of users;
    - "paper":  Var θ̂_j = V̄/r with r = nm/d, the lemmas as printed.

    Parameters
    ----------
    mechanism
        A mechanism under the budget of ONE value, a name together with the total `epsilon` (split evenly over the
        sampled dimensions), or a sequence with one mechanism per dimension. Anything with mean, variance and
        abs_third_moment is a mechanism; for a category's table the coordinates are frequencies.
    users, dims, sampled
        n, d and m.
    values, probabilities
        The users' values. 1-D values are the same in each dimension; 2-D values or a sequence have one row per
        dimension and one column per user. `probabilities` are their shares; for a categorical table, `probabilities`
        alone are the frequencies of the categories. `values` may also be "uniform" or "worst".
    prior
        "uniform", a SciPy distribution, a histogram or an array instead of values. Without either, the worst case.
    inclusion
        The probability that a user answers a dimension: one number, or one per dimension. m/d unless given.
    correlation
        The correlation of the values of different dimensions: one number or a matrix. By default it is computed from
        2-D `values`, and 0 otherwise. With m < d it makes the errors correlated, which `mse_law` and `norm_law` use.
    variance_formula
        "exact" or "paper".
    calibrated
        Whether the affine mean of a biased mechanism is inverted.
    epsilon
        The total budget, if the mechanism is given by name. A list of budgets gives a list of deviations.
    domain
        The domain of the values, if the mechanism is given by name: "scaled" is [−1, 1], "own" the mechanism's own
        domain, which is [0, 1] for Square wave.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> tenths = [k / 10 for k in range(1, 11)]
    >>> dev = deviation(mechanism("piecewise", epsilon=0.001), users=10_000, dims=100, sampled=100,
    ...                 values=tenths, variance_formula="paper")
    >>> print(f"{dev.variance:.9f} {dev.probability_within(0.05):.8f}")
    533.210352970 0.00172767
    >>> print(f"{dev.joint_probability_within(0.05):.3e}")  # all 100 dimensions at once
    5.572e-277
    """
    if isinstance(epsilon, Sequence | np.ndarray):
        given: dict[str, Any] = {
            "values": values,
            "probabilities": probabilities,
            "prior": prior,
            "domain": domain,
        }
        given |= {"dims": dims, "sampled": sampled, "inclusion": inclusion, "correlation": correlation}
        given |= {"users": users, "variance_formula": variance_formula, "calibrated": calibrated}
        return [deviation(mechanism, epsilon=ε, **given) for ε in epsilon]
    if domain not in ("scaled", "own"):
        raise InvalidInput.of("domain", domain, "'scaled' or 'own'")
    for name, value in (("users", users), ("dims", dims), ("sampled", sampled)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InvalidInput.of(name, value, "a positive integer")
    if sampled > dims:
        raise InvalidInput.of("sampled", sampled, f"at most the number of dimensions, {dims}")
    if variance_formula not in ("exact", "paper"):
        raise InvalidInput.of("variance_formula", variance_formula, "'exact' or 'paper'")
    if isinstance(values, str):
        values, prior = None, (prior if values == "worst" else values)
    if isinstance(mechanism, str):
        if epsilon is None:
            raise InvalidInput("epsilon is missing: a mechanism given by name needs the total budget")
        make = scaled_mechanism if domain == "scaled" else named_mechanism
        mechanism = make(mechanism, epsilon=epsilon / sampled)
    shares = np.atleast_1d(np.asarray(sampled / dims if inclusion is None else inclusion, np.float64))
    if shares.shape not in ((1,), (dims,)) or not np.all((shares > 0) & (shares <= 1)):
        raise InvalidInput.of(
            "inclusion", inclusion, f"one probability above 0 and up to 1, or {dims} of them"
        )
    shares = shares[:1] if np.all(shares == shares[0]) else shares
    several = isinstance(mechanism, Sequence) or shares.size > 1
    mechanisms = mechanism if isinstance(mechanism, Sequence) else [mechanism] * dims
    if len(mechanisms) != dims:
        raise InvalidInput(
            f"{len(mechanisms)} mechanisms are not allowed for dims = {dims}: one for each dimension"
        )
    rows = [(mechanism, values, probabilities, prior, float(shares[0]))]
    if several:
        each = np.broadcast_to(shares, dims).tolist()
        rows = [
            (mechanisms[j], *(_row(given, j, dims) for given in (values, probabilities, prior)), each[j])
            for j in range(dims)
        ]
    parts = [_dimension(*row, users, variance_formula, calibrated=calibrated) for row in rows]
    biases, variances, bounds, spreads = (np.concatenate(column) for column in zip(*parts, strict=True))
    repeat = 1
    if not several:
        if isinstance(mechanism, Channel) and biases.size > 1:
            biases, variances, bounds, spreads = np.tile((biases, variances, bounds, spreads), dims)
        elif biases.size == 1:
            repeat = dims * (mechanism.response.n_coordinates() if isinstance(mechanism, Channel) else 1)
        elif biases.size != dims:
            raise InvalidInput(
                f"values with {biases.size} rows are not allowed for dims = {dims}: one, or one for each dimension"
            )
    counts = np.full(biases.size, repeat, dtype=np.int64)
    made = Deviation(biases, variances, counts, users * float(shares.mean()), bounds, variance_formula)
    if variance_formula == "paper":
        return made
    if isinstance(mechanism, Channel) and not several:
        known = _of_frequencies(mechanism, probabilities, users, float(shares[0]))
    else:
        fraction = shared_draw(users, dims, sampled, even=inclusion is None)
        correlations = _correlation(correlation, values, probabilities, dims)
        known = _of_means(variances, spreads, counts, fraction, correlations)
    return replace(made, dependence=known)


def _of_frequencies(
    channel: Channel, frequencies: Any, users: int, share: float
) -> Callable[[], Floats] | None:
    """The covariance of the frequencies of one dimension; None if they are unknown or too many."""
    if frequencies is None or np.ndim(frequencies) != 1 or not 1 < len(frequencies) <= MAX_ROWS:
        return None
    f = np.asarray(frequencies, dtype=np.float64)

    def covariance() -> Floats:
        noise = channel.response.covariance(np.eye(f.size), f)
        spread = (np.diag(f) - np.outer(f, f)) * users / max(users - 1, 1)
        return sampled_variance(noise, spread, users, mean_inverse_count(users, share))

    return covariance


def _of_means(
    variances: Floats,
    spreads: Floats,
    counts: NDArray[np.int64],
    fraction: float,
    correlation: Floats | float,
) -> Callable[[], Floats] | None:
    """The covariance of means, `fraction` from `shared_draw`; None if they are independent, or too many."""
    n = int(counts.sum())
    if fraction == 0 or not 1 < n <= MAX_ROWS or not np.any(correlation):
        return None
    if np.ndim(correlation) and np.shape(correlation) != (n, n):
        return None

    def covariance() -> Floats:
        sd = np.sqrt(np.repeat(spreads, counts))
        found = fraction * np.outer(sd, sd) * correlation
        np.fill_diagonal(found, np.repeat(variances, counts))
        return np.asarray(found)

    return covariance


def _correlation(given: Any, values: Any, probabilities: Any, dims: int) -> Floats | float:
    """The correlation of the values of different dimensions: given, computed from one row per dimension, or 0."""
    if given is not None:
        r = np.asarray(given, dtype=np.float64)
        if r.shape not in ((), (dims, dims)) or not np.all(np.abs(r) <= 1):
            raise InvalidInput.of(
                "correlation", given, f"a number from -1 to 1, or a matrix of {dims} rows and columns"
            )
        return float(r) if r.ndim == 0 else r
    rows = _matrix(values)
    shares = None if probabilities is None else _matrix(probabilities)
    if rows is None or len(rows) != dims or not 1 < dims <= MAX_ROWS or rows.shape[1] < 2:
        return 0.0
    if shares is not None and len(shares) > 1:
        return 0.0  # each dimension has its own shares: which values belong to one user is not known
    weights = np.full(rows.shape[1], 1 / rows.shape[1]) if shares is None else shares[0]
    centered = rows - (rows @ weights)[:, None]
    covariance = (centered * weights) @ centered.T
    sd = np.sqrt(np.diag(covariance))
    safe = np.where(sd > 0, sd, 1.0)
    return np.asarray(covariance / np.outer(safe, safe))


def _matrix(given: Any) -> Floats | None:
    """Numbers in two axes (one axis: one row); None if they are not."""
    if given is None or isinstance(given, str):
        return None
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return np.atleast_2d(found) if 1 <= found.ndim <= 2 else None


def _row(given: Any, j: int, dims: int) -> Any:
    """Dimension j's part of an argument that has one entry per dimension (nested), or one for all."""

    def is_number(x: Any) -> bool:
        return x is None or isinstance(x, str) or hasattr(x, "ppf")

    if is_number(given) or (isinstance(given, np.ndarray) and given.ndim == 1):
        return given
    if not any(is_number(x) or isinstance(x, (Sequence, np.ndarray)) for x in given):
        return given
    if len(given) != dims:
        raise InvalidInput(f"{len(given)} entries are not allowed for dims = {dims}: one for each dimension")
    return given[j]


def _dimension(
    mechanism: Any,
    values: Any,
    probabilities: ArrayLike | None,
    prior: Any,
    share: float,
    users: int,
    variance_formula: Variance,
    *,
    calibrated: bool,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Bias, variance, Berry–Esseen bound and spread of one dimension's coordinates (one, or one per category).

    The bound includes the sampling of users, as the variance does: with κ = 1 − 1/(n E[1/r]) the summand has the
    variance V̄ + κS² and, by Minkowski's inequality, a third absolute moment of at most (ρ̄^{1/3} + √κ·(E|μ − E
    μ|³)^{1/3})³; r^{-1/2} enters as √E[1/r] ≥ E r^{-1/2}.
    """
    law = calibrate(as_law(mechanism)) if calibrated else as_law(mechanism)
    exact = variance_formula == "exact"
    inverse = mean_inverse_count(users, share) if exact else 1.0 / (users * share)
    if prior is not None:
        if values is not None or probabilities is not None:
            raise InvalidInput(
                "prior together with values or probabilities is not allowed: give only one of them"
            )
        population = from_prior(prior, law)
    elif values is not None:
        population = from_values(values, probabilities)
    elif probabilities is None:
        population = worst_case(law, inverse, users, sampling=exact)
    elif getattr(law, "points", None) is None:
        raise InvalidInput("probabilities without values are not allowed for a numeric mechanism")
    else:
        population = from_frequencies(probabilities)
    t = population.values
    μ = np.asarray(law.mean(t), dtype=np.float64)
    away = μ - population.expect(μ)[..., None]
    noise = population.expect(np.asarray(law.variance(t), dtype=np.float64))
    third = population.expect(np.asarray(law.abs_third_moment(t), dtype=np.float64))
    spread = population.expect(away**2)
    κ = float(sampling_factor(users, inverse)) if exact else 0.0
    if exact and population.finite and users > 1:
        spread = spread * (users / (users - 1))
    if κ:
        third = (np.cbrt(third) + np.sqrt(κ) * np.cbrt(population.expect(np.abs(away) ** 3))) ** 3
    one = noise + κ * spread
    bound = normal.berry_esseen_bound(third, one, 1.0 / inverse)
    result = population.expect(bias_of(law, t)), one * inverse, bound, spread
    return tuple(np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in result)  # type: ignore[return-value]
