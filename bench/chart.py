"""Draws a suite's JSON as bars, one panel a mode: chart.py SUITE.json writes SUITE.svg and SUITE.png beside
it.

Run with the Python of target/venv, which has matplotlib. Times are on a logarithmic axis: what is asked is
how many times faster, and the questions differ by a thousand.
"""

import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {"heap": "#8c8c8c", "colcompress": "#1f6feb", "rowcompress": "#2da44e", "duckdb": "#f2a900", "hyper": "#c2415d"}


def main(path):
    report = json.loads(path.read_text())
    engines, modes = report["engines"], report["modes"]
    most = max(len(mode["questions"]) for mode in modes.values())
    figure, panels = plt.subplots(len(modes), 1, figsize=(max(8, 0.42 * most + 2), 3.6 * len(modes)), squeeze=False)
    for panel, (name, mode) in zip(panels[:, 0], modes.items()):
        questions = mode["questions"]
        width = 0.8 / len(engines)
        for place, engine in enumerate(engines):
            bars = [(number, statistics.median(entry[engine]["wall_ms"])) for number, entry in enumerate(questions.values())
                    if entry["equal"] and entry[engine]["wall_ms"]]
            if not bars:
                continue
            panel.bar([x + (place - (len(engines) - 1) / 2) * width for x, _ in bars], [y for _, y in bars], width, label=engine,
                      color=COLOURS.get(engine, "#555555"))
        panel.set_yscale("log")
        panel.set_ylabel("milliseconds")
        panel.set_xticks(range(len(questions)), list(questions), fontsize=8)
        panel.grid(axis="y", alpha=0.3)
        panel.set_axisbelow(True)
        means = ", ".join(f"{title.partition(', ')[2]} {mean:.2f}x" for title, mean in mode["geometric_means"].items() if mean and title.startswith("all") and "CPU" not in title)
        panel.set_title(f"{report['suite']}, {name}: geometric mean of {engines[1]} {means}", fontsize=10)
        panel.legend(fontsize=8, ncols=len(engines), loc="upper left")
    figure.tight_layout()
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_suffix(suffix), dpi=110)
    print(f"written: {path.with_suffix('.svg')}, {path.with_suffix('.png')}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
