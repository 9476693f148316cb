"""Memoized responses: identical for an unchanged record, charged once per row, distributed as the survey's channels."""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chi2

from hdr4me.channels import UnaryEncoding
from hdr4me.client import Client, Ledger, MemoizedClient, ledger_file
from hdr4me.client.client import decide, draw_questions
from hdr4me.client.ledger_file import beside
from hdr4me.client.prf import Stream, Use, secret_mark
from hdr4me.errors import BudgetExceeded, FormatError, InvalidInput
from hdr4me.io.report import fault
from hdr4me.survey import Categorical, Numeric, Schema, Survey

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "memoized.json").read_text(encoding="utf-8"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


# -- test vectors, and an independent implementation of the documentation --------------------------------------------


def reference_stream(secret: bytes, series: bytes, use: int, a: int, b: int, size: int) -> bytes:
    """The stream as docs/over-time.md specifies it, independent of the client's code."""
    found = b""
    for block in range(-(-size // 32)):
        message = b"hdr4me-permanent-1" + series + bytes([use])
        message += b"".join(x.to_bytes(4, "big") for x in (a, b, block))
        found += hmac.new(secret, message, hashlib.sha256).digest()
    return found[:size]


def test_there_are_enough_vectors() -> None:
    assert (
        sum(len(VECTORS[name]) for name in ("streams", "draws", "secret_marks", "reports", "two_stages"))
        >= 2_900
    )


def test_streams() -> None:
    for secret, series, use, a, b, expected in VECTORS["streams"]:
        found = reference_stream(bytes.fromhex(secret), bytes.fromhex(series), use, a, b, 40)
        assert found.hex() == expected
        assert Stream(bytes.fromhex(secret), series, Use(use), a, b).take(40).hex() == expected


def reference_below(data: bytes) -> Callable[[int], int]:
    """below(n) as docs/over-time.md specifies it, on these bytes."""
    position = [0]

    def below(n: int) -> int:
        size = 4 if n <= 2**32 else 8
        while True:
            word = int.from_bytes(data[position[0] : position[0] + size], "big")
            position[0] += size
            if word < 256**size // n * n:
                return word % n

    return below


def test_draws() -> None:
    for secret, series, bounds, expected in VECTORS["draws"]:
        below = reference_below(reference_stream(bytes.fromhex(secret), bytes.fromhex(series), 2, 0, 0, 640))
        assert [below(n) for n in bounds] == expected
        stream = Stream(bytes.fromhex(secret), series, Use.ANSWER)
        assert [stream.below(n) for n in bounds] == expected


def test_marks_of_secrets() -> None:
    for secret, mark in VECTORS["secret_marks"]:
        assert secret_mark(bytes.fromhex(secret)) == mark


def test_reports() -> None:
    asked = [Survey.from_json(json.dumps(document)) for document in VECTORS["surveys"]]
    for vector in VECTORS["reports"]:
        survey, series = asked[vector["survey"]], VECTORS["series"][vector["survey"]]
        assert survey.series == series
        answers, new = decide(
            survey,
            bytes.fromhex(vector["secret"]),
            vector["record"],
            vector["known"],
            vector["affordable"],
        )
        assert [list(answer) for answer in answers] == vector["answers"]
        assert [answer[0] for answer in answers] == vector["questions"]
        below = reference_below(
            reference_stream(bytes.fromhex(vector["secret"]), bytes.fromhex(series), 0, 0, 0, 640)
        )
        chosen: set[int] = set()
        for j in range(5 - survey.sampled, 5):  # Floyd's algorithm
            t = below(j + 1)
            chosen.add(j if t in chosen else t)
        assert sorted(chosen) == vector["questions"]
        assert list(new) == vector["new"]


def test_every_history_of_the_vectors() -> None:
    """All histories of three reports over three rows, against an independent implementation of docs/over-time.md."""
    for vector in VECTORS["histories"]:
        survey, secret = Survey.from_json(json.dumps(vector["survey"])), bytes.fromhex(vector["secret"])
        names, budget = vector["names"], vector["budget"]
        m = len(names)
        assert len(vector["cases"]) == 27**m
        all_alike = [decide(survey, secret, dict.fromkeys(names, x), (), m)[0] for x in "012"]
        for values, codes, paid in vector["cases"]:
            known: list[str] = []
            rows: list[list[int]] = [[] for _ in names]
            for t in range(3):
                asked = values[t * m : t * m + m]
                record = dict(zip(names, asked, strict=True))
                answers, new = decide(survey, secret, record, known, budget - len(known))
                known += new
                assert "".join(str(code) for _, code in answers) == codes[t * m : t * m + m]
                assert len(new) == int(paid[t])
                for q, row in enumerate(map(int, asked)):
                    spent = sum(map(len, rows)) >= budget
                    if not spent and row not in rows[q]:
                        rows[q].append(row)
                    assert answers[q] == all_alike[rows[q][-1] if spent else row][q]


def test_the_series_of_the_vectors_are_the_surveys_own() -> None:
    assert [Survey.from_json(json.dumps(d)).series for d in VECTORS["surveys"]] == VECTORS["series"]


# -- what is memoized, and its cost ----------------------------------------------------------------------------------


def test_an_unchanged_record_gives_the_identical_report_at_no_cost(mixed: Survey, path: Path) -> None:
    client = MemoizedClient(mixed, Ledger(path))
    record = {"age": 31.4, "debt": -12, "colour": "red", "pet": "dog"}
    first = client.report(record)
    assert fault(first.answers, mixed) is None
    before = path.read_bytes()
    assert {client.report(record) for _ in range(10)} == {first}
    assert MemoizedClient(mixed, Ledger(path)).report(record) == first  # as a new process would
    assert path.read_bytes() == before  # written again each time, with the same bytes
    assert client.ledger.total == 12


def test_a_renamed_survey_gets_the_same_answers(mixed: Survey, other: Survey, path: Path) -> None:
    record = {"age": 31.4, "debt": -12, "colour": "red", "pet": "dog"}
    first = MemoizedClient(mixed, Ledger(path)).report(record)
    second = MemoizedClient(other, Ledger(path)).report(record)
    assert second.answers == first.answers
    assert Ledger(path).total == 12


def test_each_new_row_costs_its_share(all_sent: Survey, path: Path) -> None:
    """Each dimension that changes its row costs ε/m; returning to an earlier row is free."""
    client = MemoizedClient(all_sent, Ledger(path, reports_per_survey=3, limit=None))
    red = {"age": 0, "debt": -1000, "colour": "red", "pet": "cat"}
    blue = {**red, "colour": "blue"}
    first = client.report(red)
    assert client.ledger.total == 12
    second = client.report(blue)
    assert client.ledger.total == 15
    assert [a for a, b in zip(first.answers, second.answers, strict=True) if a[0] != 2 and a != b] == []
    assert client.report(red) == first
    assert client.report(blue) == second
    assert client.ledger.total == 15
    client.report({"age": 120, "debt": 0, "colour": "blue", "pet": "dog"})
    assert client.ledger.total == 15 + 9


def test_the_ledger_stores_marks_and_no_values(all_sent: Survey, path: Path) -> None:
    MemoizedClient(all_sent, Ledger(path)).report({"colour": "red"})
    document = json.loads(path.read_text())
    assert len(document["rows"][all_sent.series]) == 4
    assert all(len(mark) == 32 for mark in document["rows"][all_sent.series])
    assert beside(path, "secret").stat().st_mode & 0o777 == 0o600
    assert len(beside(path, "secret").read_bytes()) == 32
    assert beside(path, "secret").read_bytes().hex() not in path.read_text()


def test_once_the_budget_is_spent_the_last_paid_row_answers_whatever_the_value(path: Path) -> None:
    """Rows 0 and 10 of eleven are paid for, in this order; no report is refused and nothing more is spent."""
    survey = Survey(Schema([Categorical("x", [str(i) for i in range(11)])]), epsilon=1.0, categorical="grr")
    beside(path, "secret").write_bytes(bytes(32))
    client = MemoizedClient(survey, Ledger(path, reports_per_survey=2))
    first, last = client.report({"x": "0"}), client.report({"x": "10"})
    assert first != last
    assert client.ledger.total == 2
    assert all(client.report({"x": str(i)}) == last for i in (*range(11), 0))
    assert client.ledger.total == 2


def test_a_renewed_budget_answers_by_value_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One new row per week: once the week's budget is spent, every value gets the response to the last row."""
    survey = Survey(Schema([Categorical("x", ["a", "b", "c"])]), epsilon=9.0, categorical="grr")
    secret = bytes(32)
    beside(path, "secret").write_bytes(secret)
    own = {x: decide(survey, secret, {"x": x}, (), 1)[0] for x in "abc"}
    assert len(set(own.values())) == 3
    client = MemoizedClient(survey, Ledger(path, every="week", limit=None))
    for week, (values, shown) in enumerate(
        [("abca", "aaaa"), ("bac", "bbb"), ("abac", "abac"), ("ab", "ab")]
    ):
        monkeypatch.setattr("hdr4me.client.ledger._today", lambda week=week: 20_000 + 7 * week)
        assert [client.report({"x": x}).answers for x in values] == [own[x] for x in shown]


def test_the_order_of_payment_is_kept(path: Path) -> None:
    """The file stores the marks in order of payment, also after it is read and written again."""
    survey = Survey(Schema([Categorical("x", list("abcdefgh"))]), epsilon=1.0, categorical="grr")
    for value in "hbfacgde":
        MemoizedClient(survey, Ledger(path, reports_per_survey=8)).report({"x": value})
    secret = beside(path, "secret").read_bytes()
    marks = [
        Stream(secret, survey.series, Use.MARK, 0, "abcdefgh".index(x)).take(16).hex() for x in "hbfacgde"
    ]
    assert json.loads(path.read_text())["rows"][survey.series] == marks
    before = path.read_bytes()
    assert Ledger(path).book().text().encode() == before


def test_the_first_report_is_charged_in_full_or_refused_whatever_the_record(
    all_sent: Survey, path: Path
) -> None:
    client = MemoizedClient(all_sent, Ledger(path, limit=11.9))
    for record in ({}, {"age": 3}, {"colour": "red"}):
        with pytest.raises(BudgetExceeded):
            client.report(record)
    assert not path.exists()


def test_fresh_and_memoized_responses_share_one_budget(mixed: Survey, path: Path) -> None:
    MemoizedClient(mixed, Ledger(path)).report({})
    with pytest.raises(BudgetExceeded):
        Client(mixed, Ledger(path)).report({})


def test_a_missing_or_replaced_secret_is_detected(mixed: Survey, path: Path) -> None:
    client, secret = MemoizedClient(mixed, Ledger(path)), beside(path, "secret")
    client.report({})
    kept = secret.read_bytes()
    for content in (b"", bytes(32), kept[:-1], kept + b"x"):
        secret.write_bytes(content)
        with pytest.raises(FormatError, match="secret"):
            client.report({})
    secret.unlink()
    with pytest.raises(FormatError, match="is missing"):
        client.report({})
    secret.write_bytes(kept)
    client.report({})


def test_a_secret_left_by_a_killed_process_is_used(mixed: Survey, path: Path) -> None:
    beside(path, "secret").write_bytes(bytes(range(32)))
    MemoizedClient(mixed, Ledger(path)).report({})
    assert json.loads(path.read_text())["secret"] == secret_mark(bytes(range(32)))


def test_nothing_is_released_if_the_ledger_cannot_be_written(
    mixed: Survey, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hdr4me.client.ledger_file.write_text", full)
    with pytest.raises(OSError, match="No space"):
        MemoizedClient(mixed, Ledger(path)).report({})
    assert Ledger(path).total == 0


# -- a full or read-only disk reveals nothing ------------------------------------------------------------------------


def test_every_report_writes_the_same_files_whatever_the_value(
    all_sent: Survey, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names and sizes of all writes are equal for unchanged and for changed values, also with a spent budget."""
    real, writes = ledger_file.write_text, []  # type: ignore[attr-defined]

    def noted(file: Path, text: str, *, reserve: int = 0, **options: Any) -> None:
        assert reserve == 0 or len(text) <= reserve
        writes.append((file.name, max(len(text), reserve)))
        real(file, text, reserve=reserve, **options)

    monkeypatch.setattr(ledger_file, "write_text", noted)
    first = {"age": 0, "debt": -1000, "colour": "red", "pet": "cat"}
    for reports in (1, 2, 9):
        seen = []
        for step, second in enumerate((first, {**first, "pet": "dog"}, {"age": 120, "colour": "blue"})):
            ledger = Ledger(path.with_name(f"{reports}-{step}"), reports_per_survey=reports, limit=None)
            beside(ledger.path, "secret").write_bytes(bytes(32))
            client = MemoizedClient(all_sent, ledger)
            client.report(first)
            writes.clear()
            client.report(second)
            seen.append([(name.replace(f"-{step}", ""), size) for name, size in writes])
        assert len(seen[0]) == 2
        assert seen[0] == seen[1] == seen[2]


def outcome(client: MemoizedClient, record: dict[str, Any]) -> tuple[str, int | None]:
    """What the caller of a report sees, apart from the report: released, or an error and its number."""
    try:
        client.report(record)
    except OSError as error:
        return type(error).__name__, error.errno
    return "released", None


@pytest.mark.skipif(os.name != "posix", reason="needs resource limits")
def test_a_nearly_full_disk_gives_the_same_outcome_for_every_value(
    all_sent: Survey, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's limit of the size of a file, in steps over the size of the ledger: equal outcomes at every step."""
    import resource

    monkeypatch.setattr("hdr4me.atomic._sync", lambda _: None)
    first, seen = {"age": 0, "colour": "red"}, set()
    values = (first, {"age": 120, "colour": "blue", "pet": "dog"}, {**first, "colour": "blue"})
    ledger = Ledger(path, reports_per_survey=9, limit=None)
    client = MemoizedClient(all_sent, ledger)
    client.report(first)
    kept = {file: file.read_bytes() for file in path.parent.iterdir()}
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = len(kept[ledger.path])
    try:
        for limit in range(size - 40, size + 1_600, 20):
            found = set()
            for record in values:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
                found.add(outcome(client, record))
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
                for file, data in kept.items():
                    file.write_bytes(data)
            assert len(found) == 1, limit
            seen |= found
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert seen == {("released", None), ("OSError", errno.EFBIG)}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to mount a disk")
@pytest.mark.parametrize("state", ["full", "read-only"])
def test_a_full_or_read_only_disk_gives_the_same_outcome_for_every_value(
    all_sent: Survey, tmp_path: Path, state: str
) -> None:
    """A disk of 64 KiB in memory: no report is released for any value, paid for or new."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        ledger = Ledger(disk / "l", reports_per_survey=9, limit=None)
        client, first = MemoizedClient(all_sent, ledger), {"age": 0, "colour": "red"}
        report = client.report(first)
        if state == "full":
            with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
                while True:
                    ballast.write(bytes(4096))
        else:
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        found = {
            outcome(client, record) for record in (first, {"age": 120, "pet": "dog"}, {**first, "age": 60})
        }
        assert found == {("OSError", errno.ENOSPC if state == "full" else errno.EROFS)}
        if state == "full":
            (disk / "ballast").unlink()
            assert client.report(first) == report
    finally:
        subprocess.run(["umount", disk], check=True)


def test_bad_input(mixed: Survey, path: Path) -> None:
    with pytest.raises(InvalidInput, match="survey = "):
        MemoizedClient("survey", Ledger(path))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="ledger = "):
        MemoizedClient(mixed, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="not a list"):
        MemoizedClient(mixed, Ledger(path)).report([])  # type: ignore[arg-type]


# -- the distribution over secrets -----------------------------------------------------------------------------------


def test_over_secrets_the_answers_follow_the_channels(all_sent: Survey) -> None:
    """4,000 fixed secrets: the counts of each code follow its row, by chi-squared at 1e-6 each (deterministic)."""
    record = {"age": 90, "debt": -250, "colour": "blue", "pet": "cat"}
    counts = [Counter[tuple[int, ...]]() for _ in range(4)]
    n = 4_000
    for i in range(n):
        secret = hashlib.sha256(b"device %d" % i).digest()
        answers, new = decide(all_sent, secret, record, (), 4)
        assert len(new) == 4
        for j, *codes in answers:
            counts[j][tuple(codes)] += 1
    share = Fraction(3, 4)  # debt lies at 3/4 of the way from -1000 to 0; age is on level 3 of 0..4
    inputs: list[dict[int, Fraction]] = [
        {3: Fraction(1)},
        {0: 1 - share, 1: share},
        {2: Fraction(1)},
        {1: Fraction(1)},
    ]
    laws = [
        {
            output: float(sum(p * question.channel.probability(x, output) for x, p in mixture.items()))
            for output in question.channel.outputs()
        }
        for question, mixture in zip(all_sent.questions, inputs, strict=True)
    ]
    for found, law in zip(counts, laws, strict=True):
        assert sum(law.values()) == pytest.approx(1)
        statistic = sum((found[y] - n * p) ** 2 / (n * p) for y, p in law.items())
        assert statistic < chi2.isf(1e-6, len(law) - 1)


def test_over_secrets_every_question_is_drawn_as_often(mixed: Survey) -> None:
    """Two of four questions, 3,000 fixed secrets: six pairs, chi-squared at 1e-6 (deterministic)."""
    counts = Counter(
        tuple(draw_questions(mixed, Stream(hashlib.sha256(b"%d" % i).digest(), mixed.series, Use.QUESTIONS)))
        for i in range(3_000)
    )
    assert len(counts) == 6
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < chi2.isf(1e-6, 5)


def test_a_change_of_category_redraws_every_bit(all_sent: Survey) -> None:
    """A unary encoding has new random words for each row, so the bits of the two categories do not stand out.

    Between "none" and "cat", the third bit (of a category that is absent before and after) changes as often as two
    fresh draws differ, 2·¾·¼ = ⅜; 2,000 fixed secrets, six standard errors (deterministic).
    """
    changed = 0
    for i in range(2_000):
        secret = hashlib.sha256(b"%d" % i).digest()
        first, second = (decide(all_sent, secret, {"pet": pet}, (), 4)[0][3] for pet in ("none", "cat"))
        changed += first[3] != second[3]
    assert abs(changed / 2_000 - 0.375) < 6 * (0.375 * 0.625 / 2_000) ** 0.5


def test_pairs_of_numbers(path: Path) -> None:
    """One question about two numbers: once the budget is spent, the response to the last pair of levels is repeated."""
    schema = Schema([Numeric("x", 0, 1), Numeric("y", 0, 1)])
    survey = Survey(schema, epsilon=2.0, pair_questions=[("x", "y")])
    channel = survey.questions[0].channel
    client = MemoizedClient(survey, Ledger(path, reports_per_survey=2))
    client.report({"x": 0, "y": 0})
    last = client.report({"x": 1, "y": 1})
    assert {client.report({"x": x, "y": x}) for x in (0, 0.1, 0.9, 1)} == {last}
    assert channel.n_inputs == channel.inputs[0].size * channel.inputs[1].size


def test_the_rounding_of_a_number_is_memoized(path: Path) -> None:
    """A small change of a number rarely changes its row, and a sweep over the range visits each row once."""
    survey = Survey(Schema([Numeric("x", 0, 1)]), epsilon=2.0, mechanism="piecewise")
    levels = survey.questions[0].channel.n_inputs
    known: list[str] = []
    for step in range(1_001):
        _, new = decide(survey, bytes(32), {"x": step / 1_000}, known, 1)
        known += new
    assert len(known) <= levels
    assert len(set(known)) == len(known)


def test_a_second_stage_is_fresh_and_a_row_costs_the_memoized_epsilon(tmp_path: Path) -> None:
    """64 reports of 20 bits: a fresh second stage repeats all of them with a probability below 1e-200."""
    schema = Schema([Categorical("city", [f"c{i}" for i in range(20)]), Numeric("age", 0, 120)])
    survey = Survey(schema, epsilon=1.0, sampled=2, memoized_epsilon=3.0)
    client = MemoizedClient(survey, Ledger(tmp_path / "ledger.json", reports_per_survey=2))
    record = {"city": "c3", "age": 120}
    reports = [client.report(record) for _ in range(64)]
    assert len(set(reports)) > 1
    assert client.ledger.total == 3
    client.report({**record, "city": "c4"})
    assert client.ledger.total == Fraction(9, 2)


def test_the_first_stage_is_memoized() -> None:
    """With a second stage that changes nothing, the answers are those of the first stage."""

    class Keep:
        def bits(self, n: int) -> int:
            assert n == 16
            return 40000  # a word with which the second stage keeps every bit

        def below(self, n: int) -> int:
            raise AssertionError("no such draw")

    survey = Survey(Schema([Categorical("city", ["a", "b", "c"])]), epsilon=1.0, memoized_epsilon=3.0)
    channel = survey.channels[0]
    assert isinstance(channel, UnaryEncoding)
    stages = channel.stages
    assert stages is not None
    secret = bytes(range(32))
    sent = {decide(survey, secret, {"city": "b"}, (), 1, Keep())[0] for _ in range(5)}
    assert len(sent) == 1
    stream = Stream(secret, survey.series, Use.ANSWER, 0, 1)
    kept = [stages.sample(int(k == 1), stream, Keep()) for k in range(3)]
    assert sent == {((0, *kept),)}


def test_vectors_of_two_stages() -> None:
    class Given:
        def __init__(self, words: list[int]) -> None:
            self.words = iter(words)

        def bits(self, n: int) -> int:
            assert n == 16
            return next(self.words)

        def below(self, n: int) -> int:
            raise AssertionError("a second stage draws words only")

    survey = Survey.from_json(json.dumps(VECTORS["surveys"][3]))
    for vector in VECTORS["two_stages"]:
        assert vector["survey"] == 3
        fresh = Given(vector["fresh"])
        answers, new = decide(
            survey,
            bytes.fromhex(vector["secret"]),
            vector["record"],
            (),
            survey.sampled,
            fresh,
        )
        assert ([list(a) for a in answers], list(new)) == (vector["answers"], vector["new"])
        assert next(fresh.words, None) is None
