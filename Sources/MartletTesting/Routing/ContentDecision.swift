public import FoundationEssentials
package import MartletWire

/// What a request for a representation gets, by its preconditions and its range (RFC 9110 §13.2.2, §14.2).
package enum ContentDecision: Equatable {
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

    /// Decides.
    /// - Parameter length: The length; `nil` when no ranges are given.
    package init(
        method: String, fields: OriginFields, entityTag: String?, lastModified: HTTPDate?, length: UInt64?
    ) {
        let isRead = method == "GET" || method == "HEAD"
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
        guard method == "GET", let length,
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

/// A representation with validators, as a file is: answers conditional requests and ranges by RFC 9110 §13
/// and §14.
///
/// Of a request for several ranges it sends the whole, which §14.2 allows.
public struct OriginContent: Sendable {
    /// The bytes; of a stream no ranges are given.
    public var body: OriginResponseBody
    /// Its media type.
    public var type: String
    /// Its entity tag with quotes, such as `"v1"` or `W/"v1"`; `nil` for none.
    public var entityTag: String?
    /// When it was changed last, to the second; `nil`: not told.
    public var lastModified: Date?
    /// Whether ranges are given.
    public var acceptsRanges = true
    /// Fields sent with it, also with a 304.
    public var fields = OriginFields()

    /// A representation.
    public init(
        body: OriginResponseBody, type: String = "application/octet-stream", entityTag: String? = nil,
        lastModified: Date? = nil
    ) {
        self.body = body
        self.type = type
        self.entityTag = entityTag
        self.lastModified = lastModified
    }

    /// The answer to a request for it.
    public func response(to request: OriginRequest) -> OriginResponse {
        let modified = lastModified.map {
            HTTPDate(secondsSinceEpoch: Int64($0.timeIntervalSince1970.rounded(.down)))
        }
        let length = isSliceable ? body.length : nil
        let decision = ContentDecision(
            method: request.method, fields: request.fields, entityTag: entityTag, lastModified: modified,
            length: acceptsRanges ? length : nil)
        var response = OriginResponse(fields: fields)
        if let entityTag { response.fields.append("ETag", entityTag) }
        if let modified { response.fields.append("Last-Modified", modified.text) }
        if acceptsRanges, length != nil { response.fields.append("Accept-Ranges", "bytes") }
        switch decision {
        case .notModified: response.status = 304
        case .preconditionFailed: response.status = 412
        case .whole:
            response.fields.append("Content-Type", type)
            response.body = body
        case .part(let range, let total):
            response.status = 206
            response.fields.append("Content-Type", type)
            response.fields.append("Content-Range", ContentRange.satisfied(range, total: total).text)
            response.body = body.slice(range)
        case .unsatisfiable(let total):
            response.status = 416
            response.fields.append("Content-Range", ContentRange.unsatisfied(total: total).text)
        }
        return response
    }

    private var isSliceable: Bool { if case .stream = body.content { false } else { true } }
}

extension OriginResponseBody {
    /// Some of the bytes; of a stream all of them.
    func slice(_ range: Range<UInt64>) -> OriginResponseBody {
        switch content {
        case .bytes(let bytes): .bytes(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        case .pattern(let offset, _):
            .pattern(range.upperBound - range.lowerBound, from: offset + range.lowerBound)
        case .file(let path, let whole):
            .file(path, range: whole.lowerBound + range.lowerBound..<whole.lowerBound + range.upperBound)
        case .stream: self
        }
    }
}

/// What an origin tells of a file's version.
public enum FileValidators: Sendable, Hashable {
    /// A strong entity tag and Last-Modified.
    case strong
    /// A weak entity tag and Last-Modified.
    case weak
    /// Last-Modified alone.
    case lastModifiedOnly
    /// Nothing.
    case none
}
