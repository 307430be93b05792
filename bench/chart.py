"""Draws a suite's JSON as bars, one panel a mode: chart.py SUITE.json writes SUITE.svg and SUITE.png beside
it.

Run with the Python of target/venv, which has matplotlib. Times are on a logarithmic axis: what is asked is
how many times faster, and the questions differ by a thousand.
"""

import json
import statistics
import sys
import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {"heap": "#8c8c8c", "colcompress": "#1f6feb", "rowcompress": "#2da44e", "duckdb": "#f2a900", "hyper": "#c2415d",
           "plain table": "#8c8c8c", "columnar_query": "#1f6feb", "columnar, same SQL": "#9ec5fe", "function": "#2da44e"}
# Those of peers (harness.peers), in the order in which they race.
OF_PEERS = ("#8250df", "#d2a8ff", "#cf222e", "#fb8f67", "#0a7d8c", "#7a4b1e")


def colours(engines):
    """A colour for each engine."""
    others = iter(OF_PEERS)
    return {engine: COLOURS.get(engine) or next(others, "#555555") for engine in engines}


def main(path):
    report = json.loads(path.read_text())
    engines, modes = report["engines"], report["modes"]
    colour = colours(engines)
    most = max(len(mode["questions"]) for mode in modes.values())
    # With peers there are twice as many bars.
    wide = 0.42 * max(1, len(engines) / 5) * most + 2
    figure, panels = plt.subplots(len(modes), 1, figsize=(max(8, wide), 3.6 * len(modes)), squeeze=False)
    for panel, (name, mode) in zip(panels[:, 0], modes.items()):
        questions = mode["questions"]
        bars = {engine: [(number, statistics.median(entry[engine]["wall_ms"])) for number, entry in enumerate(questions.values())
                         if entry["equal"] and entry[engine]["wall_ms"]] for engine in engines}
        # Only ours are asked cold: the others leave no gaps there.
        bars = {engine: of for engine, of in bars.items() if of}
        width = 0.8 / max(1, len(bars))
        for place, (engine, of) in enumerate(bars.items()):
            panel.bar([x + (place - (len(bars) - 1) / 2) * width for x, _ in of], [y for _, y in of], width, label=engine, color=colour[engine])
        panel.margins(x=0.01)
        panel.set_yscale("log")
        # Room for the legend.
        low, high = panel.get_ylim()
        panel.set_ylim(low, high * (high / low) ** 0.15)
        panel.set_ylabel("milliseconds")
        panel.set_xticks(range(len(questions)), list(questions), fontsize=8)
        panel.grid(axis="y", alpha=0.3)
        panel.set_axisbelow(True)
        means = ", ".join(f"{title.partition(', ')[2]} {mean:.2f}x" for title, mean in mode["geometric_means"].items() if mean and title.startswith("all") and "CPU" not in title)
        title = f"{report['suite']}, {name}: geometric mean of {engines[1]} {means}"
        # Ten points of text take about a fourteenth of an inch a letter.
        panel.set_title("\n".join(textwrap.wrap(title, int(14 * wide))), fontsize=10)
        panel.legend(fontsize=8, ncols=len(engines), loc="upper left")
    figure.tight_layout()
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_suffix(suffix), dpi=110)
    print(f"written: {path.with_suffix('.svg')}, {path.with_suffix('.png')}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
