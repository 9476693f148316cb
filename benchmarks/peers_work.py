"""Runs inside the peers' own environment and imports nothing of ours: one JSON object a line in, one out.

Tasks: `versions`, `frequencies` (reports and estimates of a frequency oracle), `longitudinal`, `client_speed`,
`variance`, `samples`, `response_epsilon` and `bound`. A task whose library is absent, or that fails, answers with an
error.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import random
import sys
import time
import warnings
from importlib import import_module
from typing import Any

warnings.simplefilter("ignore")

LIBRARIES = (
    "multi-freq-ldpy",
    "pure-ldp",
    "ldp-toolbox",
    "diffprivlib",
    "opendp",
    "dp-accounting",
    "numpy",
)


def versions() -> dict[str, str | None]:
    """The version of each library; null where it is absent."""
    found: dict[str, str | None] = {}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def frequencies(
    library: str, protocol: str, epsilon: float, k: int, values: list[int], seed: int
) -> dict[str, Any]:
    """Every value reported and the frequencies estimated, unbiased: seconds of the clients, and the estimates."""
    np: Any = import_module("numpy")
    np.random.seed(seed)
    random.seed(seed)
    client, estimate = _ORACLES[library](protocol, epsilon, k)
    client(values[0])  # compiled before it is timed
    start = time.process_time()
    reports = [client(value) for value in values]
    seconds = time.process_time() - start
    return {"seconds": seconds, "estimate": [float(x) for x in estimate(reports)]}


def client_speed(library: str, protocol: str, epsilon: float, k: int, n: int) -> dict[str, Any]:
    """Seconds that n reports take."""
    client, _ = _ORACLES[library](protocol, epsilon, k)
    client(0)
    values = [i % k for i in range(n)]
    start = time.process_time()
    for value in values:
        client(value)
    return {"seconds": time.process_time() - start}


def _multi_freq(protocol: str, epsilon: float, k: int) -> tuple[Any, Any]:
    """multi-freq-ldpy; its estimator clips and normalizes, which is taken out so that estimates are unbiased."""
    name = {"SUE": "UE", "OUE": "UE", "BLH": "LH", "OLH": "LH", "THE": "HE"}.get(protocol, protocol)
    module: Any = import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")
    np: Any = import_module("numpy")
    module.MI = lambda counts, n, p, q: (np.asarray(counts) / n - q) / (p - q)
    client, aggregate = getattr(module, f"{name}_Client"), getattr(module, f"{name}_Aggregator_MI")
    own = {"optimal": False} if protocol in ("SUE", "BLH") else {}
    return (
        lambda value: client(value, k, epsilon, **own),
        lambda reports: (
            aggregate(reports, epsilon, **own) if name == "UE" else aggregate(reports, k, epsilon, **own)
        ),
    )


def longitudinal(
    protocol: str, permanent: float, first: float, k: int, values: list[int], seed: int, bits: int = 1
) -> dict[str, Any]:
    """Unbiased estimates of multi-freq-ldpy's memoization protocols, from the first report of every user.

    `bits` is the number of bits of dBitFlipPM, which has one bucket for each category here, and no second stage.
    """
    np: Any = import_module("numpy")
    np.random.seed(seed)
    random.seed(seed)
    own = {"optimal": False} if protocol == "L_BLH" else {}
    name = {"L_BLH": "L_LH", "LOLOHA": "L_LH"}.get(protocol, protocol)
    module: Any = import_module(f"multi_freq_ldpy.long_freq_est.{name}")
    if protocol == "dBitFlipPM":  # its aggregator clips; this is the same estimate before clipping
        rows = np.array([module.dBitFlipPM_Client(value, k, k, bits, permanent) for value in values])
        root = math.exp(permanent / 2)
        decoded = np.where(rows >= 0, (rows * (root + 1) - 1) / (root - 1), 0.0)
        return {"estimate": [float(x) for x in decoded.mean(axis=0) * k / bits]}

    def unbiased(counts: Any, n: int, p1: float, q1: float, p2: float, q2: float) -> Any:
        return (np.asarray(counts) / n - q1 * (p2 - q2) - q2) / ((p1 - q1) * (p2 - q2))

    module.MI_long = unbiased
    client, aggregate = getattr(module, f"{name}_Client"), getattr(module, f"{name}_Aggregator_MI")
    reports = [client(value, k, permanent, first, **own) for value in values]
    arguments = (k,) if name in ("L_GRR", "L_LH") else ()
    return {"estimate": [float(x) for x in aggregate(reports, *arguments, permanent, first, **own)]}


HASHES, WIDTH = (
    128,
    1024,
)  # of the sketches: Apple's width, and enough hash functions that collisions average out
FUNCTIONS = 10_000  # of fast local hashing


class _Arrays:
    """NumPy for pure-LDP's sketches: `zeros(None)`, which NumPy 2 refuses, is a scalar as before."""

    def __getattr__(self, name: str) -> Any:
        np: Any = import_module("numpy")
        return (
            (lambda shape: np.zeros(() if shape is None else shape)) if name == "zeros" else getattr(np, name)
        )


def _pure(protocol: str, epsilon: float, k: int) -> tuple[Any, Any]:
    """pure-LDP."""
    at: dict[str, Any] = {"index_mapper": lambda x: x}
    where = "pure_ldp.frequency_oracles"
    base: Any = import_module("pure_ldp.core._freq_oracle_server")
    base.np = _Arrays()
    if protocol in ("BLH", "OLH"):
        module = import_module(f"{where}.local_hashing")
        client = module.LHClient(epsilon, k, use_olh=protocol == "OLH", **at)
        server = module.LHServer(epsilon, k, use_olh=protocol == "OLH", **at)
    elif protocol in ("SUE", "OUE"):
        module = import_module(f"{where}.unary_encoding")
        client = module.UEClient(epsilon, k, use_oue=protocol == "OUE", **at)
        server = module.UEServer(epsilon, k, use_oue=protocol == "OUE", **at)
    elif protocol in ("SHE", "THE"):
        module = import_module(f"{where}.histogram_encoding")
        client = module.HEClient(epsilon, k, **at)
        server = module.HEServer(epsilon, k, use_the=protocol == "THE", **at)
    elif protocol == "HM":
        module = import_module(f"{where}.hadamard_mechanism")
        size = 1 << (k - 1).bit_length()  # its transform needs a power of two
        client = module.HadamardMechClient(epsilon, size, 1, use_optimal_t=True, **at)
        server = module.HadamardMechServer(epsilon, size, 1, use_optimal_t=True, **at)
    elif protocol == "HR":
        module = import_module(f"{where}.hadamard_response")
        server = module.HadamardResponseServer(epsilon, k, **at)
        client = module.HadamardResponseClient(epsilon, k, server.get_hash_funcs(), **at)
    elif protocol in ("CMS", "HCMS"):
        module = import_module(f"{where}.apple_cms")
        own = {"is_hadamard": protocol == "HCMS"}
        server = module.CMSServer(epsilon, HASHES, WIDTH, **own)
        client = module.CMSClient(epsilon, server.get_hash_funcs(), WIDTH, **own)
    elif protocol == "PCS":  # its estimates lack the factor (e^ε + 1)/(e^ε − 1), which is put in
        module = import_module(f"{where}.priv_count_sketch")
        server = module.PCSServer(epsilon, HASHES, WIDTH, use_median=False, **at)
        client = module.PCSClient(epsilon, HASHES, WIDTH, server.get_hash_funcs())
    elif protocol == "FLH":
        module = import_module(f"{where}.local_hashing")
        # The default of the client is binary hashing, that of the server is optimized hashing.
        server = module.FastLHServer(epsilon, k, FUNCTIONS, use_olh=True, **at)
        client = module.FastLHClient(epsilon, k, FUNCTIONS, use_olh=True, **at)
    else:
        module = import_module(f"{where}.direct_encoding")
        client, server = module.DEClient(epsilon, k, **at), module.DEServer(epsilon, k, **at)

    def estimate(reports: list[Any]) -> Any:
        server.aggregate_all(reports)
        found = server.estimate_all(range(k), suppress_warnings=True, normalization=0)
        factor = 1 / math.tanh(epsilon / 2) if protocol == "PCS" else 1.0
        return [factor * x / len(reports) for x in found]

    return client.privatise, estimate


_ORACLES = {"multi-freq-ldpy": _multi_freq, "pure-ldp": _pure}


def variance(library: str, protocol: str, epsilon: float, k: int) -> dict[str, float]:
    """p and q of a library's protocol, and the variance that it states for one user without the category."""
    np: Any = import_module("numpy")
    if library == "ldp-toolbox":
        name, kind = {
            "GRR": ("grr", "GeneralizedRandomizedResponse"),
            "SS": ("ss", "SubsetSelection"),
        }[protocol]
        made = getattr(import_module(f"ldp_toolbox.protocols.frequency.{name}"), kind)(k, epsilon)
        p, q = float(made.p), float(made.q)
        stated = made.get_variance() if hasattr(made, "get_variance") else q * (1 - q) / (p - q) ** 2
        return {"p": p, "q": q, "variance": float(stated)}
    if library == "multi-freq-ldpy":
        stated = import_module("multi_freq_ldpy.pure_frequency_oracles.Variance_PURE").VAR_Pure
        e = float(np.exp(epsilon))
        w = int(max(1, np.rint(k / (e + 1))))
        p = w * e / (w * e + k - w)  # as its SS_Client and SS_Aggregator have them
        q = ((w - 1) * (w * e) + (k - w) * w) / ((k - 1) * (w * e + k - w))
        if protocol == "GRR":
            p, q = e / (e + k - 1), 1 / (e + k - 1)
        return {"p": float(p), "q": float(q), "variance": float(stated(p, q))}
    oracles: Any = import_module("pure_ldp.frequency_oracles")
    kind, own = {
        "GRR": ("DEServer", {}),
        "SUE": ("UEServer", {"use_oue": False}),
        "THE": ("HEServer", {"use_the": True}),
        "OLH": ("LHServer", {"use_olh": True}),
        "BLH": ("LHServer", {"use_olh": False}),
    }[protocol]
    server = getattr(oracles, kind)(epsilon, k, **own)
    p, q = float(server.p), 1 / server.g if kind == "LHServer" else float(server.q)
    return {"p": p, "q": q, "variance": q * (1 - q) / (p - q) ** 2}


def protocols() -> dict[str, list[str]]:
    """The public protocols of each library: classes, modules with clients, or constructors."""
    inspect: Any = import_module("inspect")
    found: dict[str, list[str]] = {}
    names = []
    for name in ("frequency_oracles", "heavy_hitters"):
        module = import_module(f"pure_ldp.{name}")
        names += [x for x, _ in inspect.getmembers(module, inspect.isclass) if x.endswith("Client")]
    found["pure-ldp"] = names
    multi: Any = import_module("multi_freq_ldpy")
    names = []
    for info in import_module("pkgutil").walk_packages(multi.__path__, "multi_freq_ldpy."):
        module = import_module(info.name)
        names += [x for x in dir(module) if x.endswith("_Client")]
    found["multi-freq-ldpy"] = sorted(set(names))
    module = import_module("diffprivlib.mechanisms")
    found["diffprivlib"] = [x for x, _ in inspect.getmembers(module, inspect.isclass)]
    module = import_module("opendp.measurements")
    found["OpenDP"] = [x for x in dir(module) if x.startswith("make_")]
    return found


def bloom(f: float, n: int, seed: int) -> dict[str, float]:
    """The share of the bits of a Bloom filter that are 1 and are reported as 1 by RAPPOR's client."""
    random.seed(seed)
    module: Any = import_module("pure_ldp.frequency_oracles.rappor")
    client = module.RAPPORClient(f, 16, [[lambda _: 3]], 1, index_mapper=lambda x: x)
    return {"share": sum(client.privatise(0)[0][3] for _ in range(n)) / n}


def samples(library: str, mechanism: str, epsilon: float, value: float, n: int, seed: int) -> dict[str, Any]:
    """n reports of one value by diffprivlib."""
    mechanisms: Any = import_module("diffprivlib.mechanisms")
    if mechanism == "laplace":
        made = mechanisms.Laplace(epsilon=epsilon, sensitivity=2.0, random_state=seed)
        return {"samples": [made.randomize(value) for _ in range(n)]}
    made = mechanisms.Binary(epsilon=epsilon, value0="0", value1="1", random_state=seed)
    return {"samples": [int(made.randomize(str(int(value)))) for _ in range(n)]}


def response_epsilon(library: str, probability: float) -> dict[str, float]:
    """ε of binary randomized response that reports the true value with `probability`."""
    if library == "opendp":
        dp: Any = import_module("opendp.prelude")
        dp.enable_features("contrib")
        return {"epsilon": float(dp.m.make_randomized_response_bool(probability).map(1))}
    accounting: Any = import_module("dp_accounting.pld.privacy_loss_distribution")
    made = accounting.from_randomized_response(2 * (1 - probability), 2)
    return {"epsilon": float(made.get_epsilon_for_delta(0.0))}


def bound(counts: list[int], n: int, confidence: float) -> dict[str, float]:
    """The lower bound of ε from two counts as LDP-Auditor has it: Clopper–Pearson on both sides."""
    beta: Any = import_module("scipy.stats").beta
    alpha = 1 - confidence
    low = beta.ppf(alpha / 2, counts[0], n - counts[0] + 1) if counts[0] else 0.0
    high = beta.ppf(1 - alpha / 2, counts[1] + 1, n - counts[1]) if counts[1] < n else 1.0
    return {"epsilon": max(0.0, math.log(low / high)) if low > 0 else 0.0}


TASKS: dict[str, Any] = {
    f.__name__: f
    for f in (
        versions,
        protocols,
        frequencies,
        longitudinal,
        client_speed,
        variance,
        bloom,
        samples,
        response_epsilon,
        bound,
    )
}


def main() -> None:
    """Answer until there is nothing more to read."""
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = TASKS[asked.pop("task")](**asked)
        except Exception as error:  # whatever a library raises is its answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
