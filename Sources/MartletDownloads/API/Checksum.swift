public import MartletClient
import MartletTransport

/// What the bytes of a file must come to under a hash function.
public struct Checksum: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The hash function.
    public let algorithm: DigestSink.Algorithm
    /// The hash, as many bytes as the function has.
    public let bytes: [UInt8]

    /// A checksum by its bytes; `nil` when they are not as many as the function gives.
    public init?(_ algorithm: DigestSink.Algorithm, _ bytes: [UInt8]) {
        guard bytes.count == algorithm.digest.byteCount else { return nil }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// A checksum by its hexadecimal digits, of either case.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` when they are not digits, or not as many as the function
    ///   has.
    public init(_ algorithm: DigestSink.Algorithm, hexadecimal: String) throws(HTTPError) {
        guard let bytes = Checksum.bytes(ofHexadecimal: hexadecimal),
            let checksum = Checksum(algorithm, bytes)
        else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message:
                    "a checksum by \(algorithm.rawValue) has \(algorithm.digest.byteCount * 2) hexadecimal digits"
            )
        }
        self = checksum
    }

    /// A checksum by SHA-256, as hexadecimal digits.
    public static func sha256(_ hexadecimal: String) throws(HTTPError) -> Checksum {
        try Checksum(.sha256, hexadecimal: hexadecimal)
    }

    /// A checksum by SHA-512, as hexadecimal digits.
    public static func sha512(_ hexadecimal: String) throws(HTTPError) -> Checksum {
        try Checksum(.sha512, hexadecimal: hexadecimal)
    }

    /// A checksum by SHA-1, as hexadecimal digits. It shows damage, and proves nothing against a forger.
    public static func sha1(_ hexadecimal: String) throws(HTTPError) -> Checksum {
        try Checksum(.sha1, hexadecimal: hexadecimal)
    }

    /// A checksum by MD5, as hexadecimal digits. It shows damage, and proves nothing against a forger.
    public static func md5(_ hexadecimal: String) throws(HTTPError) -> Checksum {
        try Checksum(.md5, hexadecimal: hexadecimal)
    }

    /// The bytes in lower-case hexadecimal digits.
    public var hexadecimal: String {
        String(decoding: MessageDigest.hexadecimal(bytes), as: UTF8.self)
    }

    /// The function and the digits, such as `sha256=9f86…`.
    public var description: String { "\(algorithm.rawValue)=\(hexadecimal)" }

    private static func bytes(ofHexadecimal text: String) -> [UInt8]? {
        let digits = text.utf8.map { UInt8($0) }
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
