"""Memory while 60 million rows (lineitem at scale 10, 10 GB of Arrow) stream to clients that drop them: to a fast one, to
a slow one, to both, and to 16 at once; of the server, and of the clients, as peaks and over time. One run each: the figure
is a peak, not a time. Our server runs twice: as it is, with a budget for the columns of files that are scanned repeatedly,
and without one, which shows what streaming itself takes.
"""

from .. import data, measure, processes, threads
from ..arena import Arena
from ..options import Options

SLOW_BYTES_PER_SECOND = 100_000_000
MANY = 16
QUERY = "SELECT * FROM lineitem"
OURS, KEEPING = "bowshot", "bowshot, columns kept"
LABELS = {OURS: "bowshot-streaming", KEEPING: "bowshot", "DuckDB behind Arrow Flight": "duckdb-flight"}
# Of the memory over time so many samples are kept.
SAMPLES = 60


def run(options: Options) -> None:
    fast, slow = [0], [SLOW_BYTES_PER_SECOND]
    cases = {"fast": fast, "slow": slow, "fast and slow": fast + slow, f"{MANY} fast": fast * MANY}
    with Arena(options, {"lineitem": str(data.lineitem(options.size(0.01, 1, 10)))}) as arena:
        servers = arena.servers(LABELS)
        for server in servers.values():
            warm = measure.client(server, "flight-ticket", action="fetch", query="SELECT 1", repeats=10)
            assert warm["runs"]
        idle = {label: server.memory()["VmRSS"] for label, server in servers.items()}
        for name, rates in cases.items():
            if not options.has_case(name):
                continue
            figures = {label: peaks(server, rates, idle[label]) for label, server in servers.items()}
            axes = {"what": f"memory, clients: {name}", "clients": len(rates)}
            arena.record("memory", name, figures, axes=axes, slow_bytes_per_second=SLOW_BYTES_PER_SECOND)


def peaks(server: processes.Server, rates: list, idle: int) -> dict:
    """Streams to as many clients as there are rates, at once. `rss_over_time` is of the server, `client_rss_over_time` of
    the largest client at each moment, `all_clients_rss_over_time` of all of them together, where there are several.
    """
    answers = [None] * len(rates)

    def work(index):
        answers[index] = measure.client(
            server, "flight-ticket", begun=sampler.watch, action="paced", query=QUERY, bytes_per_second=rates[index]
        )

    sampler = processes.MemorySampler(server)
    try:
        threads.run(len(rates), work)
    finally:
        found = sampler.close()
    runs = [answer["runs"][0] for answer in answers]
    together = {"all_clients_rss_over_time": sampler.over_time(SAMPLES, sampler.all_clients)} if len(rates) > 1 else {}
    return {
        **found, "idle_rss": idle, "peak_above_idle": max(found["peak_rss"] - idle, 1),
        "client_peak_rss": max(answer["client_peak_rss"] for answer in answers),
        "all_clients_peak_rss": max(sampler.all_clients),
        "rows": sum(run["rows"] for run in runs), "bytes": sum(run["bytes"] for run in runs),
        "seconds": max(run["seconds"] for run in runs), "rss_over_time": sampler.over_time(SAMPLES),
        "client_rss_over_time": sampler.over_time(SAMPLES, sampler.largest_client), **together,
    }
