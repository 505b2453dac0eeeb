import MartletWire

/// The field `Retry-After`: seconds, or a date (RFC 9110 §10.2.3).
package struct RetryAfter: Equatable, Sendable {
    /// How long to wait; zero where the date is past.
    package let delay: Duration

    /// A value; `nil` when it is neither seconds nor a date.
    /// - Parameter now: Seconds since 1970.
    package init?(_ value: some Collection<UInt8>, now: Int64) {
        guard !value.isEmpty else { return nil }
        if value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            // More digits than make sense stand for a very long time, which policies cap.
            let seconds = value.count > 12 ? 1_000_000_000_000 : value.reduce(0) { $0 * 10 + Int64($1 - 48) }
            delay = .seconds(min(seconds, 1_000_000_000))
            return
        }
        let present = HTTPDate(secondsSinceEpoch: now)
        guard let date = HTTPDate(String(decoding: value, as: UTF8.self), now: present) else { return nil }
        delay = .seconds(
            max(0, min(date.secondsSinceEpoch.subtractingReportingOverflow(now).partialValue, 1_000_000_000)))
    }
}
