/// A minimal parser for multipart forms: splits the bytes at the boundary (RFC 2046 §5.1.1).
struct MultipartReading {
    struct Part: Equatable {
        var head: [String]
        var body: [UInt8]
        var text: String { String(decoding: body, as: UTF8.self) }
    }

    private(set) var parts: [Part] = []

    /// Parses a form; `nil` when the bytes are not a valid form.
    init?(_ bytes: [UInt8], contentType: String?) {
        let prefix = "multipart/form-data; boundary="
        guard let contentType, contentType.hasPrefix(prefix) else { return nil }
        let boundary = Array("--\(contentType.dropFirst(prefix.count))".utf8)
        guard bytes.starts(with: boundary) else { return nil }
        var rest = bytes[boundary.count...]
        while !rest.elementsEqual("--\r\n".utf8) {
            guard rest.starts(with: "\r\n".utf8) else { return nil }
            rest = rest.dropFirst(2)
            var head: [String] = []
            while true {
                guard let end = MultipartReading.index(of: Array("\r\n".utf8), in: rest) else { return nil }
                let line = rest[rest.startIndex..<end]
                rest = rest[(end + 2)...]
                if line.isEmpty { break }
                head.append(String(decoding: line, as: UTF8.self))
            }
            guard let end = MultipartReading.index(of: Array("\r\n".utf8) + boundary, in: rest) else {
                return nil
            }
            parts.append(Part(head: head, body: Array(rest[rest.startIndex..<end])))
            rest = rest[(end + 2 + boundary.count)...]
        }
    }

    private static func index(of needle: [UInt8], in hay: ArraySlice<UInt8>) -> Int? {
        guard hay.count >= needle.count else { return nil }
        return (hay.startIndex...(hay.endIndex - needle.count)).first { hay[$0...].starts(with: needle) }
    }
}
