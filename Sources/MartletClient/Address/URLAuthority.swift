/// What stands between `//` and the path: user info, host and port (RFC 3986 §3.2).
struct URLAuthority {
    /// User name and password, percent-encoded; nil when both are empty.
    let userInfo: HTTPURL.UserInfo?
    /// The host.
    let host: URLHost
    /// The port as written, 1–65535.
    let port: Int?

    /// Splits an authority: the last `@` ends the user info, the first colon outside brackets ends the host.
    init(_ bytes: ArraySlice<UInt8>) throws(URLFault) {
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
