import MartletContent
import MartletWire

/// The value of a `Strict-Transport-Security` field (RFC 6797 §6.1).
package struct StrictTransportSecurity: Hashable, Sendable {
    /// The lifetime in seconds; 0 to forget the host. Numbers above 2⁶³ − 1 count as that number.
    package var maximumAge: Int64
    /// Whether all names below the host are included.
    package var includesSubdomains: Bool

    /// Parses a value; `nil` if it does not conform to the grammar, a directive occurs twice, or `max-age` is missing.
    /// Unknown directives are ignored.
    package init?(_ value: some Sequence<UInt8>) {
        var parser = FieldValueParser(bytes: Array(value))
        var (names, age, includesSubdomains): (Set<String>, Int64?, Bool) = ([], nil, false)
        repeat {
            parser.skipBlanks()
            // A directive may be empty, as after a last semicolon.
            guard let name = parser.token()?.lowercased() else { continue }
            guard names.insert(name).inserted else { return nil }
            parser.skipBlanks()
            var argument: String?
            if parser.take(UInt8(ascii: "=")) {
                parser.skipBlanks()
                argument = parser.tokenOrQuotedString()
                guard argument != nil else { return nil }
                parser.skipBlanks()
            }
            if name == "max-age" {
                switch DecimalNumber(Array((argument ?? "").utf8)[...]) {
                case .value(let seconds): age = Int64(clamping: seconds)
                case .overflow: age = .max
                case .invalid: return nil
                }
            } else if name == "includesubdomains" {
                guard argument == nil else { return nil }
                includesSubdomains = true
            }
        } while parser.take(UInt8(ascii: ";"))
        guard parser.isAtEnd, let age else { return nil }
        (maximumAge, self.includesSubdomains) = (age, includesSubdomains)
    }
}
