import MartletWire

/// What a request for a representation gets, by its preconditions and its range (RFC 9110 §13.2.2, §14.2).
enum ContentDecision: Equatable {
    /// 200 with all of it.
    case whole
    /// 206 with a part of so many bytes in total.
    case part(Range<UInt64>, total: UInt64)
    /// 304.
    case notModified
    /// 412.
    case preconditionFailed
    /// 416.
    case unsatisfiable(total: UInt64)

    /// What of a request matters.
    struct Request {
        let method: String
        let fields: OriginFields
    }

    /// Decides.
    /// - Parameter length: The length; `nil` when no ranges are given.
    init(request: Request, entityTag: String?, lastModified: HTTPDate?, length: UInt64?) {
        let fields = request.fields
        let isRead = request.method == "GET" || request.method == "HEAD"
        if fields.contains("If-Match") {
            guard ContentDecision.matches(fields.values(of: "If-Match"), entityTag, strongly: true) else {
                self = .preconditionFailed
                return
            }
        } else if let limit = fields["If-Unmodified-Since"].flatMap({ HTTPDate($0) }), let lastModified,
            lastModified > limit
        {
            self = .preconditionFailed
            return
        }
        if fields.contains("If-None-Match") {
            if ContentDecision.matches(fields.values(of: "If-None-Match"), entityTag, strongly: false) {
                self = isRead ? .notModified : .preconditionFailed
                return
            }
        } else if isRead, let since = fields["If-Modified-Since"].flatMap({ HTTPDate($0) }), let lastModified,
            lastModified <= since
        {
            self = .notModified
            return
        }
        self = .whole
        guard request.method == "GET", let length,
            let field = fields["Range"].flatMap({ RangeField(parsing: $0) }),
            field.ranges.count == 1,
            ContentDecision.allowsRange(fields["If-Range"], entityTag, lastModified)
        else { return }
        if let range = field.resolved(in: length).first {
            self = .part(range, total: length)
        } else {
            self = .unsatisfiable(total: length)
        }
    }

    /// Whether a list of entity tags names one; `*` names any.
    private static func matches(_ values: [String], _ entityTag: String?, strongly: Bool) -> Bool {
        guard let entityTag else { return false }
        for value in values {
            for element in ElementList(Array(value.utf8)[...]) {
                let tag = String(decoding: element, as: UTF8.self)
                if tag == "*" { return true }
                if strongly ? isStrong(tag) && tag == entityTag : opaque(tag) == opaque(entityTag) {
                    return true
                }
            }
        }
        return false
    }

    private static func isStrong(_ tag: String) -> Bool { !tag.hasPrefix("W/") }

    private static func opaque(_ tag: String) -> Substring { isStrong(tag) ? tag[...] : tag.dropFirst(2) }

    /// Whether If-Range lets the range stand: it names exactly this version, by a strong validator (RFC 9110
    /// §13.1.5).
    private static func allowsRange(_ value: String?, _ entityTag: String?, _ lastModified: HTTPDate?) -> Bool
    {
        guard let value else { return true }
        if value.hasPrefix("\"") || value.hasPrefix("W/") { return isStrong(value) && value == entityTag }
        guard let lastModified, let date = HTTPDate(value) else { return false }
        return date == lastModified
    }
}
