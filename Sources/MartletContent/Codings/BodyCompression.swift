import HTTPTypes
package import MartletWire

/// A content coding that compresses the body of a request while it is sent (RFC 9110 §8.4.1).
public struct BodyCompression: Hashable, Sendable {
    /// gzip (RFC 1952), which most servers accept. Levels 1 to 9; 6 by default.
    public static let gzip = BodyCompression(.gzip)
    /// deflate, with zlib's wrapper (RFC 1950). Levels 1 to 9; 6 by default.
    public static let deflate = BodyCompression(.deflate)
    #if Brotli
        /// Brotli (RFC 7932). Requires the package trait `Brotli`. Levels 0 to 11; 5 by default, because the library's
        /// own default of 11 compresses less than 1 MB per second.
        public static let brotli = BodyCompression(.brotli)
    #endif
    #if Zstandard
        /// Zstandard (RFC 8878) with windows of at most 8 MiB (RFC 9659). Requires the package trait `Zstandard`.
        /// Levels 1 to 19; 3 by default.
        public static let zstandard = BodyCompression(.zstandard)
    #endif

    package let coding: ContentCoding
    /// The level of the library; `nil` for its default. Values outside the range of the coding are clamped.
    package var level: Int?
    /// Whether the body is compressed; `false` after a server has rejected the coding.
    package var isEnabled = true

    private init(_ coding: ContentCoding) { self.coding = coding }

    /// Creates a compression from the name of its coding; `nil` for a coding that this build does not support.
    package init?(name: String, level: Int?) {
        guard let coding = ContentCoding(name: name) else { return nil }
        (self.coding, self.level) = (coding, level)
    }

    /// Returns the value of `Content-Encoding`: the codings in the order in which they were applied; `nil` for none.
    ///
    /// If the caller's list ends with this coding, that member describes the compression and is not repeated. So it is
    /// removed if the body is sent uncompressed.
    /// - Parameters:
    ///   - values: The values of the caller's fields, in order.
    ///   - isApplied: Whether the body is compressed.
    package func fieldValue(after values: [String], isApplied: Bool) -> String? {
        var names = values.flatMap { Array($0.utf8).split(separator: UInt8(ascii: ",")) }
            .map { String(decoding: ByteClass.trimmed($0), as: UTF8.self) }.filter { !$0.isEmpty }
        if let last = names.last, ContentCoding(name: last) == coding { names.removeLast() }
        if isApplied { names.append(coding.rawValue) }
        return names.isEmpty ? nil : names.joined(separator: ", ")
    }

    /// Whether a body with these fields or trailers may be compressed. A digest is that of the coded bytes (RFC 9530
    /// §2, §3), so a body with a digest of the uncompressed bytes must be sent uncompressed.
    package func applies(to fields: FieldBlock, _ trailers: HTTPHeaders) -> Bool {
        let digests = ["content-digest", "repr-digest", "digest", "content-md5"]
        return isEnabled && !digests.contains { fields.contains($0) }
            && !trailers.contains { digests.contains($0.name.canonicalName) }
    }

    /// The maximum size in bytes of a body in memory that is compressed before it is sent, so that it has a length.
    package static let collectedByteCount = 1 << 20

    /// Compresses bytes in memory. Blocks.
    /// - Returns: The compressed bytes; `nil` if they would not be smaller.
    package func compressed(_ bytes: [UInt8]) throws(ContentEncodingError) -> [UInt8]? {
        let encoder = try ContentEncoder(self)
        var (result, rest) = ([UInt8](), bytes[...])
        while result.count < bytes.count {
            let piece = try encoder.encode(rest, endOfInput: true)
            result += piece.bytes
            if piece.isFinished { return result.count < bytes.count ? result : nil }
            rest = rest.dropFirst(piece.consumed)
        }
        return nil
    }
}
