"""All options: they have the names of the Python parameters, and errors quote options, never Python parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import hdr4me as hd
from hdr4me.accounting.rounds import paired_rounds
from hdr4me.cli.app import app
from hdr4me.io import RecordFiles
from hdr4me.paper.study import study

pytest.importorskip("starlette")

from hdr4me.collector.config import Settings
from hdr4me.collector.sending import NotAccepted, send


def commands(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """All commands below `command`, with their names."""
    parts = getattr(command, "commands", {})
    if not parts:
        yield " ".join(names), command
    for name, part in parts.items():
        yield from commands(part, *names, name)


OPTIONS = {
    name: [x for x in command.params if x.param_type_name == "option" and x.name != "help"]
    for name, command in commands(get_command(app))
}
# The Python functions of a command. `kind`, `p`, `edges` and `bins` are parameters of several statistics.
PYTHON: dict[str, tuple[Callable[..., Any], ...]] = {
    "plan": (hd.plan, hd.amplification, RecordFiles),
    "compare": (hd.compare, RecordFiles),
    "analyze": (hd.deviation,),
    "survey": (hd.Survey, hd.table_schema, RecordFiles),
    "perturb": (hd.collect, RecordFiles),
    "refine": (hd.refine,),
    "rounds": (paired_rounds,),
    "audit": (hd.audit,),
    "explain": (hd.explain,),
    "serve": (Settings,),
    "send": (send, RecordFiles),
    "study": (study,),
    "ledger show": (hd.Ledger,),
    "estimate": (hd.Answer.interval, hd.combine),
}
# An option with the name of a Python method: its value is the parameter (`interval(kind=…)`, `recalibrate(method)`).
METHODS = {"kind": "interval", "method": "recalibrate"}
REPEATABLE = (
    "outputs", "ranges", "defaults", "pair_questions", "block_questions", "mechanisms", "columns",
)  # fmt: skip
# Parameters that no option sets, because the command line has another way, or because only programs need them.
ONLY_IN_PYTHON = {
    "data", "paths", "path", "pilot", "rounds", "survey", "spool", "first", "second", "schema",  # arguments
    "progress", "client", "wait", "options",  # of a program
    "recalibrate", "weigh", "weights", "rank_by", "n_reports", "methods", "probabilities", "inclusion", "correlation",
    "domain", "reports_per_survey", "timeout", "tables", "tolerance", "prior", "round_number", "self",
    "secret", "link_key", "limits", "run_folder", "seed", "lambda_choice", "variance_formula", "calibrated",
    "mechanism", "name",
}  # fmt: skip


@pytest.mark.parametrize("command", PYTHON)
def test_a_parameter_has_one_name(command: str) -> None:
    """Every parameter of the Python functions is an option of this name, unless a table above says why not."""
    names = {x.name for x in OPTIONS[command]} | {x.opts[0][2:].replace("-", "_") for x in OPTIONS[command]}
    for function in PYTHON[command]:
        for name in inspect.signature(function).parameters:
            found = {METHODS.get(name, name), name.removesuffix("s")}  # a repeatable option has the singular
            assert found & names or name in ONLY_IN_PYTHON, (function, name)


def test_an_option_has_the_name_of_its_parameter_and_one_kind_of_value() -> None:
    """A flag of one command is a flag of all commands; what is counted in one is counted in all."""
    kinds: dict[str, set[str]] = {}
    for command, options in OPTIONS.items():
        for option in options:
            repeatable = option.name in REPEATABLE
            assert option.opts[0][2:].replace("-", "_") == option.name.removesuffix("s" * repeatable).rstrip(
                "_"
            ), command
            kinds.setdefault(option.opts[0], set()).add(kind_of(option))
    assert {"--users", "--epsilon", "--json"} <= set(kinds)
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


def kind_of(option: Any) -> str:
    """What a user writes: nothing, an integer, or a number or text (several numbers are a text with commas)."""
    if option.is_flag:
        return "flag"
    return "integer" if "int" in str(option.type_descriptor.annotation) else "number or text"


# Commands that succeed or fail at once; each is repeated with an invalid value of each of its options.
BASES = {
    "demo": "demo --users 1",
    "plan": "plan --users 100 --dims 2 --epsilon 1 --mechanism duchi",
    "compare": "compare {records} --epsilon 1 --repeats 2 --users 10 --column smoker --mechanism grr",
    "analyze": "analyze --mechanism duchi --epsilon 1 --users 1000",
    "survey": "survey {schema} --mechanism duchi",
    "perturb": "perturb {survey} {records} --check-only",
    "tally": "tally {survey} {reports} -o {out}",
    "merge": "merge {tally} -o {out}",
    "estimate": "estimate {tally}",
    "tables": "tables {tally}",
    "refine": "refine {tally} -o {out}",
    "rounds": "rounds {tally} {tally} --noise fresh",
    "audit": "audit {survey} --draws 100",
    "explain": "explain {survey}",
    "serve": "serve {survey} --database {folder}/none/collector.db",
    "send": "send {survey} {records} --url http://127.0.0.1:9 --spool {folder}/none/spool",
    "backup": "backup {folder}/none.db -o {out}",
    "restore": "restore {survey} --database {out}",
    "reproduce": "reproduce nothing",
    "study": "study nothing.csv",
    "schema draft": "schema draft {records}",
    "ledger show": "ledger show {folder}/none.json",
    "token add": "token add {folder}/none/collector.db --scope read",
    "token list": "token list {folder}/none.db",
    "token revoke": "token revoke {folder}/none.db 1",
    "token log": "token log {folder}/none.db",
}
INVALID = {
    "integer": ["-1", "x", "9" * 20],
    "number or text": ["-1", "nan", "no such", "", "age,age", "age=2:1"],
}
NAMES = re.compile(r"(?<![-\w'\"/.])(?:[a-z][a-z_]* = |[a-z]+(?:_[a-z0-9]+)+\b)")
# Names of mechanisms and methods, which a user writes as they are.
VALUES = {
    "square_wave", "three_outputs", "pm_sub", "optimal_mean", "james_stein", "norm_sub", "base_cut", "mean_by",
    "two_stages", "l_grr", "l_sue", "l_osue",
}  # fmt: skip


def refuse(*_: Any, **__: Any) -> None:
    """In place of sending, which is repeated for a minute."""
    raise NotAccepted("no collector")


def test_every_command_has_a_case() -> None:
    assert set(BASES) == set(OPTIONS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", BASES)
def test_no_error_names_a_python_parameter(
    command: str, run: Any, collected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hdr4me.collector.sending.send", refuse)
    files = {**collected._asdict(), "folder": tmp_path, "out": tmp_path / "out"}
    base = [word.format(**files) for word in BASES[command].split()]
    for option in OPTIONS[command]:
        if (kind := kind_of(option)) == "flag" or option.name in ("database", "host"):
            continue
        for value in INVALID[kind]:
            name = option.opts[0]
            arguments = list(base)
            if name in base:
                at = base.index(name)
                del arguments[at : at + 2]
            code, _, err = run(*arguments, name, value)
            shown = [line for line in err.splitlines() if line.startswith("hdr4me: ")]
            assert code in (0, 1, 2), (name, value, err)
            assert "Traceback" not in err
            assert len(shown) == (code == 2), (name, value, err)
            found = {word for word in NAMES.findall(err) if word not in VALUES}
            assert not found, (name, value, err)
