/// A host in its final form (WHATWG URL Standard, host parsing).
package struct URLHost {
    /// The serialised host, IPv6 without brackets.
    package let text: String
    /// What it is.
    package let kind: HTTPURL.HostKind

    /// The longest host looked at, in bytes as written. A name of 253 characters, each percent-encoded from
    /// four bytes of UTF-8, has 3,036; more only costs time.
    private static let rawLengthLimit = 4096

    /// What stood in brackets.
    package init(ipv6 bytes: ArraySlice<UInt8>) throws(URLFault) {
        text = try IPv6Literal(bytes).description
        kind = .ipv6
    }

    /// A host that is not in brackets: a name, or an IPv4 address in any of its spellings.
    package init(name bytes: ArraySlice<UInt8>) throws(URLFault) {
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

/// What stands between `//` and the path: user info, host and port (RFC 3986 §3.2).
package struct URLAuthority {
    /// User name and password, percent-encoded; nil when both are empty.
    package let userInfo: HTTPURL.UserInfo?
    /// The host.
    package let host: URLHost
    /// The port as written, 1–65535.
    package let port: Int?

    /// Splits an authority: the last `@` ends the user info, the first colon outside brackets ends the host.
    package init(_ bytes: ArraySlice<UInt8>) throws(URLFault) {
        var rest = bytes
        if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
            userInfo = try URLAuthority.userInfo(bytes[..<at])
            rest = bytes[(at + 1)...]
        } else {
            userInfo = nil
        }
        let hostEnd: Int
        if rest.first == UInt8(ascii: "[") {
            guard let bracket = rest.firstIndex(of: UInt8(ascii: "]")) else {
                throw URLFault(
                    .invalidIPv6Address, at: rest.startIndex, "the bracket of an IPv6 address is not closed")
            }
            hostEnd = bracket + 1
            guard hostEnd == rest.endIndex || rest[hostEnd] == UInt8(ascii: ":") else {
                throw URLFault(.forbiddenHostCharacter, at: hostEnd, "only a port may follow an IPv6 address")
            }
            host = try URLHost(ipv6: rest[(rest.startIndex + 1)..<bracket])
        } else {
            hostEnd = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
            guard hostEnd > rest.startIndex else {
                throw URLFault(.emptyHost, at: rest.startIndex, "the host is missing")
            }
            host = try URLHost(name: rest[..<hostEnd])
        }
        port = hostEnd == rest.endIndex ? nil : try URLAuthority.port(rest[(hostEnd + 1)...])
    }

    /// A port: digits only, 1–65535, leading zeros allowed as in the WHATWG URL Standard; empty is none.
    private static func port(_ digits: ArraySlice<UInt8>) throws(URLFault) -> Int? {
        guard !digits.isEmpty else { return nil }
        var value = 0
        for index in digits.indices {
            let digit = digits[index]
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else {
                throw URLFault(.invalidPort, at: index, "a port consists of digits only")
            }
            // Beyond the range the exact value no longer matters, only that it cannot overflow.
            value = min(value * 10 + Int(digit - UInt8(ascii: "0")), 1_000_000)
        }
        guard (1...65_535).contains(value) else {
            // Longer digits are not repeated: what looks like a port may be a password.
            let shown = value < 100_000 ? "port \(value)" : "the port"
            throw URLFault(.invalidPort, at: digits.startIndex, "\(shown) is out of range 1–65535")
        }
        return value
    }

    private static func userInfo(_ bytes: ArraySlice<UInt8>) throws(URLFault) -> HTTPURL.UserInfo? {
        let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        let user = try part(bytes[..<(colon ?? bytes.endIndex)])
        let password = try colon.map { (index) throws(URLFault) in try part(bytes[(index + 1)...]) } ?? ""
        guard !user.isEmpty || !password.isEmpty else { return nil }
        return HTTPURL.UserInfo(user: user, password: password.isEmpty ? nil : password)
    }

    /// A user name or password, encoded; what it decodes to must be text without control characters (RFC 7617
    /// §2).
    private static func part(_ bytes: ArraySlice<UInt8>) throws(URLFault) -> String {
        let decoded = PercentEncoding.decodedBytes(bytes)
        guard String(validating: decoded, as: UTF8.self) != nil else {
            throw URLFault(.invalidUserInfo, at: bytes.startIndex, "user info must be UTF-8 once decoded")
        }
        guard !decoded.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw URLFault(.invalidUserInfo, at: bytes.startIndex, "user info cannot hold control characters")
        }
        return PercentEncoding.encoded(bytes, set: PercentEncoding.userInfoSet)
    }
}
