package import MartletWire

/// How a request goes to the network that no stored response has a part in.
package struct ForwardPlan: Equatable, Sendable {
    /// Why.
    package let reason: CacheStatus.Forwarding
    /// The fields that are added to it: `Cache-Control: no-cache` for ``CacheMode/reload``, `no-store` for
    /// ``CacheMode/noStore``.
    package let fields: FieldBlock
    /// The stored response that may stand in for an error, by index (RFC 5861 §4).
    package let staleOnError: Int?
    /// Whether an answer may be stored, so that requests like it may wait for it: GET without `no-store`, parts and
    /// conditions of the caller's.
    package let isShareable: Bool
}
