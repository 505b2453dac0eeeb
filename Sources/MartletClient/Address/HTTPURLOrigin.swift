extension HTTPURL {
    /// Scheme, host and port: what must be equal before a credential may follow a request (RFC 6454 §4).
    ///
    /// Hosts are compared in the form the parser gives them: lower case, A-labels, canonical addresses. A
    /// trailing dot is part of the host, as in the WHATWG URL Standard: `a.com.` and `a.com` are two origins.
    public struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The scheme.
        public let scheme: Scheme
        /// The host as in ``HTTPURL/host``: ASCII, IPv6 without brackets.
        public let host: String
        /// The port, 1–65535, the scheme's default filled in.
        public let port: Int

        /// The origin of an address.
        init(scheme: Scheme, host: String, port: Int) {
            self.scheme = scheme
            self.host = host
            self.port = port
        }

        /// The origin as `https://host:port`, the port always present, an IPv6 address in brackets.
        public var description: String {
            // A colon appears in no host but an IPv6 address.
            host.utf8.contains(UInt8(ascii: ":"))
                ? "\(scheme)://[\(host)]:\(port)" : "\(scheme)://\(host):\(port)"
        }
    }
}
