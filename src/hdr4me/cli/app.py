"""The typer application: all commands, in the order in which a collection uses them."""

from __future__ import annotations

from importlib import import_module

import typer
from typer import Option

app = typer.Typer(
    name="hdr4me",
    help="Local differential privacy (LDP) for high-dimensional data: plan, collect, estimate, re-calibrate.",
    epilog="First steps: 'hdr4me demo', then 'hdr4me plan --users 100000 --dims 50 --epsilon 1'.",
    add_completion=False,
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
COMMANDS = (
    "demo", "plan", "compare", "analyze", "survey", "perturb", "tally", "merge", "estimate", "tables",
    "refine", "rounds", "audit", "explain", "serve", "send", "backup", "restore", "reproduce", "bench",
)  # fmt: skip
_MODULES = dict.fromkeys(("serve", "send", "backup", "restore"), "collector")
_MODULES |= dict.fromkeys(("perturb", "tally", "merge"), "reports")
_MODULES |= {"analyze": "compare", "refine": "rounds", "explain": "survey", "bench": "reproduce"}

for _name in COMMANDS:
    app.command(name=_name)(getattr(import_module(f"hdr4me.cli.{_MODULES.get(_name, _name)}"), _name))

app.add_typer(import_module("hdr4me.cli.ledger").ledger, name="ledger")
