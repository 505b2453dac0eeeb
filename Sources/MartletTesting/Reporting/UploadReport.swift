/// What ``OriginHandler/upload`` tells of a body, in JSON.
public struct UploadReport: Codable, Sendable, Hashable {
    /// The body's length in bytes.
    public var length: UInt64
    /// Its CRC-32 as eight hexadecimal digits; see ``CRC32``.
    public var crc32: String

    /// Reads a body to its end, holding no more than a piece of it.
    init(_ body: OriginRequestBody) async throws {
        length = 0
        var checksum = CRC32()
        for try await chunk in body {
            length += UInt64(chunk.count)
            checksum.update(with: chunk)
        }
        crc32 = checksum.text
    }
}
