package import MartletWire

/// What a cache must know of a request. It never changes, and is one reference: all that decide about it get it.
package final class CacheRequest: Sendable {
    /// The method, in the case it is sent.
    package let method: String
    /// What its response is found by.
    package let key: CacheKey
    /// The fields as they are sent, with cookies and credentials, but without those that the cache itself adds.
    package let fields: FieldBlock
    /// How it uses the cache.
    package let mode: CacheMode
    /// Makes something of a secret field's value that may be written to disk and still tells two of them apart: a keyed
    /// digest. Without it a response that varies with a secret is not stored.
    package let conceal: (@Sendable (String) -> String)?
    /// The directives of its fields.
    package let control: CacheControl
    /// Which of the fields that answers depend on it has.
    private let marks: RequestMarks

    /// A request.
    package init(
        method: String, key: CacheKey, fields: FieldBlock, mode: CacheMode = .standard,
        conceal: (@Sendable (String) -> String)? = nil
    ) {
        self.method = method
        self.key = key
        self.fields = fields
        self.mode = mode
        self.conceal = conceal
        marks = RequestMarks(fields)
        control = marks.contains(.control) ? CacheControl(request: fields) : CacheControl()
    }

    /// Whether stored responses may answer it: GET and HEAD.
    var isLookedUp: Bool { method == "GET" || method == "HEAD" }
    /// Whether it, or its mode, asks that no trace be left of it.
    package var isNoStore: Bool { mode == .noStore || control.isNoStore }
    /// The fields in which its mode speaks to the caches on the way: `Cache-Control: no-store` or `no-cache`. None where the
    /// caller speaks to them: what it says stands as it is.
    package var fieldsForOthers: FieldBlock {
        guard !fields.contains("Cache-Control") else { return FieldBlock() }
        return switch mode {
        case .noStore: FieldBlock([("Cache-Control", "no-store")])
        case .reload where isLookedUp: FieldBlock([("Cache-Control", "no-cache")])
        default: FieldBlock()
        }
    }
    /// Whether it has credentials for the origin (RFC 9111 §3.5).
    package var isAuthorized: Bool { marks.contains(.authorization) }
    /// Whether it asks for parts.
    var hasRange: Bool { marks.contains(.range) }
    /// Whether it names states that must hold for it to be done, which the origin alone can tell (RFC 9111 §4.3.2).
    var hasOriginPrecondition: Bool { !marks.isDisjoint(with: .originPreconditions) }
    /// Whether it was made conditional by the caller: such a request is sent as it is.
    package var isConditional: Bool { !marks.isDisjoint(with: .conditions) }
    /// Whether nothing but the cache may answer it.
    package var isOffline: Bool { mode == .onlyIfCached || control.isOnlyIfCached }
}

/// Which of the fields that answers depend on a request has, found in one pass over all of them: most requests have none,
/// and are asked for each of them.
struct RequestMarks: OptionSet, Sendable {
    let rawValue: UInt8

    init(rawValue: UInt8) { self.rawValue = rawValue }

    static let authorization = RequestMarks(rawValue: 1)
    static let range = RequestMarks(rawValue: 2)
    static let ifMatch = RequestMarks(rawValue: 4)
    static let ifNoneMatch = RequestMarks(rawValue: 8)
    static let ifModifiedSince = RequestMarks(rawValue: 16)
    static let ifUnmodifiedSince = RequestMarks(rawValue: 32)
    static let ifRange = RequestMarks(rawValue: 64)
    /// `Cache-Control` or `Pragma`.
    static let control = RequestMarks(rawValue: 128)

    /// Conditions that the origin alone can tell of (RFC 9111 §4.3.2).
    static let originPreconditions: RequestMarks = [.ifMatch, .ifUnmodifiedSince]
    /// All conditions.
    static let conditions: RequestMarks = [
        .ifMatch, .ifUnmodifiedSince, .ifNoneMatch, .ifModifiedSince, .ifRange,
    ]

    /// Looks at all fields of a request.
    init(_ fields: FieldBlock) {
        self = []
        for index in fields.indices {
            let name = fields.name(at: index)
            switch name.count {
            case 5: add(.range, "range", name)
            case 6: add(.control, "pragma", name)
            case 8:
                add(.ifMatch, "if-match", name)
                add(.ifRange, "if-range", name)
            case 13:
                add(.authorization, "authorization", name)
                add(.ifNoneMatch, "if-none-match", name)
                add(.control, "cache-control", name)
            case 17: add(.ifModifiedSince, "if-modified-since", name)
            case 19: add(.ifUnmodifiedSince, "if-unmodified-since", name)
            default: break
            }
        }
    }

    private mutating func add(_ mark: RequestMarks, _ wanted: String, _ name: ArraySlice<UInt8>) {
        if ByteClass.equalsIgnoringCase(name, wanted.utf8.span) { insert(mark) }
    }
}
