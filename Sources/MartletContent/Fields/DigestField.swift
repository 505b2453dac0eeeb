import FoundationEssentials
public import HTTPTypes

/// A hash function of digest fields, without the ones that are broken (RFC 9530 §5). The cases are in the order of
/// preference.
public enum DigestAlgorithm: String, Hashable, Sendable, CaseIterable, Codable {
    /// SHA-512, with 64 bytes.
    case sha512 = "sha-512"
    /// SHA-256, with 32 bytes.
    case sha256 = "sha-256"

    /// The number of bytes of a digest.
    package var byteCount: Int { self == .sha512 ? 64 : 32 }
}

/// The value of `Content-Digest` or `Repr-Digest` (RFC 9530 §2, §3).
package struct DigestField: Hashable, Sendable {
    /// The value of `Want-Content-Digest` and `Want-Repr-Digest` (RFC 9530 §4): any supported function, SHA-256 first.
    package static let preferences = "sha-256=10, sha-512=3"

    /// The digests of supported functions. Other members are ignored, also those with a digest of the wrong length.
    package private(set) var digests: [DigestAlgorithm: [UInt8]] = [:]

    /// Parses all lines of the field as one dictionary. After a syntax error the field has no digests (RFC 9651 §4.2).
    package init(_ lines: [ArraySlice<UInt8>]) {
        guard !lines.isEmpty else { return }
        var parser = StructuredDictionaryParser(lines)
        let names = Set(DigestAlgorithm.allCases.map(\.rawValue))
        for (name, bytes) in parser.byteSequences(named: names) ?? [:] {
            if let algorithm = DigestAlgorithm(rawValue: name), bytes.count == algorithm.byteCount {
                digests[algorithm] = bytes
            }
        }
    }

    /// Returns the member of a digest, such as `sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:`.
    package static func member(_ algorithm: DigestAlgorithm, _ bytes: [UInt8]) -> String {
        "\(algorithm.rawValue)=:\(Data(bytes).base64EncodedString()):"
    }
}

extension HTTPField.Name {
    /// `Content-Digest`: digests of the content of a message (RFC 9530 §2).
    public static let contentDigest = HTTPField.Name("Content-Digest") ?? .expect
    /// `Repr-Digest`: digests of the whole representation (RFC 9530 §3).
    public static let reprDigest = HTTPField.Name("Repr-Digest") ?? .expect
    /// `Want-Content-Digest`: the preferred hash functions of `Content-Digest` (RFC 9530 §4).
    public static let wantContentDigest = HTTPField.Name("Want-Content-Digest") ?? .expect
    /// `Want-Repr-Digest`: the preferred hash functions of `Repr-Digest` (RFC 9530 §4).
    public static let wantReprDigest = HTTPField.Name("Want-Repr-Digest") ?? .expect
}
