/// A host in its final form (WHATWG URL Standard, host parsing).
package struct URLHost {
    /// The serialized host, IPv6 without brackets.
    package let text: String
    /// The kind of host.
    package let kind: HTTPURL.HostKind
    /// The maximum length of a host as written, in bytes. The longest valid name has 3,036: 253 characters, each
    /// percent-encoded from four bytes of UTF-8.
    private static let rawLengthLimit = 4096

    /// Parses the text of an IPv6 address between brackets.
    package init(ipv6 bytes: ArraySlice<UInt8>) throws(RawURLParseError) {
        if let zone = bytes.firstIndex(of: UInt8(ascii: "%")) {
            throw RawURLParseError(.zoneNotSupported, at: zone, "an IPv6 address with a zone is not supported")
        }
        var parser = IPv6Parser(bytes: bytes, position: bytes.startIndex)
        text = IPv6Parser.text(of: try parser.pieces())
        kind = .ipv6
    }

    /// Parses a host that is not in brackets: a name, or an IPv4 address in any of its spellings.
    package init(name bytes: ArraySlice<UInt8>) throws(RawURLParseError) {
        guard bytes.count <= URLHost.rawLengthLimit else {
            throw RawURLParseError(.hostNameTooLong, at: bytes.startIndex, "the host name is too long")
        }
        let plain = try URLHost.plainName(bytes)
        let name = if let plain { plain } else { try DomainName(scalars: URLHost.scalars(bytes)).ascii }
        guard name.utf8.contains(where: { $0 != UInt8(ascii: ".") }) else {
            throw RawURLParseError(.emptyHost, at: bytes.startIndex, "the host name is empty")
        }
        // Only mapping can have produced such a character: one in the input was rejected at its own position.
        if plain == nil, let index = Array(name.utf8).firstIndex(where: URLHost.forbidden.contains) {
            throw RawURLParseError(
                .forbiddenHostCharacter, at: bytes.startIndex,
                "character \(index) of the decoded host name is not allowed in a host name")
        }
        if let address = try IPv4Parser.address(of: name, at: bytes.startIndex) {
            (text, kind) = (address, .ipv4)
            return
        }
        try URLHost.checkLengths(name, at: bytes.startIndex, isAsWritten: plain != nil)
        (text, kind) = (name, .name)
    }

    /// Returns the name in lower case if it needs no decoding or mapping: if it is ASCII without `%` and `xn--` labels.
    private static func plainName(_ bytes: ArraySlice<UInt8>) throws(RawURLParseError) -> String? {
        guard !bytes.contains(where: { $0 >= 0x80 || $0 == UInt8(ascii: "%") }) else { return nil }
        for index in bytes.indices where forbidden.contains(bytes[index]) { throw error(bytes[index], at: index) }
        let name = String(decoding: bytes, as: UTF8.self).lowercased()
        return hasALabel(name.utf8.span) ? nil : name
    }

    /// Whether a label begins with `xn--`.
    private static func hasALabel(_ name: Span<UInt8>) -> Bool {
        for index in name.indices.dropLast(3) where index == 0 || name[index - 1] == UInt8(ascii: ".") {
            if name[index] == UInt8(ascii: "x"), name[index + 1] == UInt8(ascii: "n"),
                name[index + 2] == UInt8(ascii: "-"), name[index + 3] == UInt8(ascii: "-")
            {
                return true
            }
        }
        return false
    }

    /// Returns the percent-decoded host as scalars, each with the byte position at which it was written.
    private static func scalars(_ bytes: ArraySlice<UInt8>) throws(RawURLParseError) -> [DomainName.Placed] {
        var decoded: [UInt8] = []
        var positions: [Int] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            positions.append(index)
            if bytes[index] == UInt8(ascii: "%") {
                guard let value = PercentEncoding.value(ofHexAt: index, in: bytes) else {
                    throw error(bytes[index], at: index)
                }
                decoded.append(value)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        guard let text = String(validating: decoded, as: UTF8.self) else {
            throw RawURLParseError(.forbiddenHostCharacter, at: bytes.startIndex, "the decoded host name is not UTF-8")
        }
        var placed: [DomainName.Placed] = []
        var offset = 0
        for scalar in text.unicodeScalars {
            if let byte = UInt8(exactly: scalar.value), byte < 0x80, forbidden.contains(byte) {
                throw error(byte, at: positions[offset])
            }
            placed.append(DomainName.Placed(scalar: scalar, position: positions[offset]))
            offset += UTF8.width(scalar)
        }
        return placed
    }

    /// Checks the lengths (RFC 1035 §2.3.4), without the trailing dot of the root, and that no label is empty. For a
    /// name that is not as written, because it was decoded or mapped, the position of an error is that of the host.
    private static func checkLengths(_ name: String, at position: Int, isAsWritten: Bool) throws(RawURLParseError) {
        let (bytes, dot) = (name.utf8.span, UInt8(ascii: "."))
        let end = bytes.count > 1 && bytes[bytes.count - 1] == dot ? bytes.count - 1 : bytes.count
        var start = 0
        for index in 0...end where index == end || bytes[index] == dot {
            let place = position + (isAsWritten ? start : 0)
            if index == start {
                throw RawURLParseError(.invalidHostName, at: place, "the host name has an empty label")
            }
            if index - start > 63 {
                throw RawURLParseError(.hostNameTooLong, at: place, "a host name label is longer than 63 bytes")
            }
            start = index + 1
        }
        if end > 253 { throw RawURLParseError(.hostNameTooLong, at: position, "the host name is longer than 253") }
    }

    private static func error(_ byte: UInt8, at position: Int) -> RawURLParseError {
        let isVisible = byte > 0x20 && byte < 0x7F
        let shown = isVisible ? "\(Unicode.Scalar(byte))" : "a space or control character"
        return RawURLParseError(.forbiddenHostCharacter, at: position, "\(shown) is not allowed in a host name")
    }

    /// The forbidden domain code points of the WHATWG URL Standard, and all bytes that are not ASCII.
    private static let forbidden = PercentEncoding.EncodeSet(" #%/:<>?@[\\]^|")
}

/// The part between `//` and the path: user info, host and port (RFC 3986 §3.2).
package struct URLAuthority {
    /// The user name and password, percent-encoded; `nil` if both are empty.
    package let userInfo: HTTPURL.UserInfo?
    /// The host in its final form.
    package let host: URLHost
    /// The port as written, 1–65535.
    package let port: Int?

    /// Splits an authority: the last `@` ends the user info, the first colon outside brackets ends the host.
    package init(_ bytes: ArraySlice<UInt8>) throws(RawURLParseError) {
        let at = bytes.lastIndex(of: UInt8(ascii: "@"))
        userInfo = try at.flatMap { (at) throws(RawURLParseError) in try URLAuthority.userInfo(bytes[..<at]) }
        let rest = at.map { bytes[($0 + 1)...] } ?? bytes
        let hostEnd: Int
        if rest.first == UInt8(ascii: "[") {
            guard let bracket = rest.firstIndex(of: UInt8(ascii: "]")) else {
                throw RawURLParseError(
                    .invalidIPv6Address, at: rest.startIndex, "the bracket of an IPv6 address is not closed")
            }
            hostEnd = bracket + 1
            guard hostEnd == rest.endIndex || rest[hostEnd] == UInt8(ascii: ":") else {
                throw RawURLParseError(.forbiddenHostCharacter, at: hostEnd, "only a port may follow an IPv6 address")
            }
            host = try URLHost(ipv6: rest[(rest.startIndex + 1)..<bracket])
        } else {
            hostEnd = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
            guard hostEnd > rest.startIndex else {
                throw RawURLParseError(.emptyHost, at: rest.startIndex, "the host is missing")
            }
            host = try URLHost(name: rest[..<hostEnd])
        }
        port = hostEnd == rest.endIndex ? nil : try URLAuthority.port(rest[(hostEnd + 1)...])
    }

    /// Returns a port: digits only, 1–65535, leading zeros allowed as in the WHATWG URL Standard; `nil` for no digits.
    private static func port(_ digits: ArraySlice<UInt8>) throws(RawURLParseError) -> Int? {
        guard !digits.isEmpty else { return nil }
        var value = 0
        for index in digits.indices {
            guard let digit = decimalValue(digits[index]) else {
                throw RawURLParseError(.invalidPort, at: index, "a port consists of digits only")
            }
            // Limited, so that it cannot overflow.
            value = min(value * 10 + digit, 1_000_000)
        }
        guard (1...65_535).contains(value) else {
            // Longer numbers are not quoted, because a text in the position of a port may be a password.
            let shown = value < 100_000 ? "port \(value)" : "the port"
            throw RawURLParseError(.invalidPort, at: digits.startIndex, "\(shown) is out of range 1–65535")
        }
        return value
    }

    private static func userInfo(_ bytes: ArraySlice<UInt8>) throws(RawURLParseError) -> HTTPURL.UserInfo? {
        let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        let user = try part(bytes[..<(colon ?? bytes.endIndex)])
        let password = try colon.map { (index) throws(RawURLParseError) in try part(bytes[(index + 1)...]) } ?? ""
        guard !user.isEmpty || !password.isEmpty else { return nil }
        return HTTPURL.UserInfo(user: user, password: password.isEmpty ? nil : password)
    }

    /// Returns an encoded user name or password; it must decode to text without control characters (RFC 7617 §2).
    private static func part(_ bytes: ArraySlice<UInt8>) throws(RawURLParseError) -> String {
        let decoded = PercentEncoding.decodedBytes(bytes)
        guard String(validating: decoded, as: UTF8.self) != nil else {
            throw RawURLParseError(.invalidUserInfo, at: bytes.startIndex, "user info must be UTF-8 once decoded")
        }
        guard !decoded.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw RawURLParseError(
                .invalidUserInfo, at: bytes.startIndex, "user info must not contain control characters")
        }
        return PercentEncoding.encoded(bytes, set: PercentEncoding.userInfoSet)
    }
}

private func decimalValue(_ byte: UInt8) -> Int? { PercentEncoding.hexValue(byte).flatMap { $0 < 10 ? Int($0) : nil } }

/// A parser of IPv4 addresses (WHATWG URL Standard, IPv4 parser).
///
/// An address consists of up to four numbers in decimal, octal (`0…`) or hexadecimal (`0x…`); the last one fills the
/// remaining bytes. A host that ends in a number is an address or an error, so that all resolvers agree on it.
private enum IPv4Parser {
    /// Returns the dotted quad of a host; `nil` if the host does not end in a number.
    static func address(of host: String, at position: Int) throws(RawURLParseError) -> String? {
        let dot = UInt8(ascii: ".")
        var name = host.utf8[...]
        if name.count > 1, name.last == dot { name.removeLast() }
        let last = name.lastIndex(of: dot).map { name[$0...].dropFirst() } ?? name
        guard looksLikeNumber(last) else { return nil }
        let parts = name.split(separator: dot, omittingEmptySubsequences: false)
        let error = RawURLParseError(
            .invalidIPv4Address, at: position, "a host that ends in a number must be an IPv4 address")
        guard parts.count <= 4 else { throw error }
        var value: UInt64 = 0
        for (index, part) in parts.enumerated() {
            guard let number = number(part) else { throw error }
            let bitCount = UInt64(index == parts.count - 1 ? 8 * (5 - parts.count) : 8)
            guard number < 1 << bitCount else { throw error }
            value = value << bitCount | number
        }
        return [24, 16, 8, 0].map { String(value >> $0 & 255) }.joined(separator: ".")
    }

    /// Whether the last label makes the host an address: only digits, or hexadecimal digits after `0x`.
    private static func looksLikeNumber(_ part: Substring.UTF8View) -> Bool {
        guard !part.isEmpty else { return false }
        return part.allSatisfy { decimalValue($0) != nil }
            || part.starts(with: "0x".utf8) && part.dropFirst(2).allSatisfy { PercentEncoding.hexValue($0) != nil }
    }

    /// Returns one number; `nil` if it is malformed, or too large for any address.
    private static func number(_ part: Substring.UTF8View) -> UInt64? {
        guard !part.isEmpty else { return nil }
        var digits = part
        var radix: UInt64 = 10
        if part.starts(with: "0x".utf8) {
            radix = 16
            digits = part.dropFirst(2)
        } else if part.count > 1, part.first == UInt8(ascii: "0") {
            radix = 8
            digits = part.dropFirst()
        }
        var value: UInt64 = 0
        for byte in digits {
            guard let digit = PercentEncoding.hexValue(byte), digit < radix else { return nil }
            // Limited, so that it cannot overflow: the limit is no part of an address either.
            value = min(value * radix + UInt64(digit), 1 << 40)
        }
        return value
    }
}

/// A parser of the text of one IPv6 address (WHATWG URL Standard, IPv6 parser).
private struct IPv6Parser {
    let bytes: ArraySlice<UInt8>
    var position: Int

    private var current: UInt8? { position < bytes.endIndex ? bytes[position] : nil }
    private var colon: UInt8 { UInt8(ascii: ":") }

    /// Returns the form of RFC 5952: lower case, no leading zeros, the longest run of two or more zero pieces as `::`
    /// (the first of equally long ones). Embedded IPv4 addresses are hexadecimal, as in the WHATWG URL Standard.
    static func text(of pieces: [UInt16]) -> String {
        var longest = 0..<0
        var start = 0
        while start < pieces.count {
            let end = pieces[start...].firstIndex { $0 != 0 } ?? pieces.count
            if end - start > max(longest.count, 1) { longest = start..<end }
            start = max(end, start + 1)
        }
        let text = { (slice: ArraySlice<UInt16>) in slice.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !longest.isEmpty else { return text(pieces[...]) }
        return "\(text(pieces[..<longest.lowerBound]))::\(text(pieces[longest.upperBound...]))"
    }

    /// Returns the eight 16-bit pieces.
    mutating func pieces() throws(RawURLParseError) -> [UInt16] {
        var pieces: [UInt16] = []
        var gap: Int?
        if current == colon {
            guard bytes.dropFirst().first == colon else { throw makeError("an address cannot begin with one colon") }
            position += 2
            gap = 0
        }
        while let byte = current {
            guard pieces.count < 8 else { throw makeError("more than eight pieces") }
            if byte == colon {
                guard gap == nil else { throw makeError(":: occurs twice") }
                position += 1
                gap = pieces.count
                continue
            }
            let start = position
            var value: UInt16 = 0
            while position - start < 4, let digit = current.flatMap(PercentEncoding.hexValue) {
                value = value << 4 | UInt16(digit)
                position += 1
            }
            if current == UInt8(ascii: "."), position > start {
                position = start
                guard pieces.count <= 6 else { throw makeError("there is no room for an IPv4 address") }
                let numbers = try embeddedIPv4()
                pieces += [numbers[0] << 8 | numbers[1], numbers[2] << 8 | numbers[3]]
                break
            }
            guard position > start else { throw makeError("expected a hexadecimal digit") }
            pieces.append(value)
            if current == colon {
                position += 1
                guard current != nil else { throw makeError("an address cannot end with one colon") }
            } else if current != nil {
                throw makeError("expected a colon after a piece")
            }
        }
        if let gap {
            guard pieces.count < 8 else { throw makeError(":: must replace at least one piece") }
            pieces.insert(contentsOf: [UInt16](repeating: 0, count: 8 - pieces.count), at: gap)
        }
        guard pieces.count == 8 else { throw makeError("fewer than eight pieces") }
        return pieces
    }

    /// Parses four decimal numbers without leading zeros, up to the end.
    private mutating func embeddedIPv4() throws(RawURLParseError) -> [UInt16] {
        var numbers: [UInt16] = []
        for index in 0..<4 {
            if index > 0 {
                guard current == UInt8(ascii: ".") else { throw makeError("an IPv4 address has four numbers") }
                position += 1
            }
            let start = position
            var value: UInt16 = 0
            while let digit = current.flatMap(decimalValue) {
                guard position == start || value > 0 else { throw makeError("a number has a leading zero") }
                value = value * 10 + UInt16(digit)
                guard value <= 255 else { throw makeError("a number is above 255") }
                position += 1
            }
            guard position > start else { throw makeError("a number is missing") }
            numbers.append(value)
        }
        guard current == nil else { throw makeError("nothing can follow the IPv4 address") }
        return numbers
    }

    private func makeError(_ reason: String) -> RawURLParseError {
        RawURLParseError(.invalidIPv6Address, at: position, "not an IPv6 address: \(reason)")
    }
}
