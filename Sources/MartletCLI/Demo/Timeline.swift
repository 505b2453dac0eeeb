import Martlet

/// When the parts of a request happened, as a picture of one line.
enum Timeline {
    private static let width = 32

    /// `GET /json 200  [cct.......rr]  connect 0.2 ms, TLS 3.1 ms, first byte 4.0 ms, total 4.2 ms`.
    static func line(_ title: String, _ metrics: HTTPMetrics) -> String {
        let connect = (metrics.dns ?? .zero) + (metrics.connect ?? .zero)
        let tls = metrics.tls ?? .zero
        let first = metrics.firstByte ?? metrics.total
        let total = max(metrics.total, first)
        let marks: [(Character, Duration)] = [
            ("c", connect), ("t", connect + tls), (".", first), ("r", total),
        ]
        var picture = ""
        for column in 0..<width {
            let time = total * (Double(column) + 0.5) / Double(width)
            picture.append(marks.first { time <= $0.1 }?.0 ?? "r")
        }
        var parts = [
            metrics.isConnectionReused
                ? "reused" : "connect \(milliseconds(connect)), TLS \(milliseconds(tls))"
        ]
        parts.append("first byte \(milliseconds(first))")
        parts.append("total \(milliseconds(total))")
        let padding = String(repeating: " ", count: max(0, 24 - title.count))
        return "\(title)\(padding) [\(picture)]  \(parts.joined(separator: ", "))"
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(1) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
