"""Does a cluster give the same result? The same reports, counted locally and on Spark: identical integers."""

# %%
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import hdr4me as hd

# %% An engine counts files of reports. Here, Spark runs with two threads.
rng = np.random.default_rng(1)
survey = hd.Survey(hd.Schema([hd.Numeric(f"x{i}", 0, 1) for i in range(8)]), epsilon=4.0)
people = pa.table({f"x{i}": rng.beta(2 + i, 5, 20_000) for i in range(8)})
with tempfile.TemporaryDirectory() as folder:
    reports = Path(folder, "reports.parquet")
    hd.engines.Local().perturb(people, survey, reports)
    here = hd.engines.Local().tally([reports], survey)
    with hd.engines.ENGINES["spark"]("local[2]") as spark:
        there = spark.tally([reports], survey)
assert here == there

# %%
figure = Figure(figsize=(6.4, 3.4), layout="constrained")
axes = figure.subplots()
answer = there.estimate()
low, high = answer.interval(0.95)
places = np.arange(len(answer))
axes.errorbar(places - 0.08, here.estimate().value, fmt="s", label="local", markersize=5)
axes.errorbar(
    places + 0.08, answer.value, [answer.value - low, high - answer.value], fmt="o", label="Spark, 95 %"
)
axes.set_xticks(places, answer.dimensions)
axes.set(ylabel="mean", title="identical counts")
axes.legend(frameon=False)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "on_spark.png", dpi=100)
