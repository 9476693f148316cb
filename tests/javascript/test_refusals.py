"""The browser client refuses the same surveys as the Python client."""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hdr4me.channels.agreement import Agreement
from hdr4me.channels.k_subset import KSubset, heaviest
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.projective import Projective
from hdr4me.channels.subset import Subset
from hdr4me.errors import HDR4MEError
from hdr4me.survey import Categorical, Numeric, Product, Question, Schema, Selection, Survey, Vector
from hdr4me.survey.canonical import fingerprint
from hdr4me.survey.derived import Bucket, Hash, Joint, Outer, Prefix

HERE = Path(__file__).parent
MODULE = HERE.parents[1] / "clients" / "javascript" / "hdr4me.js"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")


def mixed() -> dict[str, Any]:
    schema = Schema(
        [
            Numeric("a", -1, 1),
            Numeric("b", 0, 10, optional=True),
            Categorical("c", ["x", "y", "z"]),
            Categorical("d", list("abcdefghij")),
            Selection("s", list("abcdef"), at_most=2),
        ]
    )
    survey = Survey(schema, 3.0, mechanism="duchi", sampled=3, categorical="oue")
    document: dict[str, Any] = json.loads(survey.to_json())
    towns = Survey(Schema([Categorical("d", list("abcdefghij"))]), 1.0, categorical="projective")
    document["channels"][document["questions"][3]["channel"]] = json.loads(towns.to_json())["channels"][0]
    return signed(document)


def signed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its correct fingerprint, which an attacker can compute too."""
    return {**document, "fingerprint": fingerprint(document)}


def python_refusal(document: dict[str, Any]) -> str:
    """The reason why Python refuses the survey; empty if it accepts the survey."""
    try:
        Survey.from_json(json.dumps(document))
    except HDR4MEError as error:
        return str(error)
    return ""


def javascript_accepts(documents: list[dict[str, Any]], folder: Path) -> list[bool]:
    path = folder / "documents.json"
    path.write_text(json.dumps(documents), "utf-8")
    program = f"""
        import {{ readFileSync }} from "node:fs";
        const {{ readSurvey }} = await import({json.dumps(str(MODULE))});
        const found = [];
        for (const document of JSON.parse(readFileSync({json.dumps(str(path))}, "utf8")))
          found.push(await readSurvey(document).then(() => "", ({{ name }}) => name));
        console.log(JSON.stringify(found));
    """
    done = subprocess.run(
        [str(NODE), "--input-type=module", "-e", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    assert set(found) <= {"", "FormatError", "Unsupported"}
    return [not error for error in found]


def tampered() -> dict[str, dict[str, Any]]:
    """Documents that do not protect participants, each with a new fingerprint."""
    found: dict[str, dict[str, Any]] = {}
    base = mixed()
    kinds = {channel["kind"]: k for k, channel in enumerate(base["channels"])}
    optional = next(
        k for k, c in enumerate(base["channels"]) if c.get("takes", [{}])[0].get("reads") == "optional"
    )
    families = {c["family"]["name"]: k for k, c in enumerate(base["channels"]) if c["kind"] == "heavy_set"}

    def add(name: str, *path: Any, value: Any = None, by: int = 0) -> None:
        document = copy.deepcopy(base)
        node = document
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = node[path[-1]] + by if by else value
        found[name] = signed(document)

    for kind in ("table", "entries"):
        add(f"{kind}: a row that does not sum", "channels", kinds[kind], "weights", 0, 0, by=1)
        rows = copy.deepcopy(base["channels"][kinds[kind]]["weights"])
        high, low = (rows[0].index(end(rows[0])) for end in (max, min))
        moved = copy.deepcopy(rows)
        moved[0][high], moved[0][low] = rows[0][high] + rows[0][low] // 2, rows[0][low] - rows[0][low] // 2
        add(f"{kind}: more is moved to the likely cell", "channels", kinds[kind], "weights", value=moved)
        zero = copy.deepcopy(rows)
        zero[0][high], zero[0][low] = rows[0][high] + rows[0][low], 0
        add(f"{kind}: a cell that one input never gives", "channels", kinds[kind], "weights", value=zero)
        part = [[w + 0.5 * (-1) ** y if y < 2 else w for y, w in enumerate(row)] for row in rows]
        add(f"{kind}: halves of weights", "channels", kinds[kind], "weights", value=part)
        add(f"{kind}: a smaller epsilon", "channels", kinds[kind], "epsilon", value=0.5)
    for name, k in families.items():
        add(f"{name}: more than the largest weight", "channels", k, "weight", by=1000)
        add(f"{name}: a small weight", "channels", k, "weight", value=5)
        add(f"{name}: no weight", "channels", k, "weight", value=0)
        add(f"{name}: all weight", "channels", k, "weight", value=1 << 32)
        add(f"{name}: more than all weight", "channels", k, "weight", value=1 << 33)
    add("subset without members", "channels", families["privset"], "family", "chosen", value=0)
    add("privset of all", "channels", families["privset"], "family", "chosen", value=8)
    add("an order that is no prime", "channels", families["projective"], "family", "order", value=9)
    found["a modulus with a factor"] = copy.deepcopy(found["an order that is no prime"])
    found["a modulus with a factor"]["channels"][families["projective"]]["family"]["modulus"] = [2, 0]
    add("too few points", "channels", families["projective"], "family", "length", value=1)
    add("a fraction of an order", "channels", families["projective"], "family", "order", value=2.5)
    add("a default out of range", "dimensions", 0, "default", value=5)
    add("a default that is no category", "dimensions", 2, "default", value="w")
    add("no range", "dimensions", 0, "high", value=-1)
    add("an endless range", "dimensions", 0, "low", value=-1.7e308)
    found["an endless range"]["dimensions"][0]["high"] = 1.7e308
    found["an endless range"] = signed(found["an endless range"])
    add("fewer categories than the channel", "dimensions", 2, "categories", value=["x", "y"])
    add("a number for a category's channel", "questions", 0, "channel", value=kinds["entries"])
    add("more inputs than rows", "channels", optional, "takes", 0, "size", by=1)
    for m in (0, -1, 1.5, 4, 6, "3"):
        add(f"sampled = {m}", "n_sampled", value=m)
    add("epsilon below what the channels spend", "epsilon", value=2.9999999999999996)
    add("another version", "version", value=3)
    add("an unknown channel", "channels", 0, "kind", value="mystery")
    add("an unknown family", "channels", families["privset"], "family", "name", value="constructor")
    add("an unknown dimension", "dimensions", 0, "type", value="constructor")
    add("a question without a channel", "questions", 0, "channel", value=99)
    found["not signed"] = {**base, "epsilon": 30.0}
    found["no fingerprint"] = {key: value for key, value in base.items() if key != "fingerprint"}
    return found


def test_documents_without_privacy_are_refused(tmp_path: Path) -> None:
    documents = tampered()
    good = [
        mixed(),
        *(json.loads(path.read_text("utf-8")) for path in HERE.parent.glob("golden/*.survey.json")),
    ]
    taken = javascript_accepts([*good, *documents.values()], tmp_path)
    assert all(taken[: len(good)])
    assert [name for name, yes in zip(documents, taken[len(good) :], strict=True) if yes] == []
    assert [name for name, document in documents.items() if not python_refusal(document)] == []


def test_a_first_stage_that_exceeds_its_epsilon_is_refused(tmp_path: Path) -> None:
    schema = Schema([Numeric("a", -1, 1), Categorical("c", ["x", "y", "z"])])
    good = json.loads(Survey(schema, 1.0, sampled=2, memoized_epsilon=3.0).to_json())
    bad = []
    for k in range(2):
        for key, value in (
            ("epsilon", 1.49),
            ("first", [[65536, 0], [0, 65536]]),
            ("first", [[65535, 1], [2, 65535]]),
        ):
            document = copy.deepcopy(good)
            document["channels"][k]["stages"][key] = value
            bad.append(signed(document))
    short = copy.deepcopy(good)
    short["channels"][0]["stages"]["first"].pop()
    bad.append(signed(short))
    assert python_refusal(good) == ""
    assert all(map(python_refusal, bad))
    assert javascript_accepts([good, *bad], tmp_path) == [True, *[False] * len(bad)]


def test_unsupported_kinds_are_refused(tmp_path: Path) -> None:
    numbers = [Numeric(name, 0, 1) for name in "ab"]
    block = Agreement(2, 2)
    surveys = [
        Survey(Schema([Vector("v", 3)])),
        Survey(Schema([Vector("v", 3, optional=True)])),
        Survey(Schema([Selection("s", ["a", "b"], 1, optional=True)])),
        Survey.from_questions(
            Schema(numbers),
            epsilon=1.0,
            sampled=1,
            questions=[Question((0, 1), KSubset("made", 1.0, block, heaviest(1.0, block)))],
        ),
    ]
    documents = [json.loads(survey.to_json()) for survey in surveys]
    assert not any(javascript_accepts(documents, tmp_path))


def hostile() -> dict[str, dict[str, Any]]:
    """Short documents that must neither pass with a wrong proof nor block a device."""
    found = {}

    def add(title: str, dimension: dict[str, Any], epsilon: float = 1.0, **family: Any) -> None:
        weight = family.pop("weight", 1 << 31)
        channel = {
            "kind": "heavy_set",
            "mechanism": "made",
            "epsilon": epsilon,
            "family": family,
            "weight": weight,
        }
        found[title] = signed({
            "format": "hdr4me-survey", "version": 2, "name": "", "epsilon": epsilon, "n_sampled": 1,
            "dimensions": [{"name": "k", **dimension}], "channels": [channel],
            "questions": [{"dimensions": [0], "channel": 0}],
        })  # fmt: skip

    def chosen(n: int, at_most: Any) -> dict[str, Any]:
        return {"type": "selection", "categories": [f"t{k}" for k in range(n)], "at_most": at_most}

    two = {"type": "categorical", "categories": ["a", "b"], "default": "a"}
    # "10" + 2 would be 102 items, and the proof would count the sets of 10 categories instead of 100.
    add(
        "a size as text",
        chosen(100, 2),
        name="privset",
        size="10",
        most=2,
        chosen=2,
        weight=int(0.995 * 2**32),
    )
    add("a number of items as text", chosen(6, 2), name="privset", size=6, most=2, chosen="2")
    add("a number of choices as text", chosen(6, "2"), name="privset", size=6, most=2, chosen=2)
    for huge in (10**6, 10**9, 1 << 31):
        add(f"at_most = {huge}", chosen(3, huge), name="privset", size=3, most=huge, chosen=2)
        add(f"chosen = {huge}", chosen(3, 2), name="privset", size=3, most=2, chosen=huge)
        add(f"subset, chosen = {huge}", two, name="subset", size=2, chosen=huge)
    for epsilon in (65537.0, 1e9, 1e300):
        add(f"epsilon = {epsilon}", two, epsilon, name="subset", size=2, chosen=1)
    add("a huge space", two, name="projective", size=2, order=2, length=10**9)
    add("a huge field", two, name="projective", size=2, order=16777259, length=2)
    return found


def test_short_hostile_documents_are_refused_and_do_not_block(tmp_path: Path) -> None:
    documents = hostile()
    chain: Any = []
    for _ in range(500):
        chain = [chain]
    documents["chains of lists"] = {**mixed(), "name": [chain] * 600}
    taken = javascript_accepts(list(documents.values()), tmp_path)
    assert [name for name, yes in zip(documents, taken, strict=True) if yes] == []
    assert [name for name, document in documents.items() if not python_refusal(document)] == []


def test_the_largest_weight_is_accepted_and_one_more_is_refused(tmp_path: Path) -> None:
    """The proof is exact: Python and JavaScript agree to one unit of 2^32."""
    families: list[Any] = [
        Subset(10, 3),
        Subset(2, 1),
        Projective(13, 3, 3),
        Projective(21, 4, 3),
        PrivSet(6, 2, 2),
    ]
    documents, wanted = [], []
    for family in families:
        names = [f"t{k}" for k in range(family.size)]
        selection = isinstance(family, PrivSet)
        dimension = {"name": "k", "categories": names} | (
            {"type": "selection", "at_most": 2} if selection else {"type": "categorical", "default": "t0"}
        )
        for epsilon in (0.01, 0.5, 1.0, 2.5, 7.0, 12.3):
            for more in (0, 1):
                channel = {
                    "kind": "heavy_set", "mechanism": "made", "epsilon": epsilon,
                    "family": {"name": family.name, **family.to_dict()}, "weight": heaviest(epsilon, family) + more,
                }  # fmt: skip
                documents.append(signed({
                    "format": "hdr4me-survey", "version": 2, "name": "", "epsilon": epsilon, "n_sampled": 1,
                    "dimensions": [dimension], "channels": [channel], "questions": [{"dimensions": [0], "channel": 0}],
                }))  # fmt: skip
                wanted.append(not more)
    assert [not python_refusal(document) for document in documents] == wanted
    assert javascript_accepts(documents, tmp_path) == wanted


def test_a_row_budget_is_an_integer_for_both(tmp_path: Path) -> None:
    values = [1, 3, 65536, 0, -1, 1.5, "3", None, True, 65537]
    documents = [signed({**mixed(), "row_budget": value}) for value in values]
    for document in documents:
        document["fingerprint"] = fingerprint({k: v for k, v in document.items() if k != "fingerprint"})
    expected = [not python_refusal(document) for document in documents]
    assert expected == [True] * 3 + [False] * 7
    assert javascript_accepts(documents, tmp_path) == expected


def two_stages(change: Any = None) -> dict[str, Any]:
    """A survey of memoized responses, whose second stage `change` may replace."""
    schema = Schema([Numeric("a", 0, 1, default=0.5)])
    document: dict[str, Any] = json.loads(Survey(schema, 1.0, memoized_epsilon=2.0).to_json())
    if change is not None:
        document["channels"][0]["stages"]["second"] = change
    return signed(document)


def test_a_second_stage_that_is_not_that_of_the_proof_is_refused(tmp_path: Path) -> None:
    """The second stage draws each report: one that changes nothing would reveal e^2 in a report, and not e^1."""
    good = two_stages()
    ((a, b), (c, d)) = good["channels"][0]["stages"]["second"]
    one = 1 << 16
    wrong = [
        two_stages(rows)
        for rows in (
            [[one, 0], [0, one]], [[c, d], [a, b]], [[2 * a, 2 * b], [0, 0]], [[a, b]], [[a], [c]],
            [[a + 0.5, b - 0.5], [c, d]], [[one, 0, 0], [0, one, 0]], [[one + 1, -1], [c, d]], 2, "2", [],
        )
    ]  # fmt: skip
    assert javascript_accepts([good, *wrong], tmp_path) == [True] + [False] * len(wrong)
    assert [bool(python_refusal(document)) for document in [good, *wrong]] == [False] + [True] * len(wrong)


VALUES = [
    None, True, False, 0, 1, -1, 2, 0.5, 1e308, 5e-324, 2**31, 2**32, 2**53 + 1, 10**30, "", "0", "1", "a", " ",
    "__proto__", "constructor", "toString", [], [0], [[0]], {}, {"a": 1}, [None],
]  # fmt: skip


def spots(node: Any) -> list[tuple[Any, Any]]:
    """Every value of a document, as its container and its key."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [spot for key, value in items for spot in [(node, key), *spots(value)]]


def deform(document: dict[str, Any], rng: random.Random) -> None:
    """Replace, remove, add or copy a value somewhere, of any kind."""
    found = [spot for spot in spots(document) if spot[1] != "fingerprint"]
    (node, key), (other, its) = rng.choices(found, k=2)
    match rng.randrange(5):
        case 0 | 1:
            node[key] = copy.deepcopy(rng.choice(VALUES))
        case 2:
            del node[key]
        case 3:
            node[key] = copy.deepcopy(other[its])
        case _ if isinstance(node, list):
            node.insert(key, copy.deepcopy(rng.choice([*VALUES, node[key]])))
        case _:
            node[rng.choice(["x", "default", "optional", "size", "takes"])] = copy.deepcopy(
                rng.choice(VALUES)
            )


def test_deformed_small_documents_are_accepted_by_both_or_neither(tmp_path: Path) -> None:
    """Two thousand: each ends quickly with a FormatError or Unsupported, and never with another error."""
    rng = random.Random(27)
    number, towns = Numeric("a", 0, 1, default=0.5), Categorical("d", list("abcdefghij"), default="a")
    few = Categorical("b", ["x", "y"], default="x")
    surveys = [
        Survey(Schema([number]), 1.0, mechanism="duchi"),
        Survey(Schema([few]), 1.0),
        Survey(Schema([Numeric("a", 0, 1, optional=True)]), 1.0),
        Survey(Schema([Selection("s", list("abcd"), at_most=2)]), 1.0),
        Survey(Schema([towns]), 1.0, categorical="projective"),
        Survey(Schema([towns]), 1.0, categorical="oue"),
        Survey(Schema([number, few]), 1.0, memoized_epsilon=2.0),
    ]
    bases = [json.loads(survey.to_json()) for survey in surveys]
    documents = [changed(rng.choice(bases), rng, [1, 1, 1, 2, 3], deform) for _ in range(2000)]
    assert 30 < agreed(documents, tmp_path) < 1000


def test_deformed_golden_documents_are_accepted_by_both_or_neither(tmp_path: Path) -> None:
    paths = sorted(HERE.parent.glob("golden/**/*.survey.json"))
    all_documents = [json.loads(path.read_text("utf-8")) for path in paths if path.stat().st_size < 60_000]
    taken = javascript_accepts(all_documents, tmp_path)  # it does not support blocks of numbers
    bases = [document for document, yes in zip(all_documents, taken, strict=True) if yes]
    assert len(bases) > 8
    rng = random.Random(15)
    documents = [
        changed(rng.choice(bases), rng, [1, 1, 2], rng.choice([deform, mutate])) for _ in range(1000)
    ]
    assert 30 < agreed(documents, tmp_path) < 500


def changed(
    base: dict[str, Any],
    rng: random.Random,
    times: list[int],
    change: Callable[[dict[str, Any], random.Random], None],
) -> dict[str, Any]:
    """A changed document with its fingerprint. Integers have no point: JavaScript cannot tell 1.0 from 1."""
    document = copy.deepcopy(base)
    for _ in range(rng.choice(times)):
        change(document, rng)
    document = json.loads(json.dumps(document), parse_float=lambda text: integer_or_float(float(text)))
    return signed(document) if _signable(document) else document


def integer_or_float(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def agreed(documents: list[dict[str, Any]], folder: Path) -> int:
    """The number of documents that both clients accept; every other document is refused by both."""
    taken = javascript_accepts(documents, folder)
    refusals = [python_refusal(document) for document in documents]
    assert {reason for reason, yes in zip(refusals, taken, strict=True) if yes} <= {""}
    verdicts = zip(refusals, taken, documents, strict=True)
    assert not [document for reason, yes, document in verdicts if not yes and not reason]
    return sum(taken)


def test_a_name_that_is_given_twice_and_half_a_character_are_refused(tmp_path: Path) -> None:
    """These are lost or replaced when JavaScript reads the text of a document."""
    document = mixed()
    text = json.dumps(document)
    half = json.loads(json.dumps(document))
    half["dimensions"][2]["categories"][0] = "x\ud800"
    texts = [
        text,
        '{"name": "other", ' + text[1:],
        text.replace('"low": -1', '"low": 5, "low": -1'),
        json.dumps(half),
    ]
    accepted = javascript_accepts(texts, tmp_path)  # type: ignore[arg-type]
    assert accepted == [True, False, False, False]
    for other in texts[1:]:
        with pytest.raises(HDR4MEError):
            Survey.from_json(other)


def derived() -> dict[str, Any]:
    """A survey with every derived input."""
    towns = Categorical("zip", ["10", "12"], default="10")
    word = Hash("word", 16, seed=7, default="none")
    x, y = Numeric("x", 0, 10, default=5), Numeric("y", 0, 4, default=1)
    schema = Schema(
        [
            Joint(
                "who", [Categorical("sex", ["f", "m"], default="f"), Bucket("age", [0, 18, 65], default=3)]
            ),
            word,
            Prefix("area", [towns], length=2),
            Outer("moments", [x, y], [5, 2], [3, 1], norm=3),
            x,
            y,
            Product("both", ["x", "y"]),
        ]
    )
    document: dict[str, Any] = json.loads(Survey(schema, 1.0, mechanism="duchi").to_json())
    return signed(document)


@pytest.mark.parametrize("base", [mixed(), derived()], ids=["plain", "derived"])
def test_random_changes_are_refused_by_both_or_neither(base: dict[str, Any], tmp_path: Path) -> None:
    rng = random.Random(16)
    documents = [changed(base, rng, [1, 1, 2], mutate) for _ in range(600)]
    assert agreed(documents, tmp_path) >= 10


def mutate(document: Any, rng: random.Random) -> None:
    """Change one number or text somewhere."""
    node: Any = document
    while True:
        keys = [key for key in (node if isinstance(node, dict) else range(len(node))) if key != "fingerprint"]
        key = rng.choice(keys)
        if isinstance(node[key], dict | list) and node[key]:
            node = node[key]
            continue
        old = node[key]
        if isinstance(old, int | float) and not isinstance(old, bool):
            node[key] = rng.choice([old + 1, old - 1, -old, old * 2, 0, old + 0.5, 1 << 33, str(old), None])
        else:
            node[key] = rng.choice([None, 1, "", "x", str(old) + "x", [], True])
        return


def _signable(document: Any) -> bool:
    try:
        fingerprint(document)
    except HDR4MEError:
        return False
    return True
