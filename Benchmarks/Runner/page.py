"""The page of results."""

import os

import terminal
from programs import BENCHMARKS


def table(rows):
    """Rows as a table in Markdown; the first is its head."""
    first, *others = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    yield "| " + " | ".join(first) + " |"
    yield "|---|" + "---:|" * (len(first) - 1)
    for row in others:
        yield "| " + " | ".join(row) + " |"


def write(all_results, machine, command, rounds, chart):
    """The page, as Markdown."""
    lines = [
        "# Results", "",
        f"Written by `{command}` on {machine['date']}. Do not edit: the next run writes it anew.", "",
        f"All contenders of a scenario run in turns, each as a process of its own, {rounds} rounds unless a "
        "table shows a single figure; a figure is the median of its rounds, in brackets the least and the greatest. A ratio is "
        "taken within each round. The server is nginx with one worker on the same machine, over loopback; over TLS it "
        "speaks TLS 1.3 with TLS_AES_128_GCM_SHA256 to everybody. CPU time is the operating system's account of the "
        "contender's process while it was measured (of wrk's whole process), its own code and the kernel's for it; "
        "peak memory is the most that was ever resident. `martlet-loop` is Martlet with the loop preferred.", "",
        *table([["machine", ""], *([name, value] for name, value in machine.items() if name != "date")]), "",
        "## To reach", ""]
    bars = [[results.scenario.name, *row]
            for results in all_results for row in terminal.bar_rows(results)]
    lines += [*table([["scenario", "bar", "measured", "verdict"], *bars]), "",
              f"{sum(row[-1] == 'met' for row in bars)} of {len(bars)} are met.", "", f"![chart]({chart})", ""]
    if os.path.exists(f"{BENCHMARKS}/NOTES.md"):
        with open(f"{BENCHMARKS}/NOTES.md", encoding="utf-8") as notes:
            lines += ["## Notes", "", notes.read().strip(), ""]
    for results in all_results:
        title = results.scenario.title
        lines += [f"## {results.scenario.name}", "", title[0].upper() + title[1:] + ".",
                  *([results.scenario.note] if results.scenario.note else []), ""]
        lines += [*table(terminal.rows(results)), ""]
        lines += [line for name, fault in results.faults.items()
                  for line in [f"{name} failed: `{fault.splitlines()[0]}`", ""]]
    return "\n".join(lines)
