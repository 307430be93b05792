"""Draws README's picture from a run of `make bench`: sizes, and the questions Q1 to Q10 beside heap and
DuckDB.

Called by scripts/bench.sh all, with the Python of target/venv: picture.py EVENTS.json PICTURE.svg. Bars of
questions are how many times faster than heap, on a logarithmic axis.
"""

import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {"heap": "#8c8c8c", "colcompress": "#1f6feb", "rowcompress": "#2da44e", "DuckDB": "#f2a900", "zstd Parquet": "#b9c7d6"}
TITLES = {"Q1": "count(*)", "Q2": "sums, averages", "Q3": "ten groups", "Q4": "percentile by group", "Q5": "one month by day", "Q6": "jsonb @>",
          "Q7": "groups of a jsonb field", "Q8": "array @>", "Q9": "LIKE 'prefix%'", "Q10": "many aggregates"}


def sizes(report):
    tables = {name.removeprefix("events_"): size for name, size in report["sizes"]["tables"].items()}
    found = {"heap": tables["heap"], "DuckDB": report["duckdb"]["bytes"]}
    if report["sizes"]["parquet"]:
        found["zstd Parquet"] = report["sizes"]["parquet"]["bytes"]
    return found | {name: tables[name] for name in ("rowcompress", "colcompress") if name in tables}


def speeds(report):
    """{question: (heap's time over colcompress's, over DuckDB's)} with one thread."""
    found = {}
    for name, entry in report["modes"]["serial"]["questions"].items():
        if name in TITLES and entry["equal"]:
            heap, columns, duck = (statistics.median(entry[engine]["wall_ms"]) for engine in ("heap", report["engines"][1], "duckdb"))
            found[TITLES[name]] = (heap / columns, heap / duck)
    return found


def main(source, target):
    report = json.loads(source.read_text())
    plt.rcParams["svg.hashsalt"] = "colonnade"
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), gridspec_kw={"width_ratios": (1, 2.1)})
    stored = sizes(report)
    left.barh(range(len(stored)), [size / 1e6 for size in stored.values()], color=[COLOURS[name] for name in stored])
    for place, size in enumerate(stored.values()):
        left.text(size / 1e6, place, f" {size / 1e6:.0f}", va="center", fontsize=9)
    left.set_yticks(range(len(stored)), stored)
    left.set_xlim(0, max(stored.values()) / 1e6 * 1.15)
    left.set_xlabel("megabytes")
    left.set_title("a million events", fontsize=11)
    asked = dict(reversed(speeds(report).items()))
    for place, (name, shift) in enumerate((("colcompress", 0.2), ("DuckDB", -0.2))):
        right.barh([row + shift for row in range(len(asked))], [pair[place] for pair in asked.values()], 0.38, color=COLOURS[name], label=name)
    for row, pair in enumerate(asked.values()):
        right.text(pair[0], row + 0.2, f" {pair[0]:.0f}x", va="center", fontsize=8)
    right.set_yticks(range(len(asked)), asked)
    right.set_xscale("log")
    right.set_xlim(left=1)
    right.set_xlabel("times as fast as heap, one thread")
    right.set_title(f"{len(asked)} questions, answers compared with heap's", fontsize=11)
    right.legend(fontsize=9, loc="lower right")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=120, metadata={"Date": None} if target.suffix == ".svg" else None)
    print(f"written: {target}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
