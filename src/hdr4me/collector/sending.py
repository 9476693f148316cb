"""The client for many records: a spool of reports and their ids, sent until the collector has accepted all of them."""

from __future__ import annotations

import os
import random
import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from hdr4me.atomic import write_bytes
from hdr4me.collector.batch import ID_SIZE
from hdr4me.errors import FormatError, HDR4MEError, InvalidInput
from hdr4me.io.arrow import dumps
from hdr4me.io.files import read_blocks
from hdr4me.survey import Survey

_ARROW = "application/vnd.apache.arrow.stream"
MOST = 10_000
BATCH_BYTES = 4 << 20  # of one request; a collector accepts 8 MiB by default
_TRIES = 8
_LONGEST_WAIT = 60.0
_AGAIN = {408, 425, 429, 500, 502, 503, 504, 507}

Bytes = NDArray[np.uint8]


class NotAccepted(HDR4MEError):
    """The collector did not accept a batch; the spool still holds all reports."""

    status = 0  # of the last answer over HTTP


@dataclass(frozen=True)
class Sent:
    """The totals of the collector's answers."""

    stored: int = 0
    duplicates: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class Spool:
    """Reports and their ids in a folder: the files `reports.arrow` and `ids`."""

    folder: Path
    survey: Survey

    @property
    def reports(self) -> Path:
        """The file of reports."""
        return self.folder / "reports.arrow"

    @property
    def is_there(self) -> bool:
        """Whether the spool is complete: its ids are written last."""
        return (self.folder / "ids").is_file() and self.reports.is_file()

    def assign_ids(self, n: int) -> None:
        """Generate an id for each of the n reports; then the spool is complete and can be sent."""
        write_bytes(self.folder / "ids", secrets.token_bytes(ID_SIZE * n))

    def bound(self, find: Callable[[int | None], int], round: int | None) -> int:
        """The round of the spool, which is the same whenever it is sent: in two rounds a report would count twice."""
        file = self.folder / "round"
        if not file.is_file():
            write_bytes(file, str(find(round)).encode())
        text = file.read_bytes()
        if not text.isdigit():
            raise FormatError(f"{file} is damaged: it must contain the number of a round")
        number = int(text)
        if round not in (None, number):
            raise InvalidInput(f"{self.folder} was sent to round {number}: send it to that round again")
        return number

    def batches(self, most: int = MOST) -> Iterator[tuple[Bytes, Bytes]]:
        """Ids and rows of at most `most` reports each, in the spool's order."""
        ids = np.frombuffer((self.folder / "ids").read_bytes(), np.uint8).reshape(-1, ID_SIZE)
        at = 0
        for block in read_blocks(self.reports, self.survey, block_rows=most):
            n = len(block.rows)
            if at + n > len(ids):
                raise FormatError(f"{self.folder} is not a complete spool: it has fewer ids than reports")
            yield ids[at : at + n], block.rows
            at += n
        if at != len(ids):
            raise FormatError(f"{self.folder} is not a complete spool: it has more ids than reports")

    def __len__(self) -> int:
        return (self.folder / "ids").stat().st_size // ID_SIZE


def find_round(client: httpx.Client, survey: Survey, number: int | None) -> int:
    """The latest open round of the survey, or the given round."""
    rounds = _ask(lambda: client.get("/v1/rounds"), time.sleep)["rounds"]
    states = {one["round"]: one["state"] for one in rounds if one["survey"] == survey.fingerprint}
    found = [one for one, state in states.items() if (state == "open" if number is None else one == number)]
    if found:
        return int(found[-1])
    if number is not None:
        name = survey.fingerprint[:12]
        raise InvalidInput(
            f"round {number} of this collector is not a round of survey {name}: use the survey of that round"
        )
    raise InvalidInput(
        f"this collector has no open round of survey {survey.fingerprint[:12]}: nothing was sent"
    )


def send(
    spool: Spool,
    url: str,
    *,
    token: str | None = None,
    round_number: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
    client: httpx.Client | None = None,
    wait: Callable[[float], Any] = time.sleep,
) -> Sent:
    """Send a spool; each batch is sent again, after a random and growing delay, until the collector accepts it.

    The reports go to the given round, or to the latest open round of the survey; a spool that is sent again goes to the
    same round. NotAccepted means that the collector refused a batch or was not reachable; the spool can be sent again.
    A batch has at most 10,000 reports and 4 MiB; if the collector answers that it is too large (413), its halves are
    sent.
    """
    access = {"authorization": f"Bearer {token}"} if token else {}
    headers = {"content-type": _ARROW, **access}
    totals = [0, 0, 0]
    with nullcontext(client) if client else _client(url, access) as opened:
        number = spool.bound(partial(find_round, opened, spool.survey), round_number)

        def deliver(ids: Bytes, rows: Bytes) -> None:
            body, half = dumps(ids, rows, spool.survey), len(rows) // 2
            post = partial(opened.post, f"/v1/rounds/{number}/reports", content=body, headers=headers)
            try:
                answer = _ask(post, wait) if len(body) <= BATCH_BYTES or not half else None
            except NotAccepted as error:
                if error.status != 413 or not half:
                    raise
                answer = None
            if answer is None:  # the batch is too large
                deliver(ids[:half], rows[:half])
                deliver(ids[half:], rows[half:])
                return
            rejected = len(answer["rejected"]) + int(answer.get("more_rejected", 0))
            found = (int(answer["stored"]), int(answer["duplicates"]), rejected)
            totals[:] = [total + n for total, n in zip(totals, found, strict=True)]
            progress(len(rows))

        for ids, rows in spool.batches(max(1, min(MOST, BATCH_BYTES // (spool.survey.report_size + 64)))):
            deliver(ids, rows)
    return Sent(*totals)


def _client(url: str, headers: Mapping[str, str]) -> httpx.Client:
    """A client for this collector; it reads the certificates of trusted authorities."""
    try:
        return httpx.Client(base_url=url, timeout=60.0, headers=headers)
    except (OSError, ssl.SSLError):
        given = {name: os.environ[name] for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ}
        names = [f"{name} = {path}" for name, path in given.items() if not Path(path).exists()]
        names = names or [f"{name} = {path}" for name, path in given.items()]
        which = " and ".join(names) or "the default certificates"
        raise InvalidInput(
            f"the certificates of trusted authorities cannot be read ({which}): correct or unset the variable"
        ) from None


def _ask(request: Callable[[], httpx.Response], wait: Callable[[float], Any]) -> dict[str, Any]:
    """The answer to a request; it is repeated while the answer says to try again."""
    reason = ""
    for attempt in range(_TRIES):
        asked = 0.0
        try:
            response = request()
        except httpx.InvalidURL as error:
            raise InvalidInput.of("url", str(error), "an address such as https://collector.example") from None
        except httpx.UnsupportedProtocol:
            raise InvalidInput("the collector's address must begin with http:// or https://") from None
        except httpx.TransportError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, ssl.SSLError):
                cause = cause.__cause__ or cause.__context__
            if cause is not None:
                said = getattr(cause, "verify_message", "") or cause.reason or "no TLS at this address"
                said = said.rstrip(".")
                raise NotAccepted(
                    f"the collector's TLS certificate or protocol is not accepted: {said}"
                ) from None
            reason = f"the collector cannot be reached ({str(error) or type(error).__name__})"
        else:
            try:
                found = response.json()
            except ValueError:
                found = None
            said = found["error"] if isinstance(found, dict) and "error" in found else response.reason_phrase
            reason = f"the collector answered {response.status_code}: {str(said)[:300]}"
            if response.status_code == 200:
                if isinstance(found, dict):
                    return found
                raise NotAccepted("the answer is not from a collector: check the address")
            if response.status_code not in _AGAIN:
                refused = NotAccepted(reason)
                refused.status = response.status_code
                raise refused
            text = response.headers.get("retry-after", "")
            asked = min(float(text), _LONGEST_WAIT) if text.isascii() and text.isdigit() else 0.0
        if attempt + 1 < _TRIES:  # full jitter: senders that were refused together do not retry together
            wait(max(asked, random.SystemRandom().uniform(0, min(_LONGEST_WAIT, 0.5 * 2**attempt))))
    raise NotAccepted(reason)
