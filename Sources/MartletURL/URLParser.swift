/// A parser of one URL or reference, from front to back.
///
/// It works on UTF-8 bytes and reports byte positions; ``HTTPURL`` converts them to character positions.
struct URLParser {
    private let bytes: [UInt8]
    private let pathAsIs: Bool
    private var position = 0

    /// Stores the input, and rejects a too long one, and characters that are not allowed anywhere.
    init(_ input: String, pathAsIs: Bool) throws(RawURLParseError) {
        guard input.utf8.count <= HTTPURL.lengthLimit else {
            throw RawURLParseError(
                .tooLong, at: HTTPURL.lengthLimit, "the URL is longer than \(HTTPURL.lengthLimit) bytes")
        }
        bytes = Array(input.utf8)
        self.pathAsIs = pathAsIs
        for (offset, byte) in bytes.enumerated() where byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "\\") {
            throw RawURLParseError(.forbiddenCharacter, at: offset, URLParser.rejection(of: byte))
        }
        let space = UInt8(ascii: " ")
        guard bytes.first != space, bytes.last != space else {
            throw RawURLParseError(
                .forbiddenCharacter, at: bytes.first == space ? 0 : bytes.count - 1,
                "a URL cannot begin or end with a space")
        }
    }

    /// Parses the input as an absolute URL.
    mutating func absoluteURL() throws(RawURLParseError) -> HTTPURL {
        guard !bytes.isEmpty else { throw RawURLParseError(.empty, at: 0, "the URL is empty") }
        guard let scheme = try scheme() else {
            throw RawURLParseError(.missingScheme, at: 0, "the URL does not begin with http:// or https://")
        }
        return try afterScheme(scheme)
    }

    /// Parses the input as a reference that was found at `base` (RFC 3986 §5.2.2).
    mutating func reference(base: HTTPURL) throws(RawURLParseError) -> HTTPURL {
        if let scheme = try scheme() { return try afterScheme(scheme) }
        if bytes.starts(with: "//".utf8) { return try afterScheme(base.scheme) }
        var parts = base.components.parts
        if let first = bytes.first, first != UInt8(ascii: "#") {
            if first != UInt8(ascii: "?") {
                // A relative path is appended to the base's path up to and including its last slash.
                let path = Array(base.path.utf8)
                let end = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
                parts.path = readPath(after: first == UInt8(ascii: "/") ? [] : path[..<end])
            }
            parts.query = readQuery()
        }
        parts.fragment = readFragment()
        return try checkedLength(HTTPURL(parts))
    }

    /// Returns the scheme, if the input has one, and moves the position after its colon (RFC 3986 §3.1).
    private mutating func scheme() throws(RawURLParseError) -> HTTPURL.Scheme? {
        guard let first = bytes.first, isLetter(first), let colon = bytes.firstIndex(where: { !isSchemeByte($0) }),
            bytes[colon] == UInt8(ascii: ":")
        else { return nil }
        let name = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        guard let scheme = HTTPURL.Scheme(rawValue: name) else {
            let shown = name.utf8.count <= 20 ? ", but this one is “\(name)”" : ""
            throw RawURLParseError(.unsupportedScheme, at: 0, "a URL's scheme must be http or https\(shown)")
        }
        position = colon + 1
        return scheme
    }

    /// Parses the rest after `http:`, or a whole `//host` reference.
    private mutating func afterScheme(_ scheme: HTTPURL.Scheme) throws(RawURLParseError) -> HTTPURL {
        guard bytes[position...].starts(with: "//".utf8) else {
            throw RawURLParseError(.missingAuthority, at: position, "// and a host must follow the scheme")
        }
        position += 2
        let authority = try URLAuthority(take { $0 == UInt8(ascii: "/") || URLParser.endsPath($0) })
        return try checkedLength(
            HTTPURL(
                scheme: scheme, userInfo: authority.userInfo, host: authority.host.text, hostKind: authority.host.kind,
                explicitPort: authority.port, path: readPath(after: []), query: readQuery(), fragment: readFragment()))
    }

    /// Returns the bytes up to one that ends the component, or to the end.
    private mutating func take(until isEnd: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.count, !isEnd(bytes[position]) { position += 1 }
        return bytes[start..<position]
    }

    private static func endsPath(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") }

    /// Returns the path up to `?`, `#` or the end, appended to the directory of a relative path.
    private mutating func readPath(after directory: ArraySlice<UInt8>) -> String {
        let raw = take(until: URLParser.endsPath)
        return URLPath.normalized(directory.isEmpty ? raw : directory + raw, keepingDots: pathAsIs)
    }

    /// Reads the query, up to `#` or the end; `nil` if the position is not at a `?`.
    private mutating func readQuery() -> String? {
        guard position < bytes.endIndex, bytes[position] == UInt8(ascii: "?") else { return nil }
        position += 1
        return PercentEncoding.encoded(take { $0 == UInt8(ascii: "#") }, set: PercentEncoding.querySet)
    }

    /// Reads the fragment, up to the end; `nil` if the position is not at a `#`.
    private mutating func readFragment() -> String? {
        guard position < bytes.endIndex, bytes[position] == UInt8(ascii: "#") else { return nil }
        position += 1
        return PercentEncoding.encoded(bytes[position...], set: PercentEncoding.fragmentSet)
    }

    /// Returns the URL; throws an error if encoding or a long base made it too long.
    private func checkedLength(_ url: HTTPURL) throws(RawURLParseError) -> HTTPURL {
        guard url.serializedLength > HTTPURL.lengthLimit else { return url }
        throw RawURLParseError(
            .tooLong, at: bytes.count, "the URL is longer than \(HTTPURL.lengthLimit) bytes once encoded")
    }

    private static func rejection(of byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "\\"): "a backslash is not allowed in a URL; write %5C"
        case 0x09: "a tab is not allowed in a URL"
        case 0x0A, 0x0D: "a line break is not allowed in a URL"
        default: "a control character is not allowed in a URL"
        }
    }

    private func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }

    private func isSchemeByte(_ byte: UInt8) -> Bool {
        isLetter(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.".utf8.contains(byte)
    }
}

/// A parse error with a byte position, which is converted to characters later.
package struct RawURLParseError: Error {
    let code: HTTPURL.ParseError.Code
    /// The position in bytes of the UTF-8 input.
    let byteOffset: Int
    /// The text for ``HTTPURL/ParseError/message``.
    let message: String

    package init(_ code: HTTPURL.ParseError.Code, at byteOffset: Int, _ message: String) {
        (self.code, self.byteOffset, self.message) = (code, byteOffset, message)
    }

    /// Returns the public error, with its position counted in characters of `input`.
    package func located(in input: String) -> HTTPURL.ParseError {
        let utf8 = input.utf8
        let index = utf8.index(utf8.startIndex, offsetBy: byteOffset, limitedBy: utf8.endIndex) ?? utf8.endIndex
        // `distance` rounds an index inside a character down to its start.
        let offset = input.distance(from: input.startIndex, to: index)
        return HTTPURL.ParseError(code: code, offset: offset, message: message)
    }
}

/// The processing of paths: percent-encoding and the removal of dot segments (RFC 3986 §5.2.4, WHATWG URL Standard).
private enum URLPath {
    /// Returns the encoded path, beginning with `/`. Its `.` and `..` segments are removed unless they should stay.
    ///
    /// `%2e` counts as a dot, as in the WHATWG URL Standard: servers decode it before they resolve the path.
    static func normalized(_ raw: ArraySlice<UInt8>, keepingDots: Bool) -> String {
        let slash = UInt8(ascii: "/")
        var output: [UInt8] = []
        output.reserveCapacity(raw.count + 1)
        // The start of each remaining segment, at its slash.
        var starts: [Int] = []
        var rest = raw.first == slash ? raw.dropFirst() : raw
        while true {
            let end = rest.firstIndex(of: slash) ?? rest.endIndex
            let segment = rest[rest.startIndex..<end]
            let isLast = end == rest.endIndex
            let dots = keepingDots ? 0 : dots(segment)
            if dots == 0 {
                starts.append(output.count)
                output.append(slash)
                PercentEncoding.append(segment, set: PercentEncoding.pathSet, to: &output)
            } else {
                if dots == 2, let start = starts.popLast() { output.removeLast(output.count - start) }
                if isLast { output.append(slash) }
            }
            if isLast { break }
            rest = rest[(end + 1)...]
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Returns the number of dots of a segment that consists of only one or two dots; otherwise 0.
    private static func dots(_ segment: ArraySlice<UInt8>) -> Int {
        guard segment.count <= 6, let first = segment.first, first == UInt8(ascii: ".") || first == UInt8(ascii: "%")
        else { return 0 }
        let decoded = PercentEncoding.decodedBytes(segment)
        return decoded.count <= 2 && decoded.allSatisfy { $0 == UInt8(ascii: ".") } ? decoded.count : 0
    }
}
