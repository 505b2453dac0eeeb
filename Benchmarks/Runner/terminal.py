"""The table on the terminal."""

from statistics import median


def verdict(bar, values):
    """Returns the result of a bar in one word."""
    if not values:
        return "not measured"
    return "met" if bar.is_met(median(values)) else "NOT MET"


def spread(values, text):
    """Formats a median with the minimum and the maximum."""
    if not values:
        return "–"
    if len(values) == 1:
        return text(values[0])
    return f"{text(median(values))} [{text(min(values))}–{text(max(values))}]"


def rows(results):
    """Returns a scenario's figures, one row per contender."""
    measures = [measure for measure in results.scenario.measures
                if any(results.values(name, measure.name) for name in results.contenders())]
    yield ["", *(measure.title for measure in measures)]
    for name in results.contenders():
        yield [name, *(spread(results.values(name, measure.name), measure.text) for measure in measures)]


def bar_rows(results):
    """Returns a scenario's bars, one row per bar."""
    for bar, values in results.verdicts():
        yield [bar.title(results.measures), spread(values, lambda value: f"{value:.3g}"), verdict(bar, values)]


def lined_up(table, indent="  "):
    """Formats rows as lines with columns."""
    table = list(table)
    if not table:
        return []
    widths = [max(len(row[index]) for row in table) for index in range(len(table[0]))]
    return [indent + "  ".join(
        cell.ljust(width) if index == 0 else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in table]


def show(results):
    """Prints a scenario: ratios first."""
    print(f"\n{results.scenario.name}: {results.scenario.title}")
    for line in [*lined_up(bar_rows(results)), *lined_up(rows(results))]:
        print(line)
    for name, fault in results.faults.items():
        print(f"  {name}: {fault}")
    if results.scenario.note:
        print(f"  {results.scenario.note}")


def show_summary(all_results):
    """Prints all bars of all scenarios."""
    table = [[results.scenario.name, *row] for results in all_results for row in bar_rows(results)]
    if table:
        print("\nTo reach")
        for line in lined_up([[f"{row[0]}: {row[1]}", *row[2:]] for row in table]):
            print(line)
        met = sum(row[-1] == "met" for row in table)
        print(f"  {met} of {len(table)} met")
