"""The typer application: all commands, in the order in which a collection uses them."""

from __future__ import annotations

from importlib import import_module

import typer
from typer import Option

from hdr4me.cli.options import Command

app = typer.Typer(
    name="hdr4me",
    help="Local differential privacy (LDP) for high-dimensional data: plan, collect, estimate, re-calibrate.",
    epilog="First steps:  hdr4me demo,  then  hdr4me plan --users 100000 --dims 50 --epsilon 1",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: bool = Option(False, "--version", help="Print the version and exit.")
) -> None:
    if version:
        from hdr4me import __version__

        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


# Each command is a function with the same name, in the module with the same name unless another module is given here.
COMMANDS = {
    "demo": "Run a complete collection on simulated users.",
    "plan": "Predict the error, or solve for users, dimensions or ε.",
    "compare": "Compare mechanisms and budgets on public data.",
    "analyze": "Predict the error of one mechanism.",
    "survey": "Create or show a survey.",
    "perturb": "Randomize records into reports.",
    "tally": "Count reports, for estimates.",
    "merge": "Add tallies of one survey.",
    "estimate": "Estimate means, frequencies and other statistics.",
    "tables": "Estimate tables of several attributes, and draw synthetic records.",
    "refine": "Create the survey of a second round, after a pilot.",
    "rounds": "Compare the rounds of a repeated collection.",
    "audit": "Verify a survey's privacy, or test a tally for poisoning.",
    "explain": "Explain a survey to its participants.",
    "serve": "Collect reports over HTTP.",
    "send": "Randomize records and send the reports.",
    "backup": "Copy the database of a collector.",
    "restore": "Restore a backup.",
    "reproduce": "Reproduce the experiments of the paper.",
    "study": "Run the simulation of the paper on your own data.",
}
_MODULES = dict.fromkeys(("serve", "send", "backup", "restore"), "collector")
_MODULES |= dict.fromkeys(("perturb", "tally", "merge"), "reports")
_MODULES |= {"analyze": "compare", "refine": "rounds", "explain": "survey", "study": "reproduce"}

for _name, _help in COMMANDS.items():
    _function = getattr(import_module(f"hdr4me.cli.{_MODULES.get(_name, _name)}"), _name)
    app.command(name=_name, cls=Command, short_help=_help)(_function)

app.add_typer(import_module("hdr4me.cli.schema").schema, name="schema")
app.add_typer(import_module("hdr4me.cli.ledger").ledger, name="ledger")
app.add_typer(import_module("hdr4me.cli.collector").token, name="token")
