import COpenSSL

/// A version of TLS that Martlet speaks.
public enum TLSVersion: Int, Hashable, Sendable, Comparable, CaseIterable, Codable {
    /// TLS 1.2 (RFC 5246).
    case tls12 = 12
    /// TLS 1.3 (RFC 8446).
    case tls13 = 13

    /// OpenSSL's number of the version.
    var number: Int32 {
        switch self {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }

    /// Orders by age: the older is the smaller.
    public static func < (left: TLSVersion, right: TLSVersion) -> Bool {
        left.rawValue < right.rawValue
    }
}
