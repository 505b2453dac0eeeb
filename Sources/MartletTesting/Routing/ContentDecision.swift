public import FoundationEssentials
package import HTTPTypes
package import MartletWire

/// The response to a request for a representation, by its preconditions and its range (RFC 9110 §13.2.2, §14.2).
package enum ContentDecision: Equatable {
    /// 200 with the whole representation.
    case whole
    /// 206 with a range of a total number of bytes.
    case part(Range<UInt64>, total: UInt64)
    /// 304: the client has the current version.
    case notModified
    /// 412: a precondition failed.
    case preconditionFailed
    /// 416: the range is unsatisfiable.
    case unsatisfiable(total: UInt64)

    /// Decides by the validators and the length of the representation.
    /// - Parameter length: The length; `nil` if ranges are not supported.
    package init(
        method: HTTPRequest.Method, headers fields: OriginFields, entityTag: String?, lastModified: HTTPDate?,
        length: UInt64?
    ) {
        let isRead = method == .get || method == .head
        let entityTag = entityTag.flatMap { EntityTag(Array($0.utf8)[...]) }
        func date(_ name: String) -> HTTPDate? { fields[name].flatMap { HTTPDate($0) } }
        let isCurrent =
            if fields.contains("If-Match") {
                ContentDecision.matches(fields.values(of: "If-Match"), entityTag, strongly: true)
            } else if let limit = date("If-Unmodified-Since"), let lastModified { lastModified <= limit } else { true }
        let isKnown =
            if fields.contains("If-None-Match") {
                ContentDecision.matches(fields.values(of: "If-None-Match"), entityTag, strongly: false)
            } else if isRead, let since = date("If-Modified-Since"), let lastModified { lastModified <= since } else {
                false
            }
        if !isCurrent || isKnown && !isRead {
            self = .preconditionFailed
        } else if isKnown {
            self = .notModified
        } else if method == .get, let length, let field = fields["Range"].flatMap({ RangeField(parsing: $0) }),
            field.ranges.count == 1, ContentDecision.allowsRange(fields["If-Range"], entityTag, lastModified)
        {
            let range = field.resolved(in: length).first
            self = range.map { ContentDecision.part($0, total: length) } ?? .unsatisfiable(total: length)
        } else {
            self = .whole
        }
    }

    /// Whether a list of entity tags contains one; `*` matches every representation, also one without a tag (RFC 9110
    /// §13.1.1, §13.1.2).
    private static func matches(_ values: [String], _ entityTag: EntityTag?, strongly: Bool) -> Bool {
        values.flatMap { ElementList(Array($0.utf8)[...]) }.contains { element in
            if element.elementsEqual("*".utf8) { return true }
            guard let entityTag, let tag = EntityTag(element) else { return false }
            return strongly ? tag.matchesStrongly(entityTag) : tag.matchesWeakly(entityTag)
        }
    }

    /// Whether If-Range is missing or names exactly this version, by a strong validator (RFC 9110 §13.1.5).
    private static func allowsRange(_ value: String?, _ entityTag: EntityTag?, _ lastModified: HTTPDate?) -> Bool {
        guard let value else { return true }
        if let tag = EntityTag(Array(value.utf8)[...]) { return entityTag?.matchesStrongly(tag) == true }
        guard let lastModified, let date = HTTPDate(value) else { return false }
        return date == lastModified
    }
}

/// A representation with validators, such as a file. It handles conditional requests and ranges by RFC 9110 §13 and
/// §14.
///
/// The response to a request for several ranges is the whole representation, which §14.2 allows.
public struct OriginContent: Sendable {
    /// The body; a stream does not support ranges.
    public var body: OriginResponseBody
    /// The value of Content-Type.
    public var contentType: String
    /// The entity tag with quotes, such as `"v1"` or `W/"v1"`; `nil` for none.
    public var entityTag: String?
    /// The time of the last change, to the second; `nil` to omit it.
    public var lastModified: Date?
    /// Whether ranges are supported; with `false` a request for a range is a 200 with the whole body.
    public var acceptsRanges: Bool
    /// Additional header fields, which are also sent with a 304.
    public var headers = OriginFields()

    /// Creates a representation.
    public init(
        body: OriginResponseBody, contentType: String = "application/octet-stream", entityTag: String? = nil,
        lastModified: Date? = nil, acceptsRanges: Bool = true
    ) {
        (self.body, self.contentType, self.acceptsRanges) = (body, contentType, acceptsRanges)
        (self.entityTag, self.lastModified) = (entityTag, lastModified)
    }

    /// The response to a request for it.
    public func response(to request: OriginRequest) -> OriginResponse {
        let modified = lastModified.map { HTTPDate($0) }
        let length = acceptsRanges && !body.isStream ? body.length : nil
        var response = OriginResponse(headers: headers)
        if let entityTag { response.headers.append("ETag", entityTag) }
        if let modified { response.headers.append("Last-Modified", modified.text) }
        if length != nil { response.headers.append("Accept-Ranges", "bytes") }
        switch ContentDecision(
            method: request.method, headers: request.headers, entityTag: entityTag, lastModified: modified,
            length: length)
        {
        case .notModified: response.status = 304
        case .preconditionFailed: response.status = 412
        case .whole:
            response.headers.append("Content-Type", contentType)
            response.body = body
        case .part(let range, let total):
            response.status = 206
            response.headers.append("Content-Type", contentType)
            response.headers.append("Content-Range", ContentRange.satisfied(range, total: total).text)
            response.body = body.slice(range)
        case .unsatisfiable(let total):
            response.status = 416
            response.headers.append("Content-Range", ContentRange.unsatisfied(total: total).text)
        }
        return response
    }
}

extension HTTPDate {
    init(_ date: Date) { self.init(secondsSinceEpoch: Int64(date.timeIntervalSince1970.rounded(.down))) }
}

extension OriginResponseBody {
    var isStream: Bool { if case .stream = self { true } else { false } }

    /// A range of the bytes; the whole of a stream.
    fileprivate func slice(_ range: Range<UInt64>) -> OriginResponseBody {
        switch self {
        case .bytes(let bytes): .bytes(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        case .pattern(_, let offset): .pattern(range.upperBound - range.lowerBound, from: offset + range.lowerBound)
        case .file(let path, let whole):
            .file(path, range: whole.lowerBound + range.lowerBound..<whole.lowerBound + range.upperBound)
        case .stream: self
        }
    }
}

/// The validators of a file's version.
public enum FileValidators: Sendable, Hashable {
    /// A strong entity tag and Last-Modified.
    case strong
    /// A weak entity tag and Last-Modified.
    case weak
    /// Last-Modified, without an entity tag.
    case lastModifiedOnly
    /// Neither an entity tag nor Last-Modified.
    case none
}
