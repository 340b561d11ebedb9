"""Draws the diagrams of the docs: `make pictures` writes each `.svg` beside this file, a test compares them.

Colors follow the reader's scheme, light or dark. The background is opaque, so a page of the other scheme does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
COLORS = {  # name → light, dark
    "paper": ("#ffffff", "#10151b"),
    "ink": ("#1f2328", "#e6edf3"),
    "quiet": ("#57606a", "#a2abb6"),
    "worker": ("#ddf4ff", "#0c2a45"),
    "worker-line": ("#0969da", "#4c9dfd"),
    "driver": ("#ffe9d6", "#402610"),
    "driver-line": ("#bc4c00", "#f0883e"),
    "data": ("#dcf5e1", "#12301b"),
    "data-line": ("#1a7f37", "#46b85b"),
    "plain": ("#f1f3f5", "#1b222b"),
    "plain-line": ("#57606a", "#a2abb6"),
}


def _style() -> str:
    light = ";".join(f"--{name}:{colors[0]}" for name, colors in COLORS.items())
    dark = ";".join(f"--{name}:{colors[1]}" for name, colors in COLORS.items())
    kinds = "".join(f".{kind}{{fill:var(--{kind});stroke:var(--{kind}-line)}}" for kind in _KINDS)
    return (
        f"svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
        "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:var(--ink)}"
        ".title{font-weight:600}.note,.label{fill:var(--quiet)}"
        ".label{stroke:var(--paper);stroke-width:5;paint-order:stroke;stroke-linejoin:round}"
        ".line{fill:none;stroke:var(--quiet);stroke-width:1.6}.head{fill:var(--quiet)}.paper{fill:var(--paper)}"
        f".frame{{fill:none;stroke-width:1.6;stroke-dasharray:6 4}}.box{{stroke-width:1.4}}{kinds}"
        + "".join(f".{kind}-frame{{stroke:var(--{kind}-line)}}" for kind in _KINDS)
    )


_KINDS = ("worker", "driver", "data", "plain")


@dataclass
class Picture:
    """A drawing of boxes, frames, arrows and texts, in the order in which they are drawn."""

    name: str
    width: int
    height: int
    title: str
    description: str
    parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, w: float, h: float, title: str, *notes: str, kind: str = "plain") -> None:
        """A rounded box; what is stored has a round lid."""
        if kind == "data":
            self.parts.append(
                f'<path class="box data" d="M{x} {y + 8}a{w / 2} 8 0 0 1 {w} 0v{h - 16}a{w / 2} 8 0 0 1 {-w} 0z"/>'
                f'<path class="box data" d="M{x} {y + 8}a{w / 2} 8 0 0 0 {w} 0a{w / 2} 8 0 0 0 {-w} 0z"/>'
            )
        else:
            self.parts.append(f'<rect class="box {kind}" x="{x}" y="{y}" width="{w}" height="{h}" rx="7"/>')
        lid = 8 if kind == "data" else 0
        first = y + lid + (h - lid) / 2 - 8 * len(notes) + 5
        self.text(x + w / 2, first, title, style="title")
        for number, note in enumerate(notes, 1):
            self.text(x + w / 2, first + 16 * number, note, style="note", size=12)

    def frame(self, x: float, y: float, w: float, h: float, title: str, kind: str, *, below: bool = False) -> None:
        """A dashed frame around what runs in one process, with its title at the top or `below`."""
        self.parts.append(f'<rect class="frame {kind}-frame" x="{x}" y="{y}" width="{w}" height="{h}" rx="12"/>')
        self.text(x + 14, y + (h - 12 if below else 21), title, style="title", anchor="start")

    def text(self, x: float, y: float, words: str, *, style: str = "", anchor: str = "middle", size: int = 14) -> None:
        """One line of text; y is its base line."""
        place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}"'
        self.parts.append(f'<text class="{style}" {place}>{escape(words)}</text>')

    def arrow(
        self, *points: tuple[float, float], label: str = "", at: tuple[float, float] | None = None, both: bool = False
    ) -> None:
        """A line through the points, with a head at its end, and its label at a place of its own."""
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        start = ' marker-start="url(#head)"' if both else ""
        self.parts.append(f'<path class="line" d="{path}" marker-end="url(#head)"{start}/>')
        if label and at:
            self.text(*at, label, style="label", size=12)

    def svg(self) -> str:
        """The file's text."""
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" role="img" aria-labelledby="title description">',
                f'<title id="title">{escape(self.title)}</title>',
                f'<desc id="description">{escape(self.description)}</desc>',
                f"<style>{_style()}</style>",
                '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
                'orient="auto-start-reverse"><path class="head" d="M0 0L10 5L0 10z"/></marker></defs>',
                f'<rect class="paper" width="{self.width}" height="{self.height}" rx="12"/>',
                *self.parts,
                "</svg>\n",
            )
        )


def flow() -> Picture:
    """A window on its way, for the README."""
    picture = Picture(
        "flow",
        980,
        430,
        "The flow of a window",
        "Begin, in an Airflow worker without Spark, reads the log of the source and pins the window in the control "
        "store. A Spark driver without state reads the changed files, writes the targets and reads the marks back. "
        "Commit, in the worker, moves the offset and announces an asset event.",
    )
    picture.frame(330, 20, 430, 160, "Airflow worker: no Spark", "worker")
    picture.frame(330, 250, 430, 130, "Spark driver: no state", "driver", below=True)
    picture.box(20, 190, 100, 52, "any writer", "of the table")
    picture.box(185, 182, 110, 68, "source", "Delta table", kind="data")
    picture.box(344, 62, 116, 60, "begin", "pins the window", kind="worker")
    picture.box(630, 62, 116, 60, "commit", "moves the offset", kind="worker")
    picture.box(490, 88, 110, 78, "control store", "streams, offsets,", "transactions", kind="data")
    picture.box(350, 282, 130, 56, "change set", "of the window", kind="driver")
    picture.box(600, 282, 140, 56, "write", "marked, read back", kind="driver")
    picture.box(850, 62, 110, 60, "next DAG", "by asset event")
    picture.box(850, 240, 110, 56, "mirror", kind="data")
    picture.box(850, 330, 110, 56, "history", kind="data")
    picture.arrow((120, 216), (183, 216), label="commits", at=(152, 207))
    picture.arrow((240, 182), (240, 92), (342, 92), label="its log", at=(284, 84))
    picture.arrow((240, 250), (240, 310), (348, 310), label="files that changed", at=(270, 330))
    picture.arrow((460, 104), (488, 118), both=True)
    picture.arrow((630, 104), (602, 118), both=True)
    picture.arrow((402, 122), (402, 280), label="JobSpec", at=(402, 214))
    picture.arrow((480, 310), (598, 310), label="rows", at=(540, 302))
    picture.arrow((688, 282), (688, 124), label="JobResult: evidence", at=(688, 214))
    picture.arrow((746, 92), (848, 92), label="asset event", at=(800, 84))
    picture.arrow((740, 302), (848, 270), label="by merge", at=(792, 268))
    picture.arrow((740, 320), (848, 356), label="by append", at=(792, 362))
    picture.text(545, 410, "Nothing new: begin and commit alone, without a JVM.", style="note", size=13)
    return picture


def architecture() -> Picture:
    """Two processes, five words, three journeys."""
    picture = Picture(
        "architecture",
        980,
        610,
        "Two processes, five words, three journeys",
        "The worker process has face, worker and store, and writes the control store. The driver process has driver "
        "and writes Delta tables. Both import planning and model. Three journeys pass through them: a window of a "
        "stream, a wave of a change stream, an object of a replication.",
    )
    picture.frame(20, 20, 350, 290, "Airflow worker: state, no Spark", "worker")
    picture.frame(610, 20, 350, 290, "Spark driver: Spark, no state", "driver")
    picture.box(40, 50, 310, 52, "the face", "operators, sensors, client, cli, plugins")
    picture.box(40, 136, 140, 56, "store", "SQL, named moves", kind="worker")
    picture.box(210, 136, 140, 56, "worker", "steps of a task", kind="worker")
    picture.box(700, 136, 170, 56, "driver", "jobs on Spark", kind="driver")
    picture.box(400, 206, 180, 46, "planning", "decisions, pure")
    picture.box(400, 262, 180, 46, "model", "nouns, frozen")
    picture.box(40, 345, 140, 62, "control store", "SQLite, PostgreSQL", kind="data")
    picture.box(700, 345, 170, 62, "Delta tables", "sources, logs, targets", kind="data")
    picture.arrow((280, 102), (280, 134))
    picture.arrow((210, 164), (182, 164))
    picture.arrow((110, 192), (110, 343))
    picture.arrow((785, 192), (785, 343))
    picture.arrow((350, 150), (698, 150), label="Job: a request, by value", at=(490, 141))
    picture.arrow((700, 178), (352, 178), label="a report: evidence", at=(490, 196))
    picture.arrow((700, 376), (280, 376), (280, 194), label="logs, read without Spark", at=(490, 367))
    picture.text(490, 326, "imported by both", style="note", size=12)
    journeys = (
        ("a window", ("begin", "pin"), ("change set", "write"), ("judge marks", "move offset")),
        ("a wave", ("plan chunks", "pin"), ("read partitions", "write"), ("commit", "move watermark")),
        ("an object", ("capture or backfill", "pin"), ("event log", "fold, merge"), ("confirm", "move position")),
    )
    for row, (name, *steps) in enumerate(journeys):
        y = 430 + row * 58
        picture.text(40, y + 25, name, style="title", anchor="start")
        for column, (kind, (step, then)) in enumerate(zip(("worker", "driver", "worker"), steps, strict=True)):
            x = 150 + column * 280
            picture.box(x, y, 240, 42, f"{step}, {then}", kind=kind)
            if column:
                picture.arrow((x - 40, y + 21), (x - 2, y + 21))
    return picture


def main() -> None:
    """Write all of them."""
    for picture in (flow(), architecture()):
        (HERE / f"{picture.name}.svg").write_text(picture.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
