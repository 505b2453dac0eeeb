import MartletWire

/// Which of the fields that answers depend on a request has, found in one pass over all of them: most requests have none,
/// and are asked for each of them.
struct RequestMarks: OptionSet, Sendable {
    let rawValue: UInt8

    init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

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
