"""hdr4me perturb, tally and merge: randomize records, count reports, add tallies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import ENGINE, JSON, MASTER, OUTPUT, SURVEY, UNUSABLE, File, Read, Texts
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.errors import InvalidInput
from hdr4me.pages.text import pluralize

if TYPE_CHECKING:
    from hdr4me.engines import Engine
    from hdr4me.io import DataQuality, RecordFiles
    from hdr4me.survey import Survey
    from hdr4me.tally import Tally


@opt.reads_records
def perturb(
    survey: SURVEY,
    records: Annotated[
        list[str], Argument(help="Files, folders or patterns of records; - for standard input.")
    ],
    output: Annotated[
        File,
        Option(
            "--output",
            "-o",
            help="Write the reports to this file (.parquet, .arrow, .feather, .jsonl, .json).",
        ),
    ] = None,
    check_only: Annotated[
        bool, Option("--check-only", help="Print the data-quality report; write nothing.")
    ] = False,
    allow_unusable: UNUSABLE = False,
    engine: ENGINE = "local",
    master: MASTER = None,
    json: JSON = False,
    *,
    read: Read,
) -> None:
    """Randomize records into reports, with the operating system's cryptographic randomness.

    Records have one column per dimension: Parquet, Arrow, CSV, JSON or Excel. Each run spends the survey's whole budget
    again for every user, so use the reports of one run only and delete the others. The data-quality report counts
    missing, unknown and out-of-range values of the true records; it is not private.

    Example: hdr4me perturb survey.json records.parquet --output reports.parquet
    """
    from hdr4me.io.quality import quality_path
    from hdr4me.survey import Survey

    if check_only == (output is not None):
        raise InvalidInput(
            "give either --output FILE for the reports, or --check-only to check the records and write nothing"
        )
    files = read(records)
    opt.check_outputs([output], [survey, *(Path(path) for path in records if path != "-")])
    document = Survey.load(survey)
    with opt.open_engine(engine, master) as worker:
        if output is None:
            quality = worker.data_quality(files, document)
            if json:
                about = {
                    "records": quality.n_records,
                    "data_quality": quality.rows(),
                    "warnings": quality.notes(),
                }
                print_json(about)
            else:
                show_quality(quality)
            _check_quality(quality, allow_unusable, [] if json else quality.notes(above=0))
            return
        again = output.exists()
        n, quality = perturb_files(worker, files, document, output, allow_unusable)
    if json:
        about = {"survey": document.fingerprint, "reports": n, "bytes_per_report": document.report_size}
        print_json({**about, "data_quality": quality.rows()})
    else:
        print_note(f"wrote {n:,} reports of {document.report_size} bytes each to {output}")
        print_note(f"wrote the data-quality report (not private) to {quality_path(output)}")
    if again:
        print_note(
            "warning: this replaced earlier reports; if those were published, do not publish these as well"
        )


def perturb_files(
    worker: Engine, files: RecordFiles, survey: Survey, output: Path, allow_unusable: bool
) -> tuple[int, DataQuality]:
    """Check the records and write their reports; returns the number of reports and the data quality."""
    found: list[DataQuality] = []

    def on_quality(quality: DataQuality) -> None:
        found.append(quality)
        _check_quality(quality, allow_unusable, quality.notes())

    with progress("perturbing", opt.total_of(files.files())) as advance:
        n = worker.perturb(files, survey, output, progress=advance, on_quality=on_quality)
    return n, found[0]


def _check_quality(quality: DataQuality, allow_unusable: bool, notes: Sequence[str]) -> None:
    """Print the `notes` on faulty values; refuse the columns of `DataQuality.refused` unless `allow_unusable`."""
    from hdr4me.io.quality import refusal

    if (refused := quality.refused()) and not allow_unusable:
        with opt.named_options():
            raise refusal(refused)
    for sentence in [*notes, *(quality.unusable() if allow_unusable else ())]:
        print_note(f"warning: {sentence}")


def show_quality(quality: DataQuality) -> None:
    """Print the counts of usable, missing, unknown and out-of-range values."""
    rows = quality.rows()
    title = f"Data quality of {quality.n_records:,} records (counted from true values: not private)"
    heads = [
        {"read": "values", "low": "below range", "high": "above range"}.get(name, name) for name in rows[0]
    ]
    print_table(title, heads, [list(row.values()) for row in rows])


def tally(
    survey: SURVEY,
    reports: Annotated[list[Path], Argument(help="Files of reports: Parquet, Arrow or JSON lines.")],
    output: OUTPUT,
    quarantine: Annotated[
        File, Option(help="Write rejected reports and the reasons to this file (JSON lines).")
    ] = None,
    count_pair: Annotated[
        Texts, Option(metavar="<a,b>", help="Also count two dimensions jointly (repeatable).")
    ] = None,
    engine: ENGINE = "local",
    master: MASTER = None,
    json: JSON = False,
) -> None:
    """Count reports. Invalid reports are rejected, counted by reason and, with --quarantine, kept.

    The joint counts of --count-pair are written to OUTPUT.pairs, for hdr4me estimate --pair-counts.

    Example: hdr4me tally survey.json reports-*.parquet --output day.tally
    """
    from hdr4me.engines import Local
    from hdr4me.survey import Survey
    from hdr4me.tally import PairCounts

    beside = output.with_name(output.name + ".pairs") if count_pair else None
    opt.check_outputs([output, quarantine, beside], [survey, *reports])
    opt.check_twice(reports)
    document = Survey.load(survey)
    names = [opt.pair_of("--count-pair", text) for text in count_pair or []]
    if names:
        with opt.named_options():
            PairCounts(document, names)  # raises before any report is read if the pairs cannot be counted
    with opt.open_engine(engine, master) as worker:
        found = opt.tally_files(worker, document, reports, quarantine)
        # An engine of another package may not count pairs; then the local engine does.
        count = getattr(worker, "pair_counts", Local().pair_counts)
        together = count(list(reports), document, names) if names else None
    _save(found, output, json)
    if found.rejected:
        print_note(
            f"wrote {quarantine}" if quarantine else "To keep rejected reports, give --quarantine FILE."
        )
    if together is not None and beside is not None:
        together.save(beside)
        print_note(f"wrote {beside}")


def merge(
    tallies: Annotated[list[Path], Argument(help="Tallies of one survey.")],
    output: OUTPUT,
    json: JSON = False,
) -> None:
    """Add tallies of the same survey. The sum is exact and does not depend on the order.

    Example: hdr4me merge monday.tally tuesday.tally --output week.tally
    """
    opt.check_outputs([output])  # may be one of the tallies: they are read before it is written
    opt.check_twice(tallies)
    _save(opt.load_sum(tallies), output, json)


def _save(found: Tally, output: Path, json: bool) -> None:
    found.save(output)
    if json:
        print_json(
            {"survey": found.survey.fingerprint, "reports": found.n_reports, "rejected": found.rejected}
        )
    else:
        print_note(f"{found.n_reports:,} reports of survey {found.survey.fingerprint[:12]}")
        say_rejected(found)
    print_note(f"wrote {output}")


def say_rejected(found: Tally) -> None:
    """Print the number of rejected reports by reason."""
    if found.rejected:
        rejected = sum(found.rejected.values())
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in found.rejected.items())
        print_note(f"{rejected:,} of {pluralize(found.n_reports + rejected, 'report')} rejected: {reasons}")
