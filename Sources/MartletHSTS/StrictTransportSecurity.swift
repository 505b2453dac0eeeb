import MartletCore

/// The value of a `Strict-Transport-Security` field (RFC 6797 §6.1).
package struct StrictTransportSecurity: Hashable, Sendable {
    /// The lifetime in seconds; 0 to forget the host. Numbers above 2⁶³ − 1 count as that number.
    package var maximumAge: Int64
    /// Whether all names below the host are included.
    package var includesSubdomains: Bool

    /// Parses a value; `nil` if it does not conform to the grammar, a directive occurs twice, or `max-age` is missing.
    /// Unknown directives are ignored.
    package init?(_ value: some Sequence<UInt8>) {
        var scanner = DirectiveScanner(rest: Array(value)[...])
        var (names, age, includesSubdomains): (Set<[UInt8]>, Int64?, Bool) = ([], nil, false)
        repeat {
            // A directive may be empty, as after a last semicolon.
            guard let name = scanner.token() else { continue }
            guard names.insert(name).inserted else { return nil }
            let argument = scanner.take(UInt8(ascii: "=")) ? scanner.word() : .some(.none)
            guard let argument else { return nil }
            if name.elementsEqual("max-age".utf8) {
                switch DecimalNumber((argument ?? [])[...]) {
                case .value(let seconds): age = Int64(clamping: seconds)
                case .overflow: age = .max
                case .invalid: return nil
                }
            } else if name.elementsEqual("includesubdomains".utf8) {
                guard argument == nil else { return nil }
                includesSubdomains = true
            }
        } while scanner.take(UInt8(ascii: ";"))
        guard scanner.isAtEnd, let age else { return nil }
        (maximumAge, self.includesSubdomains) = (age, includesSubdomains)
    }
}

/// A cursor over directives. Blanks are skipped after each item.
private struct DirectiveScanner {
    var rest: ArraySlice<UInt8>

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skipBlanks() { rest = rest.drop(while: ByteClass.isBlank) }

    mutating func take(_ byte: UInt8) -> Bool {
        guard rest.first == byte else { return false }
        rest.removeFirst()
        skipBlanks()
        return true
    }

    /// Returns a token in lower case; `nil` without one.
    mutating func token() -> [UInt8]? {
        skipBlanks()
        let token = rest.prefix(while: ByteClass.isToken)
        rest = rest.dropFirst(token.count)
        skipBlanks()
        return token.isEmpty ? nil : token.map(ByteClass.lowercased)
    }

    /// Returns a token or the content of a quoted string; `nil`, as the outer optional, if neither follows.
    mutating func word() -> [UInt8]?? {
        guard rest.first == UInt8(ascii: "\"") else { return token().map { .some($0) } }
        rest.removeFirst()
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") {
                skipBlanks()
                return value
            }
            guard byte == UInt8(ascii: "\\") else {
                value.append(byte)
                continue
            }
            guard let escaped = rest.popFirst() else { return nil }
            value.append(escaped)
        }
        return nil
    }
}
