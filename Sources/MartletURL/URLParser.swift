/// Reads one address or reference, byte by byte, front to back.
///
/// It works on the UTF-8 bytes and names byte positions; ``HTTPURL`` turns them into characters.
struct URLParser {
    private let bytes: [UInt8]
    private let pathAsIs: Bool
    private var position = 0

    /// Takes the input and refuses what may stand nowhere in it.
    init(_ input: String, pathAsIs: Bool) throws(URLFault) {
        guard input.utf8.count <= HTTPURL.lengthLimit else {
            throw URLFault(
                .tooLong, at: HTTPURL.lengthLimit, "the address is longer than \(HTTPURL.lengthLimit) bytes")
        }
        bytes = Array(input.utf8)
        self.pathAsIs = pathAsIs
        for (offset, byte) in bytes.enumerated()
        where byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "\\") {
            throw URLFault(.forbiddenCharacter, at: offset, URLParser.refusal(of: byte))
        }
        for edge in [bytes.startIndex, bytes.endIndex - 1] where bytes.indices.contains(edge) {
            guard bytes[edge] != UInt8(ascii: " ") else {
                throw URLFault(.forbiddenCharacter, at: edge, "an address cannot begin or end with a space")
            }
        }
    }

    /// The input as an absolute address.
    mutating func absoluteURL() throws(URLFault) -> HTTPURL {
        guard !bytes.isEmpty else { throw URLFault(.empty, at: 0, "the address is empty") }
        guard let scheme = try scheme() else {
            throw URLFault(.missingScheme, at: 0, "the address does not begin with http:// or https://")
        }
        return try afterScheme(scheme)
    }

    /// The input as a reference found at `base` (RFC 3986 §5.2.2).
    mutating func reference(base: HTTPURL) throws(URLFault) -> HTTPURL {
        if let scheme = try scheme() { return try afterScheme(scheme) }
        if bytes.starts(with: "//".utf8) { return try afterScheme(base.scheme) }
        var parts = base.components.parts
        switch bytes.first {
        case nil, UInt8(ascii: "#"): break
        case UInt8(ascii: "?"): parts.query = readQuery()
        case let first:
            let folder = first == UInt8(ascii: "/") ? [] : URLPath.directory(of: base.path)
            parts.path = readPath(after: folder)
            parts.query = readQuery()
        }
        parts.fragment = readFragment()
        return try checkedLength(HTTPURL(parts))
    }

    /// The scheme, if the input has one, with the position behind its colon (RFC 3986 §3.1).
    private mutating func scheme() throws(URLFault) -> HTTPURL.Scheme? {
        guard let first = bytes.first, isLetter(first) else { return nil }
        guard let colon = bytes.firstIndex(where: { !isSchemeByte($0) }), bytes[colon] == UInt8(ascii: ":")
        else { return nil }
        let name = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        guard let scheme = HTTPURL.Scheme(rawValue: name) else {
            let shown = name.utf8.count <= 20 ? "scheme \(name)" : "the scheme"
            throw URLFault(.unsupportedScheme, at: 0, "\(shown) is neither http nor https")
        }
        position = colon + 1
        return scheme
    }

    /// Everything behind `http:`, or the whole of a `//host` reference.
    private mutating func afterScheme(_ scheme: HTTPURL.Scheme) throws(URLFault) -> HTTPURL {
        guard bytes[position...].starts(with: "//".utf8) else {
            throw URLFault(.missingAuthority, at: position, "// and a host must follow the scheme")
        }
        position += 2
        let end = bytes[position...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
        let authority = try URLAuthority(bytes[position..<end])
        position = end
        let path = readPath(after: [])
        return try checkedLength(
            HTTPURL(
                scheme: scheme, userInfo: authority.userInfo, host: authority.host.text,
                hostKind: authority.host.kind, explicitPort: authority.port, path: path, query: readQuery(),
                fragment: readFragment()))
    }

    /// The path up to `?`, `#` or the end, behind the folder a relative path starts from.
    private mutating func readPath(after folder: [UInt8]) -> String {
        let end = bytes[position...].firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let raw = bytes[position..<(end ?? bytes.endIndex)]
        position = end ?? bytes.endIndex
        return URLPath.normalized(folder.isEmpty ? raw : ArraySlice(folder + raw), keepingDots: pathAsIs)
    }

    /// The query if the position is at a `?`, up to `#` or the end.
    private mutating func readQuery() -> String? {
        guard position < bytes.endIndex, bytes[position] == UInt8(ascii: "?") else { return nil }
        let start = position + 1
        position = bytes[start...].firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        return PercentEncoding.encoded(bytes[start..<position], set: PercentEncoding.querySet)
    }

    /// The fragment if the position is at a `#`, up to the end.
    private mutating func readFragment() -> String? {
        guard position < bytes.endIndex, bytes[position] == UInt8(ascii: "#") else { return nil }
        defer { position = bytes.endIndex }
        return PercentEncoding.encoded(bytes[(position + 1)...], set: PercentEncoding.fragmentSet)
    }

    /// The address, unless encoding or a long base made it too long.
    private func checkedLength(_ url: HTTPURL) throws(URLFault) -> HTTPURL {
        guard url.serializedLength <= HTTPURL.lengthLimit else {
            throw URLFault(
                .tooLong, at: bytes.count,
                "the address is longer than \(HTTPURL.lengthLimit) bytes once encoded")
        }
        return url
    }

    private static func refusal(of byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "\\"): "a backslash is not allowed in an address; write %5C"
        case 0x09: "a tab is not allowed in an address"
        case 0x0A, 0x0D: "a line break is not allowed in an address"
        default: "a control character is not allowed in an address"
        }
    }

    private func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private func isSchemeByte(_ byte: UInt8) -> Bool {
        isLetter(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.".utf8.contains(byte)
    }
}

/// A parse error before its byte position is turned into characters.
package struct URLFault: Error {
    /// What was wrong.
    let code: HTTPURL.ParseError.Code
    /// Where, in bytes of the UTF-8 input.
    let byteOffset: Int
    /// The sentence for ``HTTPURL/ParseError/message``.
    let message: String

    package init(_ code: HTTPURL.ParseError.Code, at byteOffset: Int, _ message: String) {
        self.code = code
        self.byteOffset = byteOffset
        self.message = message
    }

    /// The public error, its position counted in characters of `input`.
    package func located(in input: String) -> HTTPURL.ParseError {
        let utf8 = input.utf8
        let index =
            utf8.index(utf8.startIndex, offsetBy: byteOffset, limitedBy: utf8.endIndex) ?? utf8.endIndex
        // `distance` rounds an index inside a character down to its start.
        let offset = input.distance(from: input.startIndex, to: index)
        return HTTPURL.ParseError(code: code, offset: offset, message: message)
    }
}
