"""The figures of all rounds and their medians."""

from statistics import median


class Results:
    """The figures of one scenario."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.rounds = []
        self.faults = {}

    @property
    def measures(self):
        """The kinds of figures by name."""
        return {measure.name: measure for measure in self.scenario.measures}

    def contenders(self):
        """The contenders with figures in order."""
        return [name for name in self.scenario.contenders if any(name in figures for figures in self.rounds)]

    def values(self, contender, measure):
        """All figures of one kind."""
        return [figures[contender][measure] for figures in self.rounds
                if figures.get(contender, {}).get(measure) is not None]

    def middle(self, contender, measure):
        """The median of the figures, or None."""
        values = self.values(contender, measure)
        return median(values) if values else None

    def ratios(self, contender, beside, measure):
        """The ratios of two contenders' figures for each common round."""
        return [figures[contender][measure] / figures[beside][measure] for figures in self.rounds
                if figures.get(contender, {}).get(measure) is not None and figures.get(beside, {}).get(measure)]

    def verdicts(self):
        """Each bar with its figures of all rounds; bars that could not be measured have none."""
        for bar in self.scenario.bars:
            if bar.beside:
                yield bar, self.ratios(bar.of, bar.beside, bar.measure)
            else:
                yield bar, [value * bar.scale for value in self.values(bar.of, bar.measure)]

    def record(self):
        """Returns all figures for JSON."""
        return {
            "name": self.scenario.name,
            "title": self.scenario.title,
            "note": self.scenario.note,
            "measures": {measure.name: measure.title for measure in self.scenario.measures},
            "rounds": self.rounds,
            "medians": {
                name: {measure: self.middle(name, measure) for measure in self.measures}
                for name in self.contenders()},
            "faults": self.faults,
            "bars": [
                {"bar": bar.title(self.measures), "limit": bar.limit, "relation": bar.relation,
                 "median": median(values) if values else None, "values": values,
                 "met": bar.is_met(median(values)) if values else None}
                for bar, values in self.verdicts()],
        }
