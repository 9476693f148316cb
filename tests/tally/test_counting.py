"""Counting any channel's reports: as the compiled kernel counts bytes, and as the channels themselves count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hdr4me.channels import Channel, Draws, Field, Input, KSubset, Table, UnaryEncoding
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.subset import Subset
from hdr4me.errors import FormatError
from hdr4me.io.report import Reason, fault, pack, unpack
from hdr4me.kernels.exact.count import count_reports
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey
from hdr4me.survey.layout import Layout
from hdr4me.tally import Tally
from hdr4me.tally.tally import count_any

ONE = 1 << 32


def by_kernel(reports: np.ndarray, survey: Survey) -> tuple[list[int], list[int]]:
    layout, counts = Layout.of(survey), np.zeros(Layout.of(survey).size, np.int64)
    status = count_reports(
        reports,
        survey.sampled,
        survey.slot_size,
        layout.entries,
        layout.cells,
        layout.offsets[:-1],
        counts,
    )
    return status.tolist(), counts.tolist()


def by_numpy(reports: np.ndarray, survey: Survey) -> tuple[list[int], list[int]]:
    counts = np.zeros(Layout.of(survey).size, np.int64)
    status = count_any(reports, survey, Layout.of(survey), counts)
    return status.tolist(), counts.tolist()


def by_hand(reports: np.ndarray, survey: Survey) -> tuple[list[bool], list[int]]:
    """Which reports are valid, and the counters that they raise."""
    layout, good = Layout.of(survey), []
    counts = [0] * layout.size
    for row in reports:
        try:
            answers = unpack(row.tobytes(), survey)
        except FormatError:
            good.append(False)
            continue
        good.append(True)
        for q, *output in answers:
            for counter in survey.questions[q].channel.counters(output):
                counts[int(layout.offsets[q]) + counter] += 1
    return good, counts


def faults(row: np.ndarray, survey: Survey) -> list[int]:
    """Everything that is wrong with a report, slot by slot; what comes first is what the kernel says."""
    found, previous = [], -1
    for slot in row.reshape(survey.sampled, survey.slot_size):
        q = int(slot[0]) | int(slot[1]) << 8
        if q >= len(survey.questions):
            found.append(Reason.DIMENSION)
        if q <= previous:
            found.append(Reason.ORDER)
        previous = q
        if q < len(survey.questions):
            channel = survey.questions[q].channel
            end = 2 + channel.wire_size
            if not channel.is_output(channel.response.from_bytes(slot[None, 2:end])[0].tolist()):
                found.append(Reason.CODE)
            if slot[end:].any():
                found.append(Reason.PADDING)
    return [int(reason) for reason in found]


def mutated(reports: np.ndarray, survey: Survey, rng: np.random.Generator) -> np.ndarray:
    """One byte of most reports changed: to a small number half the time, so that many of them stay valid."""
    changed = reports.copy()
    rows = rng.random(len(changed)) < 0.8
    at = rng.integers(0, survey.report_size, len(changed))
    small = rng.integers(0, 6, len(changed))
    any_byte = rng.integers(0, 256, len(changed))
    new = np.where(rng.random(len(changed)) < 0.5, small, any_byte)
    changed[np.flatnonzero(rows), at[rows]] = new[rows]
    return changed


@pytest.mark.parametrize("name", ["mixed", "all_sent", "even"])
def test_numpy_and_the_kernel_agree_report_by_report(
    request: pytest.FixtureRequest, name: str, simulate: Callable[..., np.ndarray]
) -> None:
    """Status and counts, for valid reports and for those with one byte changed."""
    survey, rng = request.getfixturevalue(name), np.random.default_rng(11)
    reports = simulate(survey, 4000, lambda j, users: np.zeros(len(users)), rng)
    assert by_numpy(reports, survey) == by_kernel(reports, survey)
    changed = mutated(reports, survey, rng)
    status, counts = by_numpy(changed, survey)
    kernel_status, kernel_counts = by_kernel(changed, survey)
    assert counts == kernel_counts
    for row, by_any, by_kernels in zip(changed, status, kernel_status, strict=True):
        wrong = faults(row, survey)
        assert by_kernels == (wrong[0] if wrong else 0)
        assert by_any in (wrong or [0])  # which of several reasons is reported may differ
    padded = name != "even"  # where all slots are full there are no trailing bytes
    assert set(status) == {0, Reason.DIMENSION, Reason.ORDER, Reason.CODE} | (
        {Reason.PADDING} if padded else set()
    )
    assert ([not s for s in status], counts) == by_hand(changed, survey)


def test_reports_of_noise_are_refused_by_both(mixed: Survey) -> None:
    """Many faults at once: the same reports are counted, whatever reason comes first."""
    rng = np.random.default_rng(12)
    reports = rng.integers(0, 5, (5000, mixed.report_size)).astype(np.uint8)
    reports[:, [1, 6]] = 0
    numpy_status, numpy_counts = by_numpy(reports, mixed)
    kernel_status, kernel_counts = by_kernel(reports, mixed)
    assert numpy_counts == kernel_counts
    assert [s == 0 for s in numpy_status] == [s == 0 for s in kernel_status]
    assert 0 < numpy_status.count(0) < 1000


# -- sets ------------------------------------------------------------------------------------------------------------


def subset(v: int, w: int) -> KSubset:
    return KSubset("subset", 1.0, Subset(v, w), heaviest(1.0, Subset(v, w)))


@pytest.fixture(scope="module")
def wide(mixed: Survey) -> Survey:
    """Sets with fields of one and two bytes, a table and a unary encoding: slots of 3, 5, 8 and 5 bytes."""
    schema = Schema(
        [
            Numeric("age", 0, 120),
            Categorical("colour", range(10)),
            Categorical("town", range(1000)),
            Categorical("pet", ["none", "cat", "dog"]),
        ]
    )
    channels = (mixed.channels[0], subset(10, 3), subset(1000, 3), mixed.channels[3])
    questions = [Question((j,), channel) for j, channel in enumerate(channels)]
    return Survey.from_questions(schema, epsilon=4.0, sampled=2, questions=questions)


def reports_to(survey: Survey, n: int, rng: np.random.Generator) -> np.ndarray:
    """Valid reports with uniform outputs, half of the time with a small number of categories."""
    rows = []
    for _ in range(n):
        answers = []
        for q in sorted(rng.choice(len(survey.questions), survey.sampled, replace=False).tolist()):
            channel = survey.questions[q].channel
            if isinstance(channel, KSubset):
                small_sample = min(channel.n_counters, rng.choice([6, channel.n_counters]))
                output = sorted(rng.choice(small_sample, channel.per_report, replace=False).tolist())
            else:
                output = [int(rng.integers(field.bound)) for field in channel.fields]
            assert channel.is_output(output)
            answers.append((q, *output))
        assert fault(answers, survey) is None
        rows.append(np.frombuffer(pack(answers, survey), np.uint8))
    return np.stack(rows)


def test_sets_are_counted_as_the_channel_counts(wide: Survey) -> None:
    rng = np.random.default_rng(13)
    reports = reports_to(wide, 1500, rng)
    assert not wide.byte_wise
    status, counts = by_numpy(reports, wide)
    assert not any(status)
    assert ([True] * 1500, counts) == by_hand(reports, wide)
    tally = Tally(wide).add_block(reports)
    assert (tally.counts.tolist(), tally.n_reports) == (counts, 1500)
    assert sum(tally.n_answers(q) for q in range(4)) == 3000


def test_changed_sets_are_refused_as_the_reference_refuses_them(wide: Survey) -> None:
    """Members twice, out of order or out of range: report by report a reason that is true of the report."""
    rng = np.random.default_rng(14)
    changed = mutated(reports_to(wide, 3000, rng), wide, rng)
    status, counts = by_numpy(changed, wide)
    good, expected = by_hand(changed, wide)
    assert [s == 0 for s in status] == good
    assert counts == expected
    for row, found in zip(changed, status, strict=True):
        assert found in (faults(row, wide) or [0])
    assert set(status) == {0, Reason.DIMENSION, Reason.ORDER, Reason.CODE, Reason.PADDING}


def test_the_quick_rules_are_the_channels_own(wide: Survey) -> None:
    """Every rule in NumPy against the channel itself, on outputs of which many are none."""
    rng = np.random.default_rng(15)
    for channel in wide.channels:
        most = min(max(field.bound for field in channel.fields) + 2, 12)
        outputs = rng.integers(0, most, (500, len(channel.fields)))
        good = channel.response.valid(outputs)
        assert good.tolist() == [channel.is_output(output) for output in outputs.tolist()]
        for output, counters in zip(
            outputs[good].tolist(), channel.response.counters(outputs[good]).tolist(), strict=True
        ):
            assert counters == list(channel.counters(output))


# -- a channel of another package ------------------------------------------------------------------------------------


class Places(Channel):
    """Three fields of 1, 2 and 4 bytes; one counter for each remainder of their sum by five."""

    kind = "places"
    mechanism = "places"
    epsilon = 1.0
    loss = Fraction(1)
    inputs = (Input("category", 2),)
    fields = (Field(3), Field(1000), Field(70_000))
    n_counters = 5
    per_report = 1

    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        return draws.below(3), draws.below(1000), draws.below(70_000)

    def probability(self, x: int, output: Sequence[int]) -> Fraction:
        return Fraction(1, 3 * 1000 * 70_000)

    def counters(self, output: Sequence[int]) -> Iterator[int]:
        return iter([sum(output) % 5])

    def worst_pair(self) -> tuple[int, int]:
        return 0, 1

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Places:
        return cls()


def test_a_channel_without_a_rule_is_counted_by_itself(mixed: Survey) -> None:
    schema = Schema([Numeric("age", 0, 120), Categorical("home", ["a", "b"])])
    questions = [Question((0,), mixed.channels[1]), Question((1,), Places())]
    survey = Survey.from_questions(schema, epsilon=3.0, sampled=2, questions=questions)
    assert (survey.slot_size, survey.report_size) == (9, 18)
    answers = [((0, 1), (1, 2, 999, 69_999)), ((0, 0), (1, 0, 256, 65_536)), ((0, 1), (1, 1, 1, 1))]
    rows = np.frombuffer(b"".join(pack(answer, survey) for answer in answers), np.uint8).reshape(3, 18)
    assert Places().response.from_bytes(rows[:, 11:]).tolist() == [list(answer[1][1:]) for answer in answers]
    tally = Tally(survey).add_block(rows)
    expected = [0] * 5
    for answer in answers:
        expected[sum(answer[1][1:]) % 5] += 1
    assert tally.counts.tolist() == [1, 2, *expected]
    bad = rows.copy()
    bad[0, 11] = 3  # the first field's bound
    bad[1, 12:14] = 255, 255
    tally = Tally(survey).add_block(bad)
    assert (tally.n_reports, tally.rejected) == (1, {Reason.CODE.text: 2})


def test_counts_that_no_reports_give_are_refused(wide: Survey) -> None:
    """A set of three adds to three counters: 4 of one and 5 in all come from no number of reports."""
    channel = wide.channels[1]
    assert channel.n_answers([2, 2, 2] + [0] * 7) == 2
    assert channel.n_answers([3, 1, 1, 1] + [0] * 6) is None  # a category is in a set once
    assert channel.n_answers([2, 2, 1] + [0] * 7) is None
    assert channel.n_answers([4, -1, 3] + [0] * 7) is None
    assert isinstance(wide.channels[3], UnaryEncoding)
    assert isinstance(wide.channels[0], Table)
