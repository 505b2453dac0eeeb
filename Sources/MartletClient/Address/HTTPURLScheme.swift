extension HTTPURL {
    /// The scheme of an address; Martlet speaks these two (RFC 9110 §4.2).
    public enum Scheme: String, Hashable, Sendable, Codable, CaseIterable, CustomStringConvertible {
        /// Plain HTTP over TCP (RFC 9110 §4.2.1).
        case http
        /// HTTP over TLS (RFC 9110 §4.2.2).
        case https

        /// The port meant when an address names none: 80 or 443.
        public var defaultPort: Int {
            switch self {
            case .http: 80
            case .https: 443
            }
        }

        /// The scheme in lower case, without the colon.
        public var description: String { rawValue }
    }
}
