"""The command line.

Results go to standard output, messages to standard error. Exit codes: 2 for invalid input, 130 for an interruption, 3
for an unexpected error; HDR4ME_TRACEBACK=1 then shows the traceback.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from hdr4me.errors import HDR4MEError, nearest, printable

__all__ = ["main"]

_INTERRUPTED = 130
_LONGEST = 2000  # characters of a message; text that a message quotes from a file can have any length


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    from typer.exceptions import TyperException

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks ε shows a question mark
    try:
        from hdr4me.cli.app import app

        result = app(args=_complete(arguments), prog_name="hdr4me", standalone_mode=False)
    except KeyboardInterrupt:  # before the command starts; afterwards typer returns the code
        result = _INTERRUPTED
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            return 0  # the process that reads our output has ended; this is not an error
        raise
    except HDR4MEError as error:
        return _complain(str(error), 2)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError) and error.filename
        where = f"{error.filename}: " if error.filename else ""
        return _complain(
            f"{error.filename} does not exist" if missing else f"{where}{error.strerror or error}", 2
        )
    except TyperException as error:
        return _complain(_usage(error), 2)
    except UnicodeEncodeError:  # its message quotes the text
        return _complain("the name of a file or an option is not valid UTF-8: rename it", 2)
    except RecursionError:
        return _complain("the input is nested too deeply: check the file", 2)
    except MemoryError:
        return _complain("not enough memory for this command", 2)
    except Exception as error:
        if os.environ.get("HDR4ME_TRACEBACK"):
            raise
        # Its message is left out: it can quote a record.
        please = (
            "this is a bug in hdr4me, please report it (HDR4ME_TRACEBACK=1 shows the traceback, with values)"
        )
        return _complain(f"unexpected {type(error).__name__}: {please}", 3)
    if result == _INTERRUPTED:
        return _complain("interrupted; no partial file was written", _INTERRUPTED)
    return result if isinstance(result, int) else 0


def _complete(arguments: Sequence[str] | None) -> list[str]:
    """The arguments with `--recalibrate auto` for `--recalibrate` without a value, which typer does not support.

    The value is missing at the end, before another option, and before a file.

    >>> _complete(["estimate", "a.tally", "--recalibrate", "--json"])
    ['estimate', 'a.tally', '--recalibrate', 'auto', '--json']
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for i in reversed(range(len(given))):
        after = given[i + 1] if i + 1 < len(given) else "-"
        if given[i] == "--recalibrate" and (after.startswith("-") or os.path.isfile(after)):  # noqa: PTH113
            given.insert(i + 1, "auto")
    return given


def _usage(error: Any) -> str:
    """The message about a wrong option or argument, and the command that shows what is allowed.

    >>> _usage(ValueError("Invalid value for '--users': Input should be a valid integer, unable to parse string"))
    '--users must be a valid integer; see hdr4me --help'
    """
    text = getattr(error, "format_message", error.__str__)()
    if similar := getattr(error, "possibilities", None):
        text = error.message + nearest(error.option_name, similar)
    text = re.sub(r"Invalid value for '?(.*?)'?: Input should be ([^,]*).*", r"\1 must be \2", text)
    text = re.sub(
        r"Missing (argument|option) '(.*)'", lambda found: f"{_named(*found.groups())} is missing", text
    )
    command = getattr(getattr(error, "ctx", None), "command_path", "hdr4me")
    return text if text.endswith("?") else f"{text.rstrip('.')}; see {command} --help"


def _named(kind: str, name: str) -> str:
    return name.upper() if kind == "argument" else name


def _complain(message: str, code: int) -> int:
    shown = printable(" ".join(message.split()))
    print("hdr4me: " + (shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."), file=sys.stderr)
    return code
