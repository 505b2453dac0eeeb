"""The page of results."""

import terminal


def table(rows):
    """Formats rows as a Markdown table; the first row is its header."""
    first, *others = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    yield "| " + " | ".join(first) + " |"
    yield "|---|" + "---:|" * (len(first) - 1)
    for row in others:
        yield "| " + " | ".join(row) + " |"


def write(all_results, machine, command, rounds, chart):
    """Returns the page as Markdown."""
    lines = [
        "# Results", "",
        f"Written by `{command}` on {machine['date']}. Do not edit: the next run overwrites it.", "",
        f"All contenders of a scenario run in alternation, each as a separate process, for {rounds} rounds unless a "
        "table shows a single figure. A figure is the median of its rounds, with the minimum and the maximum in brackets. "
        "A ratio is computed within each round. The server is nginx with one worker on the same machine, over loopback. "
        "Over TLS all contenders use TLS 1.3 with TLS_AES_128_GCM_SHA256. CPU time is that of the contender's process "
        "during the measurement (for wrk of its whole process), including the kernel's time for it. Peak memory is the "
        "maximum resident memory. `martlet-loop` is Martlet with the event loop as the preferred executor.", "",
        *table([["machine", ""], *([name, value] for name, value in machine.items() if name != "date")]), "",
        "## To reach", ""]
    bars = [[results.scenario.name, *row]
            for results in all_results for row in terminal.bar_rows(results)]
    lines += [*table([["scenario", "target", "measured", "verdict"], *bars]), "",
              f"{sum(row[-1] == 'met' for row in bars)} of {len(bars)} are met. [NOTES.md](NOTES.md) explains the others.", "",
              f"![chart]({chart})", ""]
    for results in all_results:
        title = results.scenario.title
        lines += [f"## {results.scenario.name}", "", title[0].upper() + title[1:] + ".",
                  *([results.scenario.note] if results.scenario.note else []), ""]
        lines += [*table(terminal.rows(results)), ""]
        lines += [line for name, fault in results.faults.items()
                  for line in [f"{name} failed: `{fault.splitlines()[0]}`", ""]]
    return "\n".join(lines)
