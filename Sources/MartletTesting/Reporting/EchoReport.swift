import FoundationEssentials
import MartletStorage

/// The report of ``OriginHandler/echo`` about a request, in JSON.
public struct EchoReport: Codable, Sendable, Hashable {
    /// The method, as sent.
    public var method: String
    /// The request target, as sent.
    public var target: String
    /// The path, as sent.
    public var path: String
    /// The query, as sent; `nil` without one.
    public var query: String?
    /// The HTTP version: `1.1` or `1.0`.
    public var version: String
    /// The field lines in order, each a name and a value.
    public var headers: [[String]]
    /// The body as text; `nil` if it is not UTF-8.
    public var body: String?
    /// The body in Base64.
    public var bodyBase64: String
    /// The body's length in bytes.
    public var bodyLength: Int
    /// The trailer fields of a chunked body.
    public var trailers: [[String]]
    /// The number of the connection, from 1.
    public var connection: Int
    /// The position of the request on its connection, from 1.
    public var request: Int
    /// `TLSv1.2` or `TLSv1.3`; `nil` on a plain connection.
    public var tls: String?
    /// The server name that the client sent (SNI).
    public var serverName: String?
    /// The common name in the client's certificate.
    public var clientCertificate: String?

    /// Reads the request's body, of at most 16 MiB, and describes the request.
    init(_ request: OriginRequest) async throws {
        let bytes = try await request.collectBody()
        (method, target, path) = (request.method.rawValue, request.target, request.path)
        query = request.query.isEmpty ? nil : request.query.description
        version = request.version
        headers = request.headers.map { [$0.name, $0.value] }
        body = String(validating: bytes, as: UTF8.self)
        (bodyBase64, bodyLength) = (Data(bytes).base64EncodedString(), bytes.count)
        trailers = request.body.trailers.map { [$0.name, $0.value] }
        (connection, self.request) = (request.connection.number, request.number)
        (tls, serverName) = (request.connection.tlsVersion, request.connection.serverName)
        clientCertificate = request.connection.clientCommonName
    }

    /// The first value of a field, ignoring the case of its name.
    public func header(_ name: String) -> String? {
        headers.first { $0.count == 2 && $0[0].lowercased() == name.lowercased() }?[1]
    }
}

/// The report of ``OriginHandler/upload`` about a body, in JSON.
public struct UploadReport: Codable, Sendable, Hashable {
    /// The body's length in bytes.
    public var length: UInt64
    /// The body's CRC-32 as eight hexadecimal digits; see ``CRC32``.
    public var crc32: String

    /// Reads a body to its end, holding only one piece of it at a time.
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

/// Bytes that depend only on their offset, so that a body of any length can be generated and checked in pieces.
///
/// The pattern repeats after 65,521 bytes. That is a prime, so bytes that were lost, doubled or moved by a power of two
/// (a buffer, a page, a chunk) do not match.
public enum TestPattern {
    /// The number of bytes after which the pattern repeats.
    public static let period = 65_521

    /// Five periods, so that every stretch of up to four periods is contiguous in it.
    private static let block: [UInt8] = {
        // The upper bits of a multiplicative hash: neighbors differ, and no short stretch repeats.
        let bytes = (0..<period).map { index in
            UInt8(truncatingIfNeeded: (UInt64(index) &* 0x9E37_79B9_7F4A_7C15) >> 40)
        }
        return bytes + bytes + bytes + bytes + bytes
    }()

    /// The maximum number of bytes in a stretch of the pattern.
    private static let stretchLimit = 4 * period

    /// The byte at an offset.
    public static func byte(at offset: UInt64) -> UInt8 { block[Int(offset % UInt64(period))] }

    /// A number of bytes from an offset on; empty for a count below 1.
    public static func bytes(from offset: UInt64, count: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(max(0, count))
        for stretch in stretches(from: offset, count: UInt64(max(0, count))) { result += stretch }
        return result
    }

    /// A number of bytes from an offset on, in pieces that are generated one by one.
    static func stretches(from offset: UInt64, count: UInt64) -> some Sequence<ArraySlice<UInt8>> {
        sequence(state: 0 as UInt64) { done -> ArraySlice<UInt8>? in
            guard done < count else { return nil }
            let step = Int(min(count - done, UInt64(stretchLimit)))
            let start = Int((offset % UInt64(period) + done) % UInt64(period))
            done += UInt64(step)
            return block[start..<start + step]
        }
    }

    /// Finds the first byte that differs from the pattern.
    /// - Parameters:
    ///   - bytes: The bytes to compare.
    ///   - offset: The offset of the first byte.
    /// - Returns: The index in `bytes`; `nil` if all bytes match.
    public static func firstMismatch(in bytes: [UInt8], at offset: UInt64) -> Int? {
        var index = 0
        for stretch in stretches(from: offset, count: UInt64(bytes.count)) {
            // A whole stretch is compared first, since that is fast.
            let found = bytes[index..<index + stretch.count]
            if found != stretch { return zip(found.indices, stretch).first { bytes[$0] != $1 }?.0 }
            index += stretch.count
        }
        return nil
    }
}

/// Encodes bytes in the formats of gzip and zlib without compressing them. Every decoder accepts the result.
public enum StoredCoding {
    /// The maximum number of bytes in a stored block (RFC 1951 §3.2.4).
    private static let blockLimit = 65_535

    /// One member of a gzip file (RFC 1952).
    public static func gzip(_ bytes: [UInt8]) -> [UInt8] {
        let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
        return header + deflated(bytes) + littleEndian(CRC32(bytes).value)
            + littleEndian(UInt32(truncatingIfNeeded: bytes.count))
    }

    /// A zlib stream (RFC 1950), which is HTTP's `deflate`.
    public static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        [0x78, 0x01] + deflated(bytes) + littleEndian(adler32(bytes)).reversed()
    }

    /// A bare deflate stream (RFC 1951), which some servers call `deflate`.
    public static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var start = 0
        repeat {
            let end = min(bytes.count, start + blockLimit)
            let length = UInt16(end - start)
            result.append(end == bytes.count ? 1 : 0)
            result += [UInt8(length & 0xFF), UInt8(length >> 8), UInt8(~length & 0xFF), UInt8(~length >> 8)]
            result += bytes[start..<end]
            start = end
        } while start < bytes.count
        return result
    }

    private static func littleEndian(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(8 * $0)) }
    }

    private static func adler32(_ bytes: [UInt8]) -> UInt32 {
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return high << 16 | low
    }
}

/// The CRC-32 of gzip, zip and Ethernet (ISO 3309), which ``OriginHandler/upload`` reports for a body.
///
/// It detects accidental changes, not attacks.
public struct CRC32: Sendable, Hashable {
    private var checksum = RecordChecksum()

    /// Creates the checksum of no bytes.
    public init() {}

    /// Creates the checksum of a sequence of bytes.
    public init(_ bytes: some Sequence<UInt8>) { update(with: bytes) }

    /// Adds bytes to the checksum.
    public mutating func update(with bytes: some Sequence<UInt8>) { checksum.update(Array(bytes).span) }

    /// The checksum of all bytes added so far.
    public var value: UInt32 { checksum.value }

    /// The checksum as eight hexadecimal digits.
    public var text: String { String(String(1 << 32 + UInt64(value), radix: 16).dropFirst()) }
}
