"""ClickBench's table: its published columns and types, filled with values as skewed as those of a web log. The texts are
made of words: a few occur all the time, most hardly ever, and many columns are empty in most rows.
"""

import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import data

WIDE = "WatchID UserID FUniqID ParamPrice RefererHash URLHash"
INTEGERS = (
    "CounterID ClientIP RegionID RefererRegionID URLRegionID IPNetworkID SilverlightVersion3 CodeVersion HID RemoteIP "
    "WindowName OpenerName SendTiming DNSTiming ConnectTiming ResponseStartTiming ResponseEndTiming FetchTiming CLID"
)
NARROW = (
    "JavaEnable GoodEvent CounterClass OS UserAgent IsRefresh RefererCategoryID URLCategoryID ResolutionWidth "
    "ResolutionHeight ResolutionDepth FlashMajor FlashMinor NetMajor NetMinor UserAgentMajor CookieEnable JavascriptEnable "
    "IsMobile MobilePhone TraficSourceID SearchEngineID AdvEngineID IsArtifical WindowClientWidth WindowClientHeight "
    "ClientTimeZone SilverlightVersion1 SilverlightVersion2 SilverlightVersion4 IsLink IsDownload IsNotBounce IsOldCounter "
    "IsEvent IsParameter DontCountHits WithHash Age Sex Income Interests Robotness HistoryLength HTTPError "
    "SocialSourceNetworkID ParamCurrencyID HasGCLID"
)
TIMES = "EventTime ClientEventTime LocalEventTime"
# Text columns: how long their values are in words, how many different ones there are, and the share of empty ones.
TEXTS = {
    "Title": (11, 200_000, 0.05), "URL": (12, 400_000, 0.0), "Referer": (11, 300_000, 0.2), "FlashMinor2": (1, 20, 0.6),
    "UserAgentMinor": (1, 200, 0.1), "MobilePhoneModel": (1, 200, 0.95), "Params": (3, 1_000, 0.98),
    "SearchPhrase": (4, 100_000, 0.87), "PageCharset": (1, 8, 0.05), "OriginalURL": (12, 200_000, 0.5),
    "HitColor": (0, 5, 0.0), "BrowserLanguage": (0, 30, 0.0), "BrowserCountry": (0, 80, 0.0), "SocialNetwork": (1, 10, 0.98),
    "SocialAction": (1, 10, 0.99), "SocialSourcePage": (5, 1_000, 0.99), "ParamOrderID": (1, 1_000, 0.99),
    "ParamCurrency": (0, 4, 0.6), "OpenstatServiceName": (1, 20, 0.97), "OpenstatCampaignID": (1, 500, 0.97),
    "OpenstatAdID": (1, 1_000, 0.97), "OpenstatSourceID": (1, 500, 0.97), "UTMSource": (1, 100, 0.93),
    "UTMMedium": (1, 20, 0.93), "UTMCampaign": (2, 1_000, 0.93), "UTMContent": (2, 1_000, 0.96), "UTMTerm": (2, 1_000, 0.97),
    "FromTag": (1, 100, 0.96),
}
EPOCH_S, MONTH_S = 1_372_636_800, 31 * 86_400
WORDS, WORD_LETTERS = 20_000, (2, 13)
SKEW = 1.3


def groups() -> dict:
    """Columns by groups of types, as ClickBench names them, in lower case."""
    return {
        "integers": lower(f"{WIDE} {INTEGERS} {NARROW}"), "texts": [name.lower() for name in TEXTS],
        "dates and times": ["eventdate", *lower(TIMES)],
    }


def lower(names: str) -> list:
    return names.lower().split()


def parquet(rows: int) -> pathlib.Path:
    """Named after ClickBench's columns in lower case, so that nobody has to quote them."""
    return data.made(data.FOLDER / f"hits-{rows}.parquet", lambda path: pq.write_table(hits(rows), path))


def hits(rows: int) -> pa.Table:
    random = np.random.default_rng(data.SEED)
    columns = {name: random.integers(-(2**62), 2**62, rows) for name in lower(WIDE)}
    columns.update((name, skewed(random, rows, 2**30).astype(np.int32)) for name in lower(INTEGERS))
    columns.update((name, skewed(random, rows, 2**11).astype(np.int16)) for name in lower(NARROW))
    seconds = np.sort(random.integers(0, MONTH_S, rows)) + EPOCH_S
    for name in lower(TIMES):
        columns[name] = pa.array((seconds + random.integers(0, 60, rows)) * 1_000_000).cast(pa.timestamp("us"))
    columns["eventdate"] = pa.array((seconds // 86_400).astype(np.int32)).cast(pa.date32())
    words = vocabulary(random)
    for name, (length, different, empty) in TEXTS.items():
        columns[name.lower()] = texts(random, rows, words, length, min(different, rows), empty)
    return pa.table(columns)


def skewed(random: np.random.Generator, rows: int, limit: int) -> np.ndarray:
    """Most values are small and frequent, some are large and rare."""
    return np.minimum(random.zipf(SKEW, rows), limit - 1) - 1


def vocabulary(random: np.random.Generator) -> list:
    lengths = random.integers(*WORD_LETTERS, WORDS)
    letters = random.choice(list("abcdefghijklmnopqrstuvwxyz"), int(lengths.sum()))
    ends = np.cumsum(lengths)
    return ["".join(letters[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def texts(random: np.random.Generator, rows: int, words: list, length: int, different: int, empty: float) -> pa.Array:
    """Values of about `length` words (two letters for 0), chosen with skew from a pool; the first of the pool is empty."""
    pool = [""]
    for _ in range(different):
        count = max(1, random.poisson(length)) if length else 1
        chosen = [words[index] for index in skewed(random, count, WORDS)]
        pool.append("/".join(chosen) if length else chosen[0][:2])
    places = (1 + skewed(random, rows, different)).astype(np.int32)
    places[random.random(rows) < empty] = 0
    return pa.DictionaryArray.from_arrays(pa.array(places), pa.array(pool)).dictionary_decode()
