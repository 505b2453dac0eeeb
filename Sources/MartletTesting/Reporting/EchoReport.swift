import FoundationEssentials
import MartletStorage

/// What ``OriginHandler/echo`` tells of a request, in JSON.
public struct EchoReport: Codable, Sendable, Hashable {
    /// The method, as sent.
    public var method: String
    /// The request target, as sent.
    public var target: String
    /// The path, as sent.
    public var path: String
    /// The query, as sent; `nil` without one.
    public var query: String?
    /// `1.1` or `1.0`.
    public var version: String
    /// The field lines in order: name and value each.
    public var headers: [[String]]
    /// The body as text; `nil` when it is not UTF-8.
    public var body: String?
    /// The body in Base64.
    public var bodyBase64: String
    /// The body's length in bytes.
    public var bodyLength: Int
    /// The fields behind a chunked body.
    public var trailers: [[String]]
    /// The number of the connection, from 1.
    public var connection: Int
    /// The request's place on its connection, from 1.
    public var request: Int
    /// `TLSv1.2` or `TLSv1.3`; `nil` on a plain connection.
    public var tls: String?
    /// The name the client asked for by SNI.
    public var serverName: String?
    /// The common name in the client's certificate.
    public var clientCertificate: String?

    /// Reads the request's body, of at most 16 MiB, and describes the request.
    init(_ request: OriginRequest) async throws {
        let bytes = try await request.collectBody()
        method = request.method
        target = request.target
        path = request.path
        query = request.query
        version = request.version
        headers = request.fields.map { [$0.name, $0.value] }
        body = String(validating: bytes, as: UTF8.self)
        bodyBase64 = Data(bytes).base64EncodedString()
        bodyLength = bytes.count
        trailers = request.body.trailers.map { [$0.name, $0.value] }
        connection = request.connection.number
        self.request = request.number
        tls = request.connection.tlsVersion
        serverName = request.connection.serverName
        clientCertificate = request.connection.clientCommonName
    }

    /// The first value of a field, whose name is compared in any case.
    public func header(_ name: String) -> String? {
        headers.first { $0.count == 2 && $0[0].lowercased() == name.lowercased() }?[1]
    }
}

/// Bytes that depend on nothing but their offset, so that a body of any length can be made without memory and
/// checked without a copy.
///
/// The pattern repeats after 65,521 bytes. That is a prime, so bytes that were lost, doubled or moved by a
/// power of two (a buffer, a page, a chunk) do not match.
public enum TestPattern {
    /// After how many bytes it repeats.
    public static let period = 65_521

    /// Five periods: any stretch of up to four can be taken from it in one piece.
    private static let block: [UInt8] = {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(5 * period)
        for index in 0..<period {
            // The upper bits of a multiplicative hash: neighbours differ, and no short stretch comes again.
            bytes.append(UInt8(truncatingIfNeeded: (UInt64(index) &* 0x9E37_79B9_7F4A_7C15) >> 40))
        }
        return bytes + bytes + bytes + bytes + bytes
    }()

    /// The most bytes that one call of ``bytes(from:count:)`` makes.
    static let stretchLimit = 4 * period

    /// The byte at an offset.
    public static func byte(at offset: UInt64) -> UInt8 { block[Int(offset % UInt64(period))] }

    /// So many bytes from an offset on; none for a count below 1.
    public static func bytes(from offset: UInt64, count: Int) -> [UInt8] {
        var result: [UInt8] = []
        var offset = offset
        var remaining = max(0, count)
        result.reserveCapacity(remaining)
        while remaining > 0 {
            let start = Int(offset % UInt64(period))
            let step = min(remaining, stretchLimit)
            result += block[start..<start + step]
            offset += UInt64(step)
            remaining -= step
        }
        return result
    }

    /// Where bytes differ from the pattern for the first time.
    /// - Parameters:
    ///   - bytes: What was received.
    ///   - offset: The offset of the first of them.
    /// - Returns: The index in `bytes`; `nil` when all are right.
    public static func firstMismatch(in bytes: [UInt8], at offset: UInt64) -> Int? {
        let start = Int(offset % UInt64(period))
        var index = 0
        while index < bytes.count {
            let from = (start + index) % period
            let step = min(bytes.count - index, stretchLimit)
            // Compared as wholes first: that is one call for each stretch where nothing is wrong.
            if bytes[index..<index + step] != block[from..<from + step] {
                return (index..<index + step).first { bytes[$0] != block[(start + $0) % period] }
            }
            index += step
        }
        return nil
    }
}

/// Bytes in the formats of gzip and zlib, stored rather than compressed: valid for every decoder, and longer
/// than what they hold.
public enum StoredCoding {
    /// The most bytes of one stored block (RFC 1951 §3.2.4).
    private static let blockLimit = 65_535

    /// One member of a gzip file (RFC 1952).
    public static func gzip(_ bytes: [UInt8]) -> [UInt8] {
        let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
        return header + deflated(bytes) + littleEndian(CRC32(bytes).value)
            + littleEndian(UInt32(truncatingIfNeeded: bytes.count))
    }

    /// A zlib stream (RFC 1950): what HTTP calls `deflate`.
    public static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        [0x78, 0x01] + deflated(bytes) + littleEndian(adler32(bytes)).reversed()
    }

    /// A bare deflate stream (RFC 1951): what some servers call `deflate`.
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

/// The CRC-32 of gzip, zip and Ethernet (ISO 3309): what ``OriginHandler/upload`` reports of a body.
///
/// It finds accidents, not attacks.
public struct CRC32: Sendable, Hashable {
    private var checksum = RecordChecksum()

    /// The checksum of no bytes.
    public init() {}

    /// The checksum of these bytes.
    public init(_ bytes: some Sequence<UInt8>) { update(with: bytes) }

    /// Adds bytes.
    public mutating func update(with bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        checksum.update(bytes.span)
    }

    /// The checksum.
    public var value: UInt32 { checksum.value }

    /// The checksum as eight hexadecimal digits.
    public var text: String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}
