"""Access: bearer tokens known by their SHA-256, a link that works once, and signed sessions."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from itsdangerous import BadSignature, TimestampSigner

from hdr4me.collector.refusals import Refusal
from hdr4me.collector.stores.protocol import Scope, Token

__all__ = ["Access", "Grant", "Link", "digest", "new_token"]

SESSION_SECONDS = 12 * 3600
_ALLOWS: dict[Scope, frozenset[str]] = {
    "upload": frozenset({"upload"}),
    "read": frozenset({"read"}),
    "admin": frozenset({"upload", "read", "admin"}),
}
_LONGEST = 512


def new_token() -> str:
    """A token with 256 random bits."""
    return secrets.token_urlsafe(32)


def digest(token: str | bytes) -> bytes:
    """The SHA-256 of a token, which is all that is stored.

    >>> digest("secret").hex()[:8]
    '2bb80d53'
    """
    return hashlib.sha256(token.encode(errors="replace") if isinstance(token, str) else token).digest()


@dataclass(frozen=True)
class Grant:
    """What a request may do: its scope, and the number of the token, which is the source of its uploads."""

    scope: Scope
    source: int

    def allows(self, scope: str) -> bool:
        """Whether it covers a scope."""
        return scope in _ALLOWS[self.scope]


@dataclass(frozen=True)
class Link:
    """The dashboard's link: a key that opens one session, once, in any of the workers.

    A file in `folder` marks the key as used; creating a file that must not exist is atomic.
    """

    key: str
    folder: str

    def use(self, key: str) -> bool:
        """Whether the key is right and was not used before."""
        if not hmac.compare_digest(digest(key), digest(self.key)):
            return False
        try:
            os.close(os.open(Path(self.folder, "used"), os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True


class Access:
    """Decides what the bearer token of a request allows.

    Parameters
    ----------
    secret
        Signs sessions; the same in all workers of one collector.
    open_upload
        Whether reports are accepted without a token.
    link
        The dashboard's link, if there is one.
    """

    def __init__(self, secret: bytes, open_upload: bool = True, link: Link | None = None) -> None:
        self.open_upload, self.link = open_upload, link
        self._signer = TimestampSigner(secret or secrets.token_bytes(32), digest_method=hashlib.sha256)
        self._tokens: list[Token] = []

    def renew(self, tokens: Iterable[Token]) -> None:
        """Use the tokens of the store."""
        self._tokens = list(tokens)

    def grant(self, authorization: bytes | None) -> Grant | None:
        """What an Authorization header allows; None without a header. A wrong one is refused.

        Every stored token is compared in constant time, so the time says nothing about any of them.
        """
        if authorization is None:
            return None
        scheme, _, given = authorization.partition(b" ")
        given = given.strip()
        if scheme.lower() != b"bearer" or not given or len(given) > _LONGEST:
            raise Refusal(401, "the Authorization header must be: Bearer TOKEN")
        found: Grant | None = None
        hashed = digest(given)
        for token in self._tokens:
            if hmac.compare_digest(hashed, token.sha256):
                found = Grant(token.scope, token.number)
        if found is None and self._is_session(given):
            found = Grant("admin", 0)
        if found is None:
            raise Refusal(401, "the token is not known")
        return found

    def require(self, authorization: bytes | None, scope: str) -> Grant:
        """The grant, or a refusal if it does not cover the scope."""
        grant = self.grant(authorization)
        if grant is not None and grant.allows(scope):
            return grant
        if scope == "upload" and self.open_upload:
            return Grant("upload", 0)
        if grant is None:
            raise Refusal(401, f"this needs a token with the scope {scope}")
        raise Refusal(403, f"the token's scope is {grant.scope}: this needs {scope}")

    def open_session(self, key: str) -> str:
        """A session token in exchange for the key of the link, which then is used up."""
        if self.link is None or not self.link.use(key):
            raise Refusal(
                401, "this link was used before or is wrong: start the collector again for a new one"
            )
        return self._signer.sign(secrets.token_urlsafe(12)).decode()

    def _is_session(self, given: bytes) -> bool:
        try:
            self._signer.unsign(given, max_age=SESSION_SECONDS)
        except BadSignature:
            return False
        return True
