"""Metrics for Prometheus: counts come from the database, so they are right after a restart and with many workers."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hdr4me.collector.state import Collector

__all__ = ["exposition"]


class _Counts:
    """Asks the store when it is scraped."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        store, writer = self._collector.store, self._collector.writer
        stored = GaugeMetricFamily("hdr4me_reports_stored", "Reports stored", labels=["round", "state"])
        rejected = CounterMetricFamily(
            "hdr4me_uploads_rejected", "Uploads that were no reports", labels=["round", "reason"]
        )
        for round in store.rounds():
            stored.add_metric([str(round.number), round.state], round.stored)
            reasons: dict[str, int] = {}
            for rejection in store.rejections(round.number):
                reasons[rejection.reason] = reasons.get(rejection.reason, 0) + rejection.count
            for reason, count in sorted(reasons.items()):
                rejected.add_metric([str(round.number), reason], count)
        yield stored
        yield rejected
        yield GaugeMetricFamily("hdr4me_damaged_blocks", "Damaged blocks found", value=len(store.damage()))
        free = store.free_space()
        if free is not None:
            yield GaugeMetricFamily("hdr4me_free_bytes", "Free space for the store", value=free)
        worker = [str(os.getpid())]
        for name, text, value in (
            ("hdr4me_reports_waiting", "Reports that wait to be written", writer.waiting),
            ("hdr4me_body_bytes", "Bytes of requests that are being read", self._collector.body_bytes),
        ):
            gauge = GaugeMetricFamily(name, text, labels=["worker"])
            gauge.add_metric(worker, value)
            yield gauge
        for name, text, total in (
            ("hdr4me_commits", "Transactions written by this worker", float(writer.commits)),
            ("hdr4me_commit_seconds", "Seconds spent in them", writer.commit_seconds),
        ):
            counter = CounterMetricFamily(name, text, labels=["worker"])
            counter.add_metric(worker, total)
            yield counter


def exposition(collector: Collector) -> bytes:
    """The metrics as text; called in a thread."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Counts(collector))
    return generate_latest(registry)
