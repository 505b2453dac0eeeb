/// An IPv4 address out of a host (WHATWG URL Standard, IPv4 parser).
///
/// Up to four numbers in decimal, octal (`0…`) or hexadecimal (`0x…`); the last fills the bytes that remain.
/// Every host that ends in a number is an address or an error, so that no resolver reads it otherwise.
struct IPv4Literal: CustomStringConvertible {
    private let value: UInt32

    /// The address a host is, nil when it does not end in a number.
    init?(host: String, at position: Int) throws(URLFault) {
        var parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if parts.count > 1, parts.last?.isEmpty == true { parts.removeLast() }
        guard let last = parts.last, IPv4Literal.looksLikeNumber(last) else { return nil }
        let fault = URLFault(
            .invalidIPv4Address, at: position, "a host that ends in a number must be an IPv4 address")
        guard parts.count <= 4 else { throw fault }
        var value: UInt64 = 0
        for (index, part) in parts.enumerated() {
            guard let number = IPv4Literal.number(part) else { throw fault }
            let isLast = index == parts.count - 1
            // The last number fills the bytes the others left.
            let byteCount = isLast ? 5 - parts.count : 1
            guard number < 1 << UInt64(8 * byteCount) else { throw fault }
            value = value << UInt64(8 * byteCount) | number
        }
        self.value = UInt32(truncatingIfNeeded: value)
    }

    /// The dotted quad.
    var description: String { "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)" }

    /// Whether a last label makes the host an address: digits only, or hexadecimal behind `0x`.
    private static func looksLikeNumber(_ part: Substring.UTF8View) -> Bool {
        guard !part.isEmpty else { return false }
        return part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            || part.starts(with: "0x".utf8)
                && part.dropFirst(2).allSatisfy { PercentEncoding.hexValue($0) != nil }
    }

    /// One number, nil when it is malformed; too large ones are clamped above every limit.
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
            guard let digit = PercentEncoding.hexValue(byte), UInt64(digit) < radix else { return nil }
            value = min(value * radix + UInt64(digit), 1 << 40)
        }
        return value
    }
}

/// An IPv6 address out of brackets (WHATWG URL Standard, IPv6 parser), written as RFC 5952 asks.
struct IPv6Literal: CustomStringConvertible {
    private let pieces: [UInt16]

    /// Reads what stood in the brackets.
    init(_ bytes: ArraySlice<UInt8>) throws(URLFault) {
        if let zone = bytes.firstIndex(of: UInt8(ascii: "%")) {
            throw URLFault(.zoneNotSupported, at: zone, "an IPv6 address cannot carry a zone")
        }
        var reader = Reader(bytes: bytes, position: bytes.startIndex)
        pieces = try reader.pieces()
    }

    /// Lower case, no leading zeros, the longest run of two or more zero pieces (the first of equals) as
    /// `::`.
    ///
    /// Addresses that embed IPv4 are written in hexadecimal throughout, as in the WHATWG URL Standard.
    var description: String {
        var longest = 0..<0
        var start = 0
        while start < pieces.count {
            let end = pieces[start...].firstIndex { $0 != 0 } ?? pieces.count
            if end - start > max(longest.count, 1) { longest = start..<end }
            start = max(end, start + 1)
        }
        let text = { (slice: ArraySlice<UInt16>) in slice.map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard !longest.isEmpty else { return text(pieces[...]) }
        return "\(text(pieces[..<longest.lowerBound]))::\(text(pieces[longest.upperBound...]))"
    }

    /// The cursor over the text of one address.
    private struct Reader {
        let bytes: ArraySlice<UInt8>
        var position: Int

        private var current: UInt8? { position < bytes.endIndex ? bytes[position] : nil }
        private let colon = UInt8(ascii: ":")

        init(bytes: ArraySlice<UInt8>, position: Int) {
            self.bytes = bytes
            self.position = position
        }

        /// The eight pieces.
        mutating func pieces() throws(URLFault) -> [UInt16] {
            var pieces: [UInt16] = []
            var gap: Int?
            if current == colon {
                guard bytes.dropFirst().first == colon else { throw fault("a single colon cannot begin it") }
                position += 2
                gap = 0
            }
            while let byte = current {
                guard pieces.count < 8 else { throw fault("it has more than eight pieces") }
                if byte == colon {
                    guard gap == nil else { throw fault("it has :: twice") }
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
                    guard pieces.count <= 6 else { throw fault("there is no room for an IPv4 address") }
                    let address = try embeddedIPv4()
                    pieces += [
                        UInt16(truncatingIfNeeded: address >> 16), UInt16(truncatingIfNeeded: address),
                    ]
                    break
                }
                guard position > start else { throw fault("this is no hexadecimal digit") }
                pieces.append(value)
                if current == colon {
                    position += 1
                    guard current != nil else { throw fault("a single colon cannot end it") }
                } else if current != nil {
                    throw fault("this cannot follow a piece")
                }
            }
            if let gap {
                guard pieces.count < 8 else { throw fault(":: stands for no piece") }
                pieces.insert(contentsOf: [UInt16](repeating: 0, count: 8 - pieces.count), at: gap)
            }
            guard pieces.count == 8 else { throw fault("it has fewer than eight pieces") }
            return pieces
        }

        /// Four decimal numbers, no leading zeros, up to the end.
        private mutating func embeddedIPv4() throws(URLFault) -> UInt32 {
            var address: UInt32 = 0
            for index in 0..<4 {
                if index > 0 {
                    guard current == UInt8(ascii: ".") else {
                        throw fault("an IPv4 address has four numbers")
                    }
                    position += 1
                }
                let start = position
                var value: UInt32 = 0
                while let byte = current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
                    guard position == start || value > 0 else { throw fault("a number has a leading zero") }
                    value = value * 10 + UInt32(byte - UInt8(ascii: "0"))
                    guard value <= 255 else { throw fault("this number is above 255") }
                    position += 1
                }
                guard position > start else { throw fault("a number is missing") }
                address = address << 8 | value
            }
            guard current == nil else { throw fault("nothing can follow the IPv4 address") }
            return address
        }

        private func fault(_ reason: String) -> URLFault {
            URLFault(.invalidIPv6Address, at: position, "not an IPv6 address: \(reason)")
        }
    }
}
