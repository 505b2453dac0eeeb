import MartletWire

/// What a cache did so far, in numbers that agree with the ledger of its servers.
///
/// Each request that ends counts once, by what answered it. Those that reached a server are ``validated``, ``misses``,
/// ``bypasses`` and ``revalidations``, and those of ``staleOnErrors`` whose server answered with an error.
package struct CacheStatistics: Equatable, Sendable {
    /// What came of a request.
    package enum Outcome: Equatable, Sendable {
        /// A fresh stored response answered.
        case hit
        /// A stale stored response answered without waiting for the network.
        case staleHit
        /// The network said that the stored response is still good.
        case validated
        /// The network's response answered.
        case miss
        /// A stored response stood in for an error.
        case staleOnError
        /// The cache had no part in it.
        case bypass
        /// The transfer of another request answered.
        case shared
        /// Nothing might answer but the cache, and it had no response.
        case unsatisfiable
    }

    /// Requests answered by fresh stored responses.
    package private(set) var hits: UInt64 = 0
    /// Requests answered by stale stored responses, without waiting.
    package private(set) var staleHits: UInt64 = 0
    /// Requests answered by stored responses after a 304.
    package private(set) var validated: UInt64 = 0
    /// Requests answered by the network.
    package private(set) var misses: UInt64 = 0
    /// Requests answered by stored responses in place of errors.
    package private(set) var staleOnErrors: UInt64 = 0
    /// Requests that the cache had no part in.
    package private(set) var bypasses: UInt64 = 0
    /// Requests answered by the transfer of another.
    package private(set) var shared: UInt64 = 0
    /// Requests that got 504 without a network.
    package private(set) var unsatisfiable: UInt64 = 0
    /// Validations behind responses that were served stale.
    package private(set) var revalidations: UInt64 = 0
    /// Responses stored.
    package private(set) var stores: UInt64 = 0
    /// Responses evicted for want of room.
    package private(set) var evictions: UInt64 = 0
    /// Stored responses removed because they were out of date or damaged.
    package private(set) var removals: UInt64 = 0
    /// Bytes of bodies delivered from the cache.
    package private(set) var bytesServed: UInt64 = 0
    /// Bytes of bodies stored.
    package private(set) var bytesStored: UInt64 = 0

    /// Nothing yet.
    package init() {}

    /// Counts what came of a request.
    package mutating func count(_ outcome: Outcome) {
        switch outcome {
        case .hit: hits &+= 1
        case .staleHit: staleHits &+= 1
        case .validated: validated &+= 1
        case .miss: misses &+= 1
        case .staleOnError: staleOnErrors &+= 1
        case .bypass: bypasses &+= 1
        case .shared: shared &+= 1
        case .unsatisfiable: unsatisfiable &+= 1
        }
    }

    /// Counts a validation behind a response that was served stale.
    package mutating func countRevalidation() { revalidations &+= 1 }

    /// Counts a stored response by the bytes of its body.
    package mutating func countStore(byteCount: UInt64) {
        stores &+= 1
        bytesStored &+= byteCount
    }

    /// Counts removed responses.
    package mutating func countRemovals(_ number: UInt64) { removals &+= number }

    /// Counts bytes delivered from the cache.
    package mutating func countServed(byteCount: UInt64) { bytesServed &+= byteCount }
}

/// What a cache did with a request, for the `Cache-Status` field of its response (RFC 9211).
package struct CacheStatus: Equatable, Sendable {
    /// Why a request went on to the network (RFC 9211 §2.2).
    package enum Forwarding: String, Equatable, Sendable {
        /// The cache was told to have no part in it.
        case bypass
        /// The method is never answered from the cache.
        case method
        /// Nothing is stored for the URL.
        case uriMiss = "uri-miss"
        /// What is stored was chosen by other request fields.
        case varyMiss = "vary-miss"
        /// Something is stored, but must not be used.
        case miss
        /// What is stored is fresh, but the request asks for the network.
        case request
        /// What is stored is stale.
        case stale
    }

    /// The name of this cache in the field; unless it is a token, it is written as a string.
    package var name: String
    /// Whether the stored response answered without the network.
    package var isHit: Bool
    /// Why it went to the network; nil if it did not.
    package var forwarding: Forwarding?
    /// The status of the network's response.
    package var forwardStatus: Int?
    /// For how many seconds the response is fresh; negative for how long it has been stale.
    package var timeToLive: Int64?
    /// Whether the network's response was stored.
    package var isStored: Bool
    /// Whether the network's response was shared with other requests.
    package var isCollapsed: Bool
    /// What it is found by. It may hold what nobody else should see, and so it is nil unless set.
    package var key: String?
    /// Anything else that helps to see why.
    package var detail: String?

    /// What happened.
    package init(
        name: String = "martlet", isHit: Bool = false, forwarding: Forwarding? = nil,
        forwardStatus: Int? = nil,
        timeToLive: Int64? = nil, isStored: Bool = false, isCollapsed: Bool = false, key: String? = nil,
        detail: String? = nil
    ) {
        self.name = name
        self.isHit = isHit
        self.forwarding = forwarding
        self.forwardStatus = forwardStatus
        self.timeToLive = timeToLive
        self.isStored = isStored
        self.isCollapsed = isCollapsed
        self.key = key
        self.detail = detail
    }

    /// Its member of the field: a structured item with parameters (RFC 9211 §2, RFC 8941 §3.3).
    package var text: String {
        let start = name.utf8.first ?? 0
        let isToken = (start | 0x20) &- 0x61 < 26 && name.utf8.allSatisfy(ByteClass.isToken)
        var text = isToken ? name : CacheStatus.quoted(name)
        if isHit { text += "; hit" }
        if let forwarding { text += "; fwd=\(forwarding.rawValue)" }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if let timeToLive {
            text += "; ttl=\(min(max(timeToLive, -999_999_999_999_999), 999_999_999_999_999))"
        }
        if isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        if let key { text += "; key=\(CacheStatus.quoted(key))" }
        if let detail { text += "; detail=\(CacheStatus.quoted(detail))" }
        return text
    }

    /// A string of RFC 8941: visible ASCII and spaces; other bytes become question marks.
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
