/// The progress of downloads on a terminal: a line for each running one, and one for all of them last. Pure: the lines
/// depend on the arguments only, and none is wider than the terminal less one column.
struct DownloadBars: Sendable {
    var size: TerminalSize
    /// Whether more than ASCII may be used.
    var usesUnicode: Bool
    var usesColour: Bool

    /// The columns of the parts of a line: chosen only by the width, so that the lines are aligned.
    private struct Layout {
        /// The minimum columns of the bar; 0 for none.
        var bar = 0
        var percent = 0
        /// The columns of the bytes.
        var amount = 0
        /// The columns of rate and time, or of the reason that no bytes come.
        var tail: Int
        /// The minimum columns of the name.
        var name: Int

        var parts: Int { [bar, percent, amount, tail].reduce(0) { $0 + ($1 > 0 ? $1 + 2 : 0) } }
    }

    private static let layouts = [
        Layout(bar: 12, percent: 4, amount: 24, tail: DownloadFigures.longTail, name: 10),
        Layout(bar: 10, percent: 4, amount: 10, tail: DownloadFigures.longTail, name: 8),
        Layout(bar: 10, percent: 4, tail: DownloadFigures.longTail, name: 8),
        Layout(bar: 8, percent: 4, tail: DownloadFigures.shortTail, name: 6),
        Layout(percent: 4, tail: DownloadFigures.shortTail, name: 4),
    ]

    private var room: Int { max(1, size.columns - 1) }

    /// The lines. If the terminal has too few, the first downloads are shown, and the number of the others.
    /// - Parameter total: The line for all; `nil` for none.
    func lines(_ rows: [DownloadRow], total: DownloadTotal?) -> [String] {
        let names = rows.map { ColumnText.safe($0.name, usesUnicode: usesUnicode) }
        let layout = DownloadBars.layouts.first { $0.name + $0.parts <= room }
        var wanted = names.map { ColumnText.width($0) }.max() ?? 0
        if let total { wanted = max(wanted, ColumnText.width(label(total, columns: .max))) }
        let nameColumns = layout.map { widthOfNames($0, wanted: wanted) } ?? 0
        let shownLimit = max(1, size.rows - 1 - (total == nil ? 0 : 1))
        let shown = rows.count > shownLimit ? max(0, shownLimit - 1) : rows.count
        var lines = zip(names, rows).prefix(shown).map { name, row in line(name, row, layout, nameColumns) }
        if shown < rows.count {
            lines.append(ColumnText.cut("and \(rows.count - shown) more", to: room, usesUnicode: usesUnicode))
        }
        if let total {
            let columns = layout == nil ? compactNameColumns(total.row) : nameColumns
            lines.append(line(label(total, columns: columns), total.row, layout, nameColumns))
        }
        return lines
    }

    /// Without a bar, names have all spare columns; otherwise two thirds of them, up to a third of the line.
    private func widthOfNames(_ layout: Layout, wanted: Int) -> Int {
        guard layout.bar > 0 else { return room - layout.parts }
        let spare = room - layout.parts - layout.name
        return max(layout.name, min(wanted, layout.name + spare * 2 / 3, room / 3))
    }

    private func line(_ name: String, _ row: DownloadRow, _ layout: Layout?, _ nameColumns: Int) -> String {
        let figures = DownloadFigures(row)
        guard let layout else { return compactLine(name, row) }
        let cut = ColumnText.cut(name, to: nameColumns, usesUnicode: usesUnicode)
        var parts = [ColumnText.fitted(cut, to: nameColumns)]
        let barColumns = room - nameColumns - layout.parts + layout.bar
        if let fraction = row.fraction {
            if layout.bar > 0 { parts.append(bar(fraction, columns: barColumns)) }
            parts.append(
                ColumnText.fitted(DownloadFigures.percent(fraction), to: layout.percent, isRight: true))
            if layout.amount > 0 {
                let amount = layout.amount > 10 ? figures.amountOfTotal : figures.amount
                parts.append(ColumnText.fitted(amount, to: layout.amount, isRight: true))
            }
        } else {
            // Without a total there is no bar: the bytes have its columns.
            let joined = [layout.bar > 0 ? barColumns : 0, layout.percent, layout.amount].filter { $0 > 0 }
            let columns = joined.reduce(-2) { $0 + $1 + 2 }
            let amount = columns < 10 ? figures.shortAmount : figures.amount
            parts.append(ColumnText.fitted(amount, to: columns, isRight: true))
        }
        let isLong = layout.tail >= DownloadFigures.longTail
        parts.append(
            coloured(ColumnText.fitted(isLong ? figures.tail : figures.shortStatus, to: layout.tail), row))
        return parts.joined(separator: "  ")
    }

    // MARK: Narrow terminals

    private func compactNameColumns(_ row: DownloadRow) -> Int {
        max(0, room - 2 - ColumnText.width(compactFigure(row)))
    }

    private func compactFigure(_ row: DownloadRow) -> String {
        let figures = DownloadFigures(row)
        if row.isStalled || row.phase != .receiving { return figures.shortStatus }
        return row.fraction.map(DownloadFigures.percent) ?? figures.shortAmount
    }

    /// A name and one figure.
    private func compactLine(_ name: String, _ row: DownloadRow) -> String {
        let columns = compactNameColumns(row)
        let figure = String(ColumnText.prefix(of: compactFigure(row), columns: room))
        guard columns >= 3 else { return coloured(figure, row) }
        let cut = ColumnText.cut(name, to: columns, usesUnicode: usesUnicode)
        return "\(ColumnText.fitted(cut, to: columns))  \(coloured(figure, row))"
    }

    private func label(_ total: DownloadTotal, columns: Int) -> String {
        ColumnText.width(total.count) <= columns ? total.count : "\(total.finishedCount)/\(total.fileCount)"
    }

    // MARK: Marks

    private func bar(_ fraction: Double, columns: Int) -> String {
        // The last column stays empty until the download is complete.
        let done = fraction >= 1 ? columns : min(columns - 1, Int(Double(columns) * fraction))
        let (full, empty) = ProgressText.bar(done, of: columns, usesUnicode: usesUnicode)
        guard usesColour else { return full + empty }
        return "\u{1B}[32m\(full)\u{1B}[2;39m\(empty)\u{1B}[0m"
    }

    private func coloured(_ text: String, _ row: DownloadRow) -> String {
        let isWaiting = if case .waiting = row.phase { true } else { row.isStalled }
        return usesColour && isWaiting ? "\u{1B}[33m\(text)\u{1B}[0m" : text
    }
}
