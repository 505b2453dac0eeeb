extension HTTPURL {
    /// The port to connect to, 1–65535: the one written, else the scheme's default.
    public var port: Int { explicitPort ?? scheme.defaultPort }

    /// Whether the host is an IPv4 or IPv6 address rather than a name.
    public var isIPLiteral: Bool { hostKind != .name }

    /// Whether the host is an IPv6 address.
    public var isIPv6Literal: Bool { hostKind == .ipv6 }

    /// The user name, percent-decoded; nil when the address has no user info. Empty when only a password was
    /// given.
    public var user: String? { userInfo.map { PercentEncoding.decoded($0.user) } }

    /// The password, percent-decoded; nil when there is none. Keep it out of logs.
    public var password: String? { userInfo?.password.map { PercentEncoding.decoded($0) } }

    /// Scheme, host and port.
    public var origin: Origin { Origin(scheme: scheme, host: host, port: port) }

    /// Path and query as they stand in a request line to the origin (RFC 9112 §3.2.1).
    public var requestTarget: String { components.requestTarget }

    /// The address as it stands in a request line to a proxy (RFC 9112 §3.2.2): no user info, no fragment.
    public var absoluteForm: String { components.absoluteForm }

    /// The value of the `Host` field (RFC 9110 §7.2): IPv6 in brackets, the port only when it is not the
    /// default.
    public var hostFieldValue: String { components.hostFieldValue }

    /// The whole address, password and fragment included. Keep it out of logs: ``redacted`` is for those.
    public var absoluteString: String { serialized { $0 } }

    /// The whole address with the password, if any, replaced by `***`.
    public var redacted: String { serialized { _ in "***" } }

    /// The same address without user name and password.
    public var withoutUserInfo: HTTPURL { userInfo == nil ? self : with { $0.userInfo = nil } }

    /// The same address with another's fragment when it has none itself: what a redirect does (RFC 9110
    /// §10.2.2).
    package func inheritingFragment(of other: HTTPURL) -> HTTPURL {
        guard fragment == nil, let inherited = other.fragment else { return self }
        return with { $0.fragment = inherited }
    }

    /// The same address with items added to the end of its query.
    ///
    /// Names and values are encoded as in a form (``FormEncoding``) but with `%20` for a space, which every
    /// server reads the same way. An item without a value is its name alone. No items: the address is
    /// returned unchanged.
    ///
    /// - Throws: ``ParseError/Code/tooLong`` when the result is longer than ``lengthLimit``; the position is
    ///   where the added part begins.
    public func appending(queryItems: [QueryItem]) throws(ParseError) -> HTTPURL {
        guard !queryItems.isEmpty else { return self }
        return try appending(encodedQuery: FormEncoding.encoded(queryItems, space: .percentEncoded))
    }

    /// The same address with more behind its query, joined by `&`.
    ///
    /// - Parameter query: Percent-encoded as it is meant to be; what may not stand in a query is encoded here. An empty one
    ///   leaves the address as it is.
    /// - Throws: As ``appending(queryItems:)``.
    package func appending(encodedQuery query: String) throws(ParseError) -> HTTPURL {
        guard !query.isEmpty else { return self }
        let added = PercentEncoding.encoded(ArraySlice(query.utf8), set: PercentEncoding.querySet)
        let joined = self.query.map { $0.isEmpty ? added : "\($0)&\(added)" } ?? added
        let result = with { $0.query = joined }
        guard result.serializedLength <= HTTPURL.lengthLimit else {
            let kept = absoluteForm.count
            throw ParseError(
                code: .tooLong, offset: kept,
                message: "the address would be longer than \(HTTPURL.lengthLimit) bytes with its added query")
        }
        return result
    }

    /// The most bytes ``absoluteString`` has.
    var serializedLength: Int {
        let fixed =
            scheme.rawValue.utf8.count + host.utf8.count + path.utf8.count + "://@[]:65535?#:".utf8.count
        let credentials = userInfo.map { $0.user.utf8.count + ($0.password?.utf8.count ?? 0) } ?? 0
        return fixed + credentials + (query?.utf8.count ?? 0) + (fragment?.utf8.count ?? 0)
    }

    private func serialized(password: (String) -> String) -> String {
        let credentials =
            userInfo.map { info in info.password.map { "\(info.user):\(password($0))@" } ?? "\(info.user)@" }
            ?? ""
        let suffix = fragment.map { "#\($0)" } ?? ""
        return "\(scheme)://\(credentials)\(hostFieldValue)\(requestTarget)\(suffix)"
    }
}

extension HTTPURL: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The address as in ``redacted``: without its password.
    public var description: String { redacted }

    /// The address as in ``redacted``: without its password.
    public var debugDescription: String { redacted }

    /// Shows ``redacted`` alone, so that `dump` prints no password either.
    public var customMirror: Mirror { Mirror(self, children: ["redacted": redacted]) }
}

extension HTTPURL: Codable {
    /// Reads an address from a single string.
    ///
    /// - Throws: `DecodingError.dataCorrupted` whose text is that of the ``ParseError``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let string = try container.decode(String.self)
        do throws(ParseError) {
            // Dot segments that survived the first parse were meant to.
            try self.init(string, pathAsIs: true)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: error.description)
        }
    }

    /// Writes the address as a single string, its password included, so that it reads back equal.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(absoluteString)
    }
}

/// Paths: percent-encoding and the removal of dot segments (RFC 3986 §5.2.4, WHATWG URL Standard).
enum URLPath {
    /// The path encoded, beginning with `/`, its `.` and `..` segments removed unless they are to be kept.
    ///
    /// `%2e` counts as a dot, as in the WHATWG URL Standard: servers decode it before they walk the path.
    static func normalized(_ raw: ArraySlice<UInt8>, keepingDots: Bool) -> String {
        let slash = UInt8(ascii: "/")
        var output: [UInt8] = []
        output.reserveCapacity(raw.count + 1)
        // Where each segment kept so far begins, at its slash.
        var starts: [Int] = []
        var rest = raw.first == slash ? raw.dropFirst() : raw
        while true {
            let end = rest.firstIndex(of: slash) ?? rest.endIndex
            let segment = rest[rest.startIndex..<end]
            let isLast = end == rest.endIndex
            switch keepingDots ? 0 : dots(segment) {
            case 0:
                starts.append(output.count)
                output.append(slash)
                PercentEncoding.append(segment, set: PercentEncoding.pathSet, to: &output)
            case 2:
                if let start = starts.popLast() { output.removeLast(output.count - start) }
                if isLast { output.append(slash) }
            default: if isLast { output.append(slash) }
            }
            if isLast { break }
            rest = rest[(end + 1)...]
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// The path up to and including its last slash: what a relative path is appended to.
    static func directory(of path: String) -> [UInt8] {
        let bytes = Array(path.utf8)
        let end = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
        return Array(bytes[..<end])
    }

    /// How many dots a segment consists of, if it is one or two and nothing else; else 0.
    private static func dots(_ segment: ArraySlice<UInt8>) -> Int {
        guard segment.count <= 6 else { return 0 }
        var count = 0
        var index = segment.startIndex
        while index < segment.endIndex {
            if segment[index] == UInt8(ascii: ".") {
                index += 1
            } else if segment[index] == UInt8(ascii: "%"),
                PercentEncoding.value(ofHexAt: index, in: segment) == UInt8(ascii: ".")
            {
                index += 3
            } else {
                return 0
            }
            count += 1
        }
        return count <= 2 ? count : 0
    }
}
