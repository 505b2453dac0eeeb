"""The chart: the first measure of each scenario, with a bar for each contender and Martlet's in color."""

from statistics import median
from xml.sax.saxutils import escape

WIDTH, LABEL, VALUE, BAR, GAP = 760, 170, 150, 16, 5
COLOURS = {"martlet": "#c2410c", "martlet-loop": "#ea8a4f"}


def draw(all_results):
    """Returns the chart as SVG; whiskers reach from the minimum to the maximum of the rounds."""
    parts = []
    y = 24
    room = WIDTH - LABEL - VALUE
    for results in all_results:
        measure = results.scenario.measures[0]
        names = [name for name in results.contenders() if results.values(name, measure.name)]
        if not names:
            continue
        most = max(max(results.values(name, measure.name)) for name in names) or 1
        title = escape(f"{results.scenario.title}, {measure.title}")
        parts.append(f'<text x="8" y="{y}" class="title">{title}</text>')
        y += 10
        for name in names:
            values = results.values(name, measure.name)
            middle, low, high = (room * max(0, value) / most for value in (median(values), min(values), max(values)))
            text_y = y + BAR - 4
            parts.append(f'<text x="{LABEL - 8}" y="{text_y}" class="name">{escape(name)}</text>')
            parts.append(f'<rect x="{LABEL}" y="{y}" width="{middle:.1f}" height="{BAR}" '
                         f'fill="{COLOURS.get(name, "#94a3b8")}"/>')
            if high - low > 1:
                parts.append(f'<path d="M{LABEL + low:.1f} {y + BAR / 2}H{LABEL + high:.1f}" class="spread"/>')
            parts.append(f'<text x="{LABEL + max(middle, high) + 6:.1f}" y="{text_y}">'
                         f'{escape(measure.text(median(values)))}</text>')
            y += BAR + GAP
        y += 26
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
            'font-family="system-ui, sans-serif" font-size="12">\n'
            '<style>.title{font-weight:600}.name{text-anchor:end}.spread{stroke:#1f2937;stroke-width:1.5}</style>\n'
            f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")
