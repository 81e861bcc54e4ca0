"""The server's memory while one client ingests 20 GB of random integers into a durable table. One run each: the figure
is a peak, not a time. It should be flat: as high after the first half as after the second.
"""

from .. import measure, places, processes, results
from ..options import Options

GIGABYTES = 20
LABELS = {"bowshot (ADBC)": "bowshot-adbc", "bowshot (DoPut)": "bowshot-put"}


def run(options: Options) -> None:
    gigabytes = options.gigabytes or options.size(0.1, 4, GIGABYTES)
    for label, kind in LABELS.items():
        if options.chosen(label):
            case(label, kind, gigabytes, options)


def case(label: str, kind: str, gigabytes: float, options: Options) -> None:
    """Each has a server of its own, so that the idle memory is that of a fresh one."""
    with places.disk_folder(2 * gigabytes + 1) as folder, processes.bowshot({}, data=str(folder / "bowshot")) as server:
        disk = places.disk(folder)
        warm = measure.writer(server, kind, [server], action="flood", table="flood", bytes=1)
        assert warm["rows"]
        processes.settle([server])
        sampler = processes.MemorySampler(server)
        answer = measure.writer(server, kind, [server], action="flood", table="flood", bytes=int(gigabytes * 1e9))
        peaks, tenths = sampler.close(), sampler.tenths()
    halves = max(tenths[:5]), max(tenths[5:])
    figures = {label: {**peaks, **answer, "gb_per_second": answer["bytes"] / answer["seconds"] / 1e9, "tenths_rss": tenths}}
    ratios = {"peak of the second half against the first": {"ratio": halves[1] / halves[0]}}
    results.record(
        "ingest_memory", kind, figures, options, ratios=ratios, gigabytes=gigabytes, disk=disk,
        axes={"what": "memory during ingest"},
    )
