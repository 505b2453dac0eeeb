/// The figures of a download, as they stand in a line.
struct DownloadFigures: Sendable {
    /// Columns of ``tail``.
    static let longTail = 29
    /// Columns of ``shortStatus``.
    static let shortTail = 13

    private let row: DownloadRow

    /// The figures of a row.
    init(_ row: DownloadRow) {
        self.row = row
    }

    /// Hundredths; 100 only when all is there.
    static func percent(_ fraction: Double) -> String {
        "\(fraction >= 1 ? 100 : min(99, max(0, Int(fraction * 100))))%"
    }

    /// The bytes that are there.
    var amount: String { ProgressText.size(Double(row.bytes)) }

    /// The bytes that are there, in at most eight columns: `1023 MiB`.
    var shortAmount: String {
        let parts = amount.split(separator: " ")
        guard parts.count == 2, amount.count > 8, let point = parts[0].firstIndex(of: ".") else {
            return amount
        }
        return "\(parts[0][..<point]) \(parts[1])"
    }

    /// The bytes that are there, and how many there will be.
    var amountOfTotal: String {
        row.total.map { "\(amount) of \(ProgressText.size(Double($0)))" } ?? amount
    }

    /// Rate and time, or what keeps bytes from coming.
    var tail: String {
        switch row.phase {
        case .waiting(let time, let failures) where failures > 1:
            return "again in \(seconds(time)) (failure \(failures))"
        case .waiting(let time, _): return "trying again in \(seconds(time))"
        case .starting, .verifying: return shortStatus
        case .receiving:
            if row.isStalled {
                return row.stall < .seconds(60) ? shortStatus : "stalled \(ProgressText.time(row.stall))"
            }
            guard let left = row.timeLeft else { return rate }
            return ColumnText.fitted(rate, to: 12) + " \(ProgressText.time(left)) left"
        }
    }

    /// Rate alone, or what keeps bytes from coming, in at most ``shortTail`` columns where that can be.
    var shortStatus: String {
        switch row.phase {
        case .starting: "starting"
        case .verifying: "verifying"
        case .waiting(let time, _): "again in \(seconds(time))"
        case .receiving: row.isStalled ? "stalled \(seconds(row.stall))" : rate
        }
    }

    private var rate: String { "\(ProgressText.size(row.rate))/s" }

    private func seconds(_ duration: Duration) -> String { "\(duration.components.seconds) s" }
}
