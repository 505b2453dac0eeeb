import FoundationEssentials
import MartletCaching
public import MartletCore
public import MartletStreams
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
    public var hexadecimal: String { String(decoding: MessageDigest.hexadecimal(bytes), as: UTF8.self) }

    /// The function and the digits, such as `sha256=9f86…`.
    public var description: String { "\(algorithm.rawValue)=\(hexadecimal)" }

    private static func bytes(ofHexadecimal text: String) -> [UInt8]? {
        let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}

/// The field `Repr-Digest` (RFC 9530 §3): digests of a file as it is sent, whatever part of it an answer has.
package enum ReprDigest {
    /// The digests of the field that can be computed, SHA-256 and SHA-512, the strongest first; those that are malformed or
    /// by another algorithm are passed over (RFC 9530 §3).
    package static func checksums(_ values: [String]) -> [Checksum] {
        var found: [String: Checksum] = [:]
        // Neither base64 nor the algorithms' names have a comma; a member's parameters, of which none is defined, may.
        for member in values.joined(separator: ",").split(separator: ",") {
            let text = trimmed(member)
            guard let equals = text.firstIndex(of: "=") else { continue }
            let name = String(text[..<equals])
            let algorithm: DigestSink.Algorithm
            switch name {
            case "sha-256": algorithm = .sha256
            case "sha-512": algorithm = .sha512
            default: continue
            }
            let value = text[text.index(after: equals)...]
            guard value.utf8.count < 200, value.first == ":",
                let end = value.dropFirst().firstIndex(of: ":"),
                let bytes = bytes(ofBase64: String(value[..<end].dropFirst())),
                let checksum = Checksum(algorithm, bytes)
            else { continue }
            // Of a key that is there several times, the last counts (RFC 9651 §3.2).
            found[name] = checksum
        }
        return [found["sha-512"], found["sha-256"]].compactMap { $0 }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text = text.dropFirst() }
        while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
        return text
    }

    /// Bytes in base64 (RFC 4648 §4), padded; nil for anything else. Foundation takes more.
    private static func bytes(ofBase64 text: String) -> [UInt8]? {
        let padding = text.drop { $0 != "=" }
        guard text.utf8.count % 4 == 0, padding.count <= 2, padding.allSatisfy({ $0 == "=" }) else {
            return nil
        }
        return Data(base64Encoded: text).map { Array($0) }
    }
}
