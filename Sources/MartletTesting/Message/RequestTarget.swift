import MartletWire

/// The parts of a request target (RFC 9112 §3.2).
struct RequestTarget {
    let path: String
    let query: String?

    init(_ target: String) {
        var rest = Substring(target)
        if let scheme = rest.firstRange(of: "://"), !rest.hasPrefix("/") {
            // Absolute form, as sent to proxies: what follows the authority counts.
            let authority = rest[scheme.upperBound...]
            let end = authority.firstIndex { $0 == "/" || $0 == "?" } ?? authority.endIndex
            rest = authority[end...]
        }
        if let mark = rest.firstIndex(of: "?") {
            path = String(rest[..<mark])
            query = String(rest[rest.index(after: mark)...])
        } else {
            path = String(rest)
            query = nil
        }
    }

    var queryItems: [(name: String, value: String)] {
        (query ?? "").split(separator: "&").map { part in
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = pair.count > 1 ? pair[1] : ""
            return (
                RequestTarget.decoded(pair[0], plusIsBlank: true),
                RequestTarget.decoded(value, plusIsBlank: true)
            )
        }
    }

    /// Text with `%XX` decoded; bytes that are not UTF-8 become U+FFFD, and a `%` without two digits stays.
    static func decoded(_ text: Substring, plusIsBlank: Bool = false) -> String {
        String(decoding: decodedBytes(text, plusIsBlank: plusIsBlank), as: UTF8.self)
    }

    private static func decodedBytes(_ text: Substring, plusIsBlank: Bool) -> [UInt8] {
        let source = Array(text.utf8)
        var bytes: [UInt8] = []
        var index = 0
        while index < source.count {
            if source[index] == UInt8(ascii: "%"), index + 2 < source.count,
                let high = ByteClass.hexDigit(source[index + 1]),
                let low = ByteClass.hexDigit(source[index + 2])
            {
                bytes.append(UInt8(high << 4 | low))
                index += 3
            } else {
                let isBlank = plusIsBlank && source[index] == UInt8(ascii: "+")
                bytes.append(isBlank ? ByteClass.space : source[index])
                index += 1
            }
        }
        return bytes
    }
}
