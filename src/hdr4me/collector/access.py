"""Access: bearer tokens stored as SHA-256 hashes, a link that works once, and signed sessions."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path

from itsdangerous import BadSignature, TimestampSigner

from hdr4me.collector.clock import CLOCK
from hdr4me.collector.config import Settings
from hdr4me.collector.errors import Refusal
from hdr4me.collector.stores.protocol import ANYONE, Scope, Token

SESSION_SECONDS = 12 * 3600
_MOST_SENDERS = 10_000  # with a bucket each; beyond it the one that was not used for longest is forgotten
_SHORTEST, _LONGEST = 32, 512  # characters of a token: a shorter one could be guessed


def new_token() -> str:
    """A token with 256 random bits."""
    return secrets.token_urlsafe(32)


def digest(token: str | bytes) -> bytes:
    """The SHA-256 of a token, which is all that is stored."""
    return hashlib.sha256(token.encode(errors="replace") if isinstance(token, str) else token).digest()


@dataclass(frozen=True)
class Grant:
    """What a request may do: its scope, and the number of the token, which is the source of its uploads."""

    scope: Scope
    source: int

    def __str__(self) -> str:
        return f"token {self.source}" if self.source else "a session of the dashboard"

    def allows(self, scope: str) -> bool:
        """Whether the grant covers a scope; admin covers all scopes."""
        return self.scope in (scope, "admin")


_ANYONE = Grant("send", 0)


class Access:
    """Decides what the bearer token of a request allows, under the settings of a collector."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        secret = settings.secret or secrets.token_bytes(32)
        self._signer = TimestampSigner(secret, digest_method=hashlib.sha256)
        self.tokens: list[Token] = []
        self._open = False  # whether reports are accepted without a token

    def renew(self, tokens: list[Token]) -> None:
        """Use the tokens of the store as they are now; called every second."""
        self.tokens = tokens
        self._open = any(token.sha256 == ANYONE and CLOCK.now() < token.expires for token in tokens)

    def grant(self, authorization: bytes | None) -> Grant | None:
        """What an Authorization header allows; None without a header. A wrong one is refused."""
        if authorization is None:
            return None
        scheme, _, given = authorization.partition(b" ")
        given = given.strip()
        if scheme.lower() != b"bearer" or not given or len(given) > _LONGEST:
            raise Refusal(401, "the Authorization header must be: Bearer TOKEN")
        found: Grant | None = None
        hashed, now = digest(given), CLOCK.now()
        for token in self.tokens:  # all, in constant time: the time reveals nothing about any token
            if hmac.compare_digest(hashed, token.sha256) and now < token.expires and len(given) >= _SHORTEST:
                found = Grant(token.scope, token.number)
        if found is not None:
            return found
        try:
            self._signer.unsign(given, max_age=SESSION_SECONDS)
        except BadSignature:
            raise Refusal(401, "the token is unknown, expired or revoked") from None
        return Grant("admin", 0)

    def require(self, authorization: bytes | None, scope: str) -> Grant:
        """The grant, or a refusal if it does not cover the scope."""
        grant = self.grant(authorization)
        if grant is not None and grant.allows(scope):
            return grant
        if scope == "send" and self._open:
            return _ANYONE
        if grant is None:
            raise Refusal(401, f"this needs a token with the scope {scope}")
        raise Refusal(403, f"the token's scope is {grant.scope}: this needs {scope}")

    def open_session(self, key: str) -> str:
        """A session token for the key of the dashboard's link, which works once over all workers."""
        known = self._settings.link_key
        if known and hmac.compare_digest(digest(key), digest(known)):
            with suppress(FileExistsError):  # creating a file that must not exist is atomic
                Path(self._settings.run_folder, "used").touch(0o600, exist_ok=False)
                return self._signer.sign(secrets.token_urlsafe(12)).decode()
        raise Refusal(
            401, "this link is wrong or was used before: start the collector again to get a new link"
        )


def sender_of(source: int, client: tuple[str, int] | None) -> object:
    """Who sends: the number of a token, or an address (of IPv6 its network of 64 bits), which stays in memory."""
    host = client[0] if client else ""
    if source or ":" not in host or "." in host:  # with dots it is an IPv4 address in the notation of IPv6
        return source or host
    return IPv6Address(host).packed[:8]


class Shares:
    """Bytes, reports or connections of which each sender may hold as many as are free.

    One sender alone holds at most half of them, two a third each, and so on: some are always free for another.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._of: dict[object, int] = {}

    def take(self, sender: object, size: int) -> bool:
        """Hold `size` more for a sender until `give_back`, or return False. What comes first is always held."""
        of_sender = self._of.get(sender, 0)
        if self.held and of_sender + 2 * size + self.held > self.most:
            return False
        self._of[sender] = of_sender + size
        self.held += size
        return True

    def give_back(self, sender: object, size: int) -> None:
        """The sender holds `size` less."""
        self.held -= size
        left = self._of.get(sender, 0) - size
        if left:
            self._of[sender] = left
        else:
            self._of.pop(sender, None)


@dataclass
class Rates:
    """A token bucket for each sender, with the capacity of a minute, that fills at `rate` reports per second."""

    rate: float
    _buckets: dict[object, tuple[float, float]] = field(default_factory=dict)

    def take(self, sender: object, reports: int) -> float:
        """Remove reports from a sender's bucket; returns 0, or the seconds to wait if the bucket holds too few."""
        at, most = time.monotonic(), 60 * self.rate
        left, before = self._buckets.pop(sender, (most, at))  # it is put back as the last one used
        if len(self._buckets) >= _MOST_SENDERS:
            del self._buckets[next(iter(self._buckets))]
        left = min(most, left + (at - before) * self.rate)
        wanted = min(float(reports), most)
        if left < wanted:
            self._buckets[sender] = (left, at)
            return (wanted - left) / self.rate
        self._buckets[sender] = (left - reports, at)
        return 0.0
