public import MartletCore
public import MartletStreams

/// The expected hash of a file under a hash function.
public struct Checksum: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The hash function.
    public let algorithm: DigestSink.Algorithm
    /// The hash, in the length of the hash function; empty if its digits are invalid.
    public let bytes: [UInt8]

    /// Creates a checksum from its bytes; `nil` if their number is not that of the hash function.
    public init?(_ algorithm: DigestSink.Algorithm, _ bytes: [UInt8]) {
        guard bytes.count == algorithm.digest.byteCount else { return nil }
        (self.algorithm, self.bytes) = (algorithm, bytes)
    }

    /// Creates a checksum from its hexadecimal digits, in either case.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` for another character, or a wrong number of digits.
    public init(_ algorithm: DigestSink.Algorithm, hexadecimal: String) throws(HTTPError) {
        self.init(unchecked: algorithm, hexadecimal)
        try check(nil)
    }

    /// Creates a SHA-256 checksum from its hexadecimal digits, in either case. If they are invalid, the download fails
    /// before its first request with the code `.invalidRequest`.
    public static func sha256(_ hexadecimal: String) -> Checksum { Checksum(unchecked: .sha256, hexadecimal) }

    /// Creates a SHA-512 checksum from its hexadecimal digits.
    public static func sha512(_ hexadecimal: String) -> Checksum { Checksum(unchecked: .sha512, hexadecimal) }

    /// Creates a SHA-1 checksum from its hexadecimal digits. It detects damage, but not forgery.
    public static func sha1(_ hexadecimal: String) -> Checksum { Checksum(unchecked: .sha1, hexadecimal) }

    /// Creates an MD5 checksum from its hexadecimal digits. It detects damage, but not forgery.
    public static func md5(_ hexadecimal: String) -> Checksum { Checksum(unchecked: .md5, hexadecimal) }

    /// Whether the hash function resists forgery: `false` for SHA-1 and MD5.
    package var detectsForgery: Bool { algorithm != .sha1 && algorithm != .md5 }

    private init(unchecked algorithm: DigestSink.Algorithm, _ hexadecimal: String) {
        self.algorithm = algorithm
        bytes = Checksum.bytes(ofHexadecimal: hexadecimal) ?? []
    }

    /// Checks that the hash has the length of the hash function.
    func check(_ url: HTTPURL?) throws(HTTPError) {
        let count = algorithm.digest.byteCount
        guard bytes.count != count else { return }
        throw HTTPError(
            .invalidRequest, phase: .preparing,
            message: "a \(algorithm.rawValue) checksum has \(count * 2) hexadecimal digits", method: .get, url: url)
    }

    /// The bytes as lower-case hexadecimal digits.
    public var hexadecimal: String { String(decoding: MessageDigest.hexadecimal(bytes), as: UTF8.self) }

    /// The hash function and the digits, such as `sha256=9f86…`.
    public var description: String { "\(algorithm.rawValue)=\(hexadecimal)" }

    private static func bytes(ofHexadecimal text: String) -> [UInt8]? {
        let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
