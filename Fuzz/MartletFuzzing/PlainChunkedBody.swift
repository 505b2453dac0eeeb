import MartletWire

/// A chunked body that is parsed in the simplest way, from all of its bytes and without limits. The decoder must agree
/// with it whenever it reports a complete body.
struct PlainChunkedBody: Equatable {
    /// The joined data of the chunks.
    let payload: [UInt8]
    /// The number of bytes from the first chunk size to the empty line after the trailers.
    let byteCount: Int

    /// Parses a body; `nil` if it is malformed or incomplete.
    init?(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        var payload: [UInt8] = []
        while true {
            guard let line = PlainChunkedBody.takeLine(&rest) else { return nil }
            let digits = line.prefix { ByteClass.hexDigit($0) != nil }
            guard let size = Int(String(decoding: digits, as: UTF8.self), radix: 16) else { return nil }
            let next = line.dropFirst(digits.count).first { !ByteClass.isBlank($0) }
            guard next == nil || next == UInt8(ascii: ";") else { return nil }
            if size == 0 { break }
            guard rest.count >= size else { return nil }
            payload += rest.prefix(size)
            rest = rest.dropFirst(size)
            guard let footer = PlainChunkedBody.takeLine(&rest), footer.isEmpty else { return nil }
        }
        while let trailer = PlainChunkedBody.takeLine(&rest) {
            guard trailer.isEmpty else { continue }
            self.payload = payload
            byteCount = rest.startIndex - bytes.startIndex
            return
        }
        return nil
    }

    /// Removes the first line and returns it; `nil` if no CRLF is left.
    private static func takeLine(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        for index in rest.indices.dropLast()
        where rest[index] == ByteClass.carriageReturn && rest[index + 1] == ByteClass.lineFeed {
            let line = rest[..<index]
            rest = rest[(index + 2)...]
            return line
        }
        return nil
    }
}
