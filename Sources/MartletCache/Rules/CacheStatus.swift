import MartletWire

/// The handling of a request by the cache, for the `Cache-Status` field of its response (RFC 9211).
package struct CacheStatus: Equatable, Sendable {
    /// The reason why a request went to the network (RFC 9211 §2.2).
    package enum Forwarding: String, Equatable, Sendable {
        case bypass
        /// The cache serves no responses to the method.
        case method
        /// Nothing is stored for the URL.
        case uriMiss = "uri-miss"
        /// The stored responses were selected by other values of the fields in `Vary`.
        case varyMiss = "vary-miss"
        /// The stored response must not be used.
        case miss
        /// The request or its mode rejects the stored response.
        case request
        case stale
    }

    /// Whether the stored response was served without the network.
    package var isHit = false
    /// The reason why the request went to the network; `nil` if it did not.
    package var forwarding: Forwarding?
    /// The status of the network's response.
    package var forwardStatus: Int?
    /// The seconds for which the response is still fresh; negative for a stale one.
    package var timeToLive: Int64?
    /// Whether the network's response was stored.
    package var isStored = false
    /// Whether the request shares the response of another request to the network.
    package var isCollapsed = false
    package var detail: String?
    /// A status with only the name of the cache, `martlet`.
    package static let nothing = CacheStatus()

    /// The cache's member of the field: a structured item with parameters (RFC 9211 §2, RFC 8941 §3.3).
    package var text: String {
        var text = "martlet"
        if isHit { text += "; hit" }
        if let forwarding { text += "; fwd=\(forwarding.rawValue)" }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if let timeToLive { text += "; ttl=\(min(max(timeToLive, -999_999_999_999_999), 999_999_999_999_999))" }
        if isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        if let detail { text += "; detail=\(CacheStatus.quoted(detail))" }
        return text
    }

    /// Formats a string (RFC 8941 §3.3.3). Bytes other than visible ASCII and spaces become question marks.
    private static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [0x22]
        for byte in text.utf8 {
            if byte == 0x22 || byte == 0x5C { bytes.append(0x5C) }
            bytes.append(byte >= 0x20 && byte < 0x7F ? byte : UInt8(ascii: "?"))
        }
        bytes.append(0x22)
        return String(decoding: bytes, as: UTF8.self)
    }
}
