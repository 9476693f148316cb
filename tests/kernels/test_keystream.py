"""The keystream: AES-256-CTR, fresh after fork, never repeating."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from hdr4me.kernels.exact import secure as keystream
from hdr4me.kernels.exact.secure import BLOCK, Keystream


def test_is_aes_256_ctr_from_a_zero_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    key = bytes(range(32))
    monkeypatch.setattr(keystream.os, "urandom", lambda n: key[:n])  # type: ignore[attr-defined]
    words = np.concatenate([Keystream().words32(8).view(np.uint8)])
    expected = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(32))
    assert words.tobytes() == expected


def test_continues_across_calls_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keystream.os, "urandom", lambda n: b"k" * n)  # type: ignore[attr-defined]
    once, twice = np.empty(2 * BLOCK + 7, np.uint8), np.empty(2 * BLOCK + 7, np.uint8)
    Keystream().fill(once)
    stream = Keystream()
    stream.fill(twice[:11])
    stream.fill(twice[11:])
    assert (once == twice).all()


def test_bytes_are_uniform() -> None:
    # Chi-square on 2^20 bytes: false alarm once in 10^6 runs (the stream has no seed, by design).
    counts = np.bincount(Keystream().words16(1 << 19).view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-6


def test_two_streams_and_a_pickled_copy_differ() -> None:
    first = Keystream()
    copy = pickle.loads(pickle.dumps(first))
    streams = [first.words32(8).tobytes(), Keystream().words32(8).tobytes(), copy.words32(8).tobytes()]
    assert len(set(streams)) == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_rekeys() -> None:
    stream = Keystream()
    stream.words32(1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover (the child's own process)
        os.write(write, stream.words32(8).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 32) != stream.words32(8).tobytes()
    os.close(read)
    os.close(write)


def test_threads_run_side_by_side() -> None:
    """Streams in threads do not disturb each other (each fills its own array)."""
    outs = [np.zeros(BLOCK, np.uint8) for _ in range(4)]
    threads = [threading.Thread(target=Keystream().fill, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({out.tobytes() for out in outs}) == 4
