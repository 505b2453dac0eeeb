package import MartletWire

/// The properties of a request that a cache needs. Immutable, and shared by all rules that decide about the request.
package final class CacheRequest: Sendable {
    /// The method, in the case it is sent.
    package let method: String
    package let key: CacheKey
    /// The fields as they are sent, with cookies and credentials, but without those that the cache adds.
    package let fields: FieldBlock
    /// The use that the request makes of the cache.
    package let mode: CacheMode
    /// Computes the digest of a secret field value; with `nil`, responses that vary with a secret are not stored.
    package let keyedDigest: (@Sendable (String) -> String)?
    package let control: CacheControl
    /// The fields of the request that the cache has to consider.
    private let marks: RequestFieldSet

    package init(
        method: String, key: CacheKey, fields: FieldBlock, mode: CacheMode = .standard,
        keyedDigest: (@Sendable (String) -> String)? = nil
    ) {
        (self.method, self.key, self.fields, self.mode, self.keyedDigest) = (method, key, fields, mode, keyedDigest)
        marks = RequestFieldSet(fields)
        control = marks.contains(.control) ? CacheControl(request: fields) : CacheControl()
    }

    /// Whether a stored response may be served: for GET or HEAD.
    var isLookedUp: Bool { method == "GET" || method == "HEAD" }
    /// Whether the request or its mode forbids the cache to store anything.
    package var isNoStore: Bool { mode == .noStore || control.isNoStore }
    /// Whether the response may be stored and shared: for GET without `no-store`, a range or conditions.
    package var isShareable: Bool { method == "GET" && !isNoStore && !hasRange && !isConditional }
    /// The `Cache-Control` field that the mode adds for other caches; none if the caller has set one.
    package var fieldsForOthers: FieldBlock {
        guard !fields.contains("Cache-Control") else { return FieldBlock() }
        return switch mode {
        case .noStore: FieldBlock([("Cache-Control", "no-store")])
        case .reload where isLookedUp: FieldBlock([("Cache-Control", "no-cache")])
        default: FieldBlock()
        }
    }
    /// Whether the request has credentials for the origin (RFC 9111 §3.5).
    package var isAuthorized: Bool { marks.contains(.authorization) }
    var hasRange: Bool { marks.contains(.range) }
    /// Whether the request has preconditions that only the origin can evaluate (RFC 9111 §4.3.2).
    var hasOriginPrecondition: Bool { !marks.isDisjoint(with: .originPreconditions) }
    /// Whether the caller made the request conditional. It is then sent unchanged.
    package var isConditional: Bool { !marks.isDisjoint(with: .conditions) }
    /// Whether only the cache may respond.
    package var isOffline: Bool { mode == .onlyIfCached || control.isOnlyIfCached }
}

/// The fields of a request that a cache has to consider. One pass finds all of them, because most requests have none.
struct RequestFieldSet: OptionSet, Sendable {
    let rawValue: UInt8

    static let authorization = RequestFieldSet(rawValue: 1)
    static let range = RequestFieldSet(rawValue: 2)
    static let ifMatch = RequestFieldSet(rawValue: 4)
    static let ifNoneMatch = RequestFieldSet(rawValue: 8)
    static let ifModifiedSince = RequestFieldSet(rawValue: 16)
    static let ifUnmodifiedSince = RequestFieldSet(rawValue: 32)
    static let ifRange = RequestFieldSet(rawValue: 64)
    /// The field `Cache-Control` or `Pragma`.
    static let control = RequestFieldSet(rawValue: 128)
    /// Preconditions that only the origin can evaluate (RFC 9111 §4.3.2).
    static let originPreconditions: RequestFieldSet = [.ifMatch, .ifUnmodifiedSince]
    static let conditions = originPreconditions.union([.ifNoneMatch, .ifModifiedSince, .ifRange])
}

extension RequestFieldSet {
    /// Finds the fields of a request.
    init(_ fields: FieldBlock) {
        self = []
        for index in fields.indices {
            let name = fields.name(at: index)
            func add(_ mark: RequestFieldSet, _ wanted: String) {
                if ByteClass.equalsIgnoringCase(name, wanted.utf8.span) { insert(mark) }
            }
            switch name.count {
            case 5: add(.range, "range")
            case 6: add(.control, "pragma")
            case 8:
                add(.ifMatch, "if-match")
                add(.ifRange, "if-range")
            case 13:
                add(.authorization, "authorization")
                add(.ifNoneMatch, "if-none-match")
                add(.control, "cache-control")
            case 17: add(.ifModifiedSince, "if-modified-since")
            case 19: add(.ifUnmodifiedSince, "if-unmodified-since")
            default: break
            }
        }
    }
}
