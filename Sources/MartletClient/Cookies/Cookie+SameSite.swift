extension Cookie {
    /// What a cookie says of requests that other sites cause (RFC 6265bis §5.6.7).
    public enum SameSite: String, Sendable, Hashable, Codable {
        /// It goes with no request that another site causes.
        case strict = "Strict"
        /// It goes with such requests only when they lead the user to its site.
        case lax = "Lax"
        /// It goes with all requests.
        case none = "None"
        /// Nothing, or nothing that is known.
        case unspecified = "Default"
    }
}
