/// A host in its final form (WHATWG URL Standard, host parsing).
struct URLHost {
    /// The serialised host, IPv6 without brackets.
    let text: String
    /// What it is.
    let kind: HTTPURL.HostKind

    /// The longest host looked at, in bytes as written. A name of 253 characters, each percent-encoded from
    /// four bytes of UTF-8, has 3,036; more only costs time.
    private static let rawLengthLimit = 4096

    /// What stood in brackets.
    init(ipv6 bytes: ArraySlice<UInt8>) throws(URLFault) {
        text = try IPv6Literal(bytes).description
        kind = .ipv6
    }

    /// A host that is not in brackets: a name, or an IPv4 address in any of its spellings.
    init(name bytes: ArraySlice<UInt8>) throws(URLFault) {
        guard bytes.count <= URLHost.rawLengthLimit else {
            throw URLFault(.hostNameTooLong, at: bytes.startIndex, "the host name is too long")
        }
        let plain = try URLHost.plainName(bytes)
        let name = if let plain { plain } else { try DomainName(scalars: URLHost.scalars(bytes)).ascii }
        guard name.utf8.contains(where: { $0 != UInt8(ascii: ".") }) else {
            throw URLFault(.emptyHost, at: bytes.startIndex, "the host name is empty")
        }
        for (index, byte) in name.utf8.enumerated() where URLHost.isForbidden(byte) {
            // Only mapping can have brought it here; a plain one was refused where it stands.
            throw URLFault(
                .forbiddenHostCharacter, at: bytes.startIndex,
                "character \(index) of the decoded host name is not allowed in one")
        }
        if let address = try IPv4Literal(host: name, at: bytes.startIndex) {
            text = address.description
            kind = .ipv4
            return
        }
        if let fault = URLHost.lengthFault(name, at: bytes.startIndex, isAsWritten: plain != nil) {
            throw fault
        }
        text = name
        kind = .name
    }

    /// The lower-cased name when it is ASCII without `%` and `xn--` labels: nothing to decode, nothing to
    /// map.
    private static func plainName(_ bytes: ArraySlice<UInt8>) throws(URLFault) -> String? {
        guard !bytes.contains(where: { $0 >= 0x80 || $0 == UInt8(ascii: "%") }) else { return nil }
        for index in bytes.indices where isForbidden(bytes[index]) {
            throw forbidden(bytes[index], at: index)
        }
        let lowered = bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        let labels = lowered.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard !labels.contains(where: { $0.starts(with: "xn--".utf8) }) else { return nil }
        return String(decoding: lowered, as: UTF8.self)
    }

    /// The percent-decoded host as scalars, each with the byte position it was written at.
    private static func scalars(_ bytes: ArraySlice<UInt8>) throws(URLFault) -> [DomainName.Placed] {
        var decoded: [UInt8] = []
        var positions: [Int] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            positions.append(index)
            if bytes[index] == UInt8(ascii: "%") {
                guard let value = PercentEncoding.value(ofHexAt: index, in: bytes) else {
                    throw forbidden(bytes[index], at: index)
                }
                decoded.append(value)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        guard let text = String(validating: decoded, as: UTF8.self) else {
            throw URLFault(
                .forbiddenHostCharacter, at: bytes.startIndex, "the decoded host name is not UTF-8")
        }
        var placed: [DomainName.Placed] = []
        var offset = 0
        for scalar in text.unicodeScalars {
            if scalar.isASCII, isForbidden(UInt8(truncatingIfNeeded: scalar.value)) {
                throw forbidden(UInt8(truncatingIfNeeded: scalar.value), at: positions[offset])
            }
            placed.append(DomainName.Placed(scalar: scalar, position: positions[offset]))
            offset += UTF8.width(scalar)
        }
        return placed
    }

    /// What is wrong with the lengths (RFC 1035 §2.3.4), the trailing dot of the root apart; no label may be
    /// empty.
    ///
    /// Names that were decoded or mapped no longer stand as they were written: those point at the host as a
    /// whole.
    private static func lengthFault(_ name: String, at position: Int, isAsWritten: Bool) -> URLFault? {
        var labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
        var length = -1
        for label in labels {
            let place = position + (isAsWritten ? length + 1 : 0)
            if label.isEmpty {
                return URLFault(.invalidHostName, at: place, "the host name has an empty label")
            }
            if label.count > 63 {
                return URLFault(.hostNameTooLong, at: place, "a label of the host name is longer than 63")
            }
            length += 1 + label.count
        }
        return length <= 253
            ? nil : URLFault(.hostNameTooLong, at: position, "the host name is longer than 253")
    }

    private static func forbidden(_ byte: UInt8, at position: Int) -> URLFault {
        let isVisible = byte > 0x20 && byte < 0x7F
        let shown = isVisible ? "\(Unicode.Scalar(byte))" : "a space or control character"
        return URLFault(.forbiddenHostCharacter, at: position, "\(shown) is not allowed in a host name")
    }

    /// The forbidden domain code points of the WHATWG URL Standard.
    private static func isForbidden(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7F || "#%/:<>?@[\\]^|".utf8.contains(byte)
    }
}
