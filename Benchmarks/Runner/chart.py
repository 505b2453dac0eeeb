"""The charts: all scenarios with a bar for each contender, and the headlines, which the README shows."""

from math import log2
from statistics import median
from xml.sax.saxutils import escape

WIDTH, LABEL, VALUE, BAR, GAP = 760, 170, 150, 16, 5
COLOURS = {"martlet": "#c2410c", "martlet-loop": "#ea8a4f"}

# Scenarios of the README's picture, with their titles there and the peers by contender. Some are slower than a peer.
HEADLINES = [
    ("small-64", "Small GETs, 64 connections", {"go": "Go", "async-http-client": "async-http-client"}),
    ("small-tls-64", "Small GETs over TLS", {"go": "Go", "async-http-client": "async-http-client"}),
    ("connect-tls", "New TLS connections", {"curl": "libcurl", "async-http-client": "async-http-client"}),
    ("file-plain", "1 GB to a file", {"curl": "libcurl", "async-http-client": "async-http-client"}),
    ("download-many", "1,000 files of 10 KB", {"curl": "curl", "aria2": "aria2"}),
    ("cache-memory", "Response from memory", {"network": "a GET over loopback"}),
]
SLOWER, FASTER = "#94a3b8", COLOURS["martlet"]


def headlines(all_results):
    """Returns a small picture as SVG: the rate of Martlet divided by that of its peers, on a logarithmic scale."""
    width, one, unit, least, most = 360, 236, 34, -1.2, 3.5
    parts, y = [], 22
    scenarios = {results.scenario.name: results for results in all_results}
    for name, title, peers in HEADLINES:
        if name not in scenarios:
            continue
        parts.append(f'<text x="8" y="{y}" class="title">{escape(title)}</text>')
        y += 7
        for peer, label in peers.items():
            ratios = scenarios[name].ratios("martlet", peer, "rate")
            if not ratios:
                continue
            ratio = median(ratios)
            end = one + unit * min(max(log2(ratio), least), most)
            parts.append(f'<text x="16" y="{y + 13}">{ratio:.2g} × {escape(label)}</text>')
            parts.append(f'<path d="M{one} {y}v17" stroke="#1f2937"/>')
            parts.append(f'<rect x="{min(one, end):.1f}" y="{y + 2}" width="{max(abs(end - one), 1):.1f}" height="13" '
                         f'fill="{FASTER if ratio >= 1 else SLOWER}"/>')
            y += 19
        y += 22
    y -= 22
    parts.append(f'<text x="8" y="{y + 18}" class="small">Rate of Martlet beside others; right of the line is '
                 'faster.</text>')
    y += 28
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
            'font-family="system-ui, sans-serif" font-size="14">\n'
            '<style>.title{font-weight:600}.small{font-size:12px;fill:#475569}</style>\n'
            f'<rect width="{width}" height="{y}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")


def draw(all_results):
    """Returns the chart of all scenarios as SVG: their first measures, Martlet's in color.

    Whiskers reach from the minimum to the maximum of the rounds.
    """
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
