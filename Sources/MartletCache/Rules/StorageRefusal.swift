/// Why a response is not stored.
package enum StorageRefusal: String, Equatable, Sendable {
    /// The request, its mode or the response says `no-store`.
    case noStore = "no-store"
    /// The method is not GET.
    case method
    /// The status is 1xx, 206 or 304, or one that `must-understand` is not met for.
    case status
    /// The request asked for parts.
    case range
    /// The caller made it conditional: what comes is an answer to that.
    case condition
    /// It was made for a credential, is to be kept for everybody, and does not say that it may be (RFC 9111 §3.5).
    case authorization
    /// It varies with everything, with too much, or with a secret that cannot be concealed.
    case vary
    /// Neither its fields nor its status say that it may be stored (RFC 9111 §3).
    case notCacheable = "not-cacheable"
    /// `Connection` names a field that its use depends on.
    case connection
    /// It is an error, and what it would take the place of is none.
    case error
    /// The URL was invalidated while it was on its way (RFC 9111 §4.4).
    case invalidated
}
