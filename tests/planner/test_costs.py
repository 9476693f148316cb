from typing import Any

import numpy as np
import pytest
from category_laws import grr, histogram, oue

from hdr4me.framework import deviation
from hdr4me.framework.laws import as_law
from hdr4me.mechanisms import mechanism, names
from hdr4me.planner import plan
from hdr4me.planner.candidates import classes, sampled_grid
from hdr4me.planner.reports import entry_variances
from hdr4me.planner.workload import Group, Workload


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_entries_are_the_tables(epsilon: float) -> None:
    """The planner's closed forms against the deployed integers: 5e-4 for tables cut into 256 cells."""
    for method, base, table in (
        ("grr", "optimal", grr(epsilon, 7)),
        ("oue", "optimal", oue(epsilon)),
        ("histogram", "duchi", histogram(epsilon, "duchi")),
        ("histogram", "piecewise", histogram(epsilon, "piecewise")),
    ):
        deployed = np.asarray(as_law(table.channel(7)).variance([0.0, 1.0]))
        assert np.array(entry_variances(method, base, epsilon, 7)) == pytest.approx(deployed, rel=5e-4)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", [n for n in names() if not n.startswith("optimal")])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1.99, 4.0, 16.0])
def test_deployed_tables_keep_what_the_plan_promises(name: str, epsilon: float) -> None:
    """Below ε = 2 the plan uses the continuous law, whose discretization is within 0.4 %; above, the table."""
    options = {"domain": (-1, 1)} if name == "square_wave" else {}
    table: Any = mechanism(name, epsilon=epsilon, **options).exact()
    planned = classes(Workload.of_size(9), name, "", 10_000, epsilon, (1,))
    deployed = deviation(table, users=10_000, dims=9, sampled=1, prior="uniform")
    assert float(planned.mse[0]) == pytest.approx(deployed.mse, rel=4e-3)


@pytest.mark.parametrize("prior", ["uniform", "worst"])
@pytest.mark.parametrize("method", ["grr", "oue", "histogram"])
def test_frequencies_are_the_frameworks(method: str, prior: Any) -> None:
    v, d, n, ε = 6, 4, 30_000, 1.5
    best = plan(users=n, dims=d, category_count=v, epsilon=ε, categorical=[method], prior=prior).best
    assert best.mechanism == best.categorical == method
    table = {"grr": grr(ε, v), "oue": oue(ε), "histogram": histogram(ε)}[method]
    f = np.full(v, 1 / v) if prior == "uniform" else None
    dev = deviation(table.channel(v), users=n, dims=d, sampled=best.sampled, probabilities=f)
    # 5e-3: the optimal table's curve (histogram); a worst frequency on a grid of 65; the divisor n − 1.
    assert best.mse == pytest.approx(dev.mse, rel=5e-3)


def test_categories_choose_between_methods() -> None:
    """GRR for small numbers of categories or large budgets; many categories: unary encoding; over 256: not GRR."""

    def first(v: int, ε: float) -> str:
        return plan(users=10**6, dims=5, category_count=v, epsilon=ε).best.mechanism

    assert (first(3, 1.0), first(100, 1.0), first(100, 6.0)) == ("grr", "subset", "grr")
    big = plan(users=10**6, dims=5, category_count=300, epsilon=8.0)
    assert {o.mechanism for o in big} == {"grr", "subset", "oue", "histogram"}


def test_mixed_workload_adds_up() -> None:
    mixed = Workload((Group(3), Group(2, size=4)))
    both = classes(mixed, "duchi", "oue", 10_000, 1.0, (1, 2))
    assert both.counts.tolist() == [3, 8]
    assert both.variances.shape == (2, 2)
    numeric = deviation(mechanism("duchi", epsilon=1.0), users=10_000, dims=5, prior="uniform")
    entries = deviation(oue(1.0).channel(4), users=10_000, dims=5, probabilities=[0.25] * 4)
    assert both.variances[0] == pytest.approx([float(numeric.variance), entries.variance[0]], rel=1e-4)
    assert mixed.what == "3 means and 8 frequencies"


def test_grid_ends_with_all_dimensions() -> None:
    for d in (1, 31, 32, 33, 100, 65_536):
        grid = sampled_grid(d)
        assert (grid[0], grid[-1]) == (1, d)
        assert grid == sorted(set(grid))
    assert len(sampled_grid(65_536)) < 120
