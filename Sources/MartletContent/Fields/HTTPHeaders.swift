public import HTTPTypes

/// Header fields for a request, written as a literal with names and values:
///
/// ```swift
/// let page = try await session.get(url, headers: ["X-Trace": id, .ifNoneMatch: etag, .accept: "text/csv"])
/// ```
///
/// The order and repeated fields are preserved. A name is invalid if it is not a token (RFC 9110 §5.1), and a value if
/// it contains a line break, a NUL or another control character except a tab. With an invalid field, the call throws an
/// `HTTPError` with the code `.invalidHeader` before anything is sent.
///
/// In contrast, `HTTPFields`, the type of received fields and of an `HTTPRequest`, replaces such characters by spaces.
public struct HTTPHeaders: Hashable, Sendable {
    /// The valid fields, in order.
    package var fields: HTTPFields
    /// The fields that cannot be sent, in the order of their addition.
    private var rejections: [Rejection] = []

    /// A name or a value that cannot be sent. The value is not stored: it may be a secret.
    private struct Rejection: Hashable, Sendable {
        let name: String
        let reason: String
    }

    /// Creates an empty list of fields.
    public init() { fields = HTTPFields() }

    /// Creates a list from the fields of a response or of another request.
    public init(_ fields: HTTPFields) { self.fields = fields }

    /// Creates a list from the fields of a dictionary, in the order of their names.
    public init(_ fields: [String: String]) {
        self.init()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { append(Name(name), value) }
    }

    /// The value of the field with a name. Several values are joined by commas, those of `Cookie` by semicolons.
    /// Setting it replaces all fields of that name; `nil` removes them.
    public subscript(name: HTTPField.Name) -> String? {
        get { fields[name] }
        set { self[name.rawName] = newValue }
    }

    /// The value of the field with a name, given as a ``Name``; otherwise like the other subscripts.
    @_disfavoredOverload public subscript(name: Name) -> String? {
        get { self[name.text] }
        set { self[name.text] = newValue }
    }

    /// The value of the field with a name, given as a string; otherwise like the other subscripts.
    public subscript(name: String) -> String? {
        get { fields[name] }
        set {
            rejections.removeAll { $0.name.lowercased() == name.lowercased() }
            let parsed = HTTPField.Name(name)
            if let newValue, let parsed, HTTPHeaders.rejection(of: name, parsed, newValue) == nil,
                fields.count < HTTPHeaders.countLimit || fields.contains(parsed)
            {
                // One field also for `Cookie`, which the other subscript of `HTTPFields` splits into any number of fields.
                fields[values: parsed] = [newValue]
            } else {
                if let parsed { fields[parsed] = nil }
                if let newValue { append(name, newValue, parsed) }
            }
        }
    }

    /// Adds a field at the end. Existing fields of the same name are not removed.
    public mutating func append(_ name: Name, _ value: String) { append(name.text, value, name.name) }

    /// Adds a field at the end. Existing fields of the same name are not removed.
    public mutating func append(_ field: HTTPField) {
        guard fields.count < HTTPHeaders.countLimit else {
            let reason = "is one of more than \(HTTPHeaders.countLimit)"
            return rejections.append(Rejection(name: field.name.rawName, reason: reason))
        }
        fields.append(field)
    }

    private mutating func append(_ text: String, _ value: String, _ name: HTTPField.Name?) {
        if let reason = HTTPHeaders.rejection(of: text, name, value) {
            rejections.append(Rejection(name: text, reason: reason))
        } else if let name {
            append(HTTPField(name: name, value: value))
        }
    }

    /// The maximum number of fields; `HTTPFields` traps at 65,535.
    private static let countLimit = 10_000

    /// Returns the reason why a field cannot be sent; `nil` if it can be.
    private static func rejection(of text: String, _ name: HTTPField.Name?, _ value: String) -> String? {
        guard name != nil else {
            let isInvalid = { (byte: UInt8) in byte >= 0x80 || HTTPField.Name(String(UnicodeScalar(byte))) == nil }
            return text.isEmpty ? "has no name" : rejection(of: text, "name", isInvalid)
        }
        return rejection(of: value, "value") { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }
    }

    private static func rejection(of text: String, _ part: String, _ isInvalid: (UInt8) -> Bool) -> String? {
        guard let (offset, byte) = text.utf8.enumerated().first(where: { isInvalid($0.element) }) else { return nil }
        let names: [UInt8: String] = [
            0x00: "NUL, ", 0x0A: "line feed, ", 0x0D: "carriage return, ", 0x20: "space, ", 0x3A: "colon, ",
        ]
        let digits = String(byte, radix: 16, uppercase: true)
        let number = "\(names[byte] ?? "")0x\(digits.count == 1 ? "0" : "")\(digits)"
        return "has an invalid byte in its \(part) (\(number) at position \(offset))"
    }

    /// Whether the list has no fields, valid or not.
    public var isEmpty: Bool { fields.isEmpty && rejections.isEmpty }

    /// Whether there is a field with a name.
    public func contains(_ name: HTTPField.Name) -> Bool { fields.contains(name) }

    /// A description of the first invalid field, without its value; `nil` without one.
    package var rejection: String? {
        rejections.first.map { rejection in
            // A name may contain any characters: it is truncated, and its control characters are shown as escapes.
            let name = String(rejection.name.prefix(64)).debugDescription.dropFirst().dropLast()
            return "the header field “\(name)” \(rejection.reason)"
        }
    }

    /// Adds the fields whose names are not set yet.
    package mutating func fill(from other: HTTPFields) {
        for field in other where !fields.contains(field.name) { append(field) }
    }

    /// Adds the fields whose names are not set yet, and the invalid fields.
    package mutating func fill(from other: HTTPHeaders) {
        fill(from: other.fields)
        rejections += other.rejections
    }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral, Sequence {
    /// Creates fields in the order of the literal. A name may be repeated, and a field that is `nil` is omitted.
    public init(dictionaryLiteral elements: (Name, String?)...) {
        self.init()
        for case let (name, value?) in elements { append(name, value) }
    }

    /// Returns an iterator over the valid fields, in order.
    public func makeIterator() -> IndexingIterator<HTTPFields> { fields.makeIterator() }
}

extension HTTPFields {
    /// The fields without secrets, which are sent to other origins, too.
    package static let nonSecretNames: Set<HTTPField.Name> = [.accept, .acceptLanguage, .acceptEncoding, .userAgent]

    /// The names of the fields that were added to others or changed, and that may be secrets.
    package func secretNames(addedTo others: HTTPFields) -> Set<HTTPField.Name> {
        Set(map(\.name)).subtracting(HTTPFields.nonSecretNames).filter { self[fields: $0] != others[fields: $0] }
    }
}

extension HTTPHeaders: Codable {
    /// Decodes the fields in the form of `HTTPFields`.
    public init(from decoder: any Decoder) throws { self.init(try HTTPFields(from: decoder)) }

    /// Encodes the fields in the form of `HTTPFields`.
    /// - Throws: `EncodingError.invalidValue` if a field cannot be sent.
    public func encode(to encoder: any Encoder) throws {
        if let rejection {
            throw EncodingError.invalidValue(self, .init(codingPath: encoder.codingPath, debugDescription: rejection))
        }
        try fields.encode(to: encoder)
    }
}

extension HTTPHeaders: CustomStringConvertible, CustomReflectable {
    /// The names of the fields. Values are omitted, because they may be secrets.
    public var description: String { "\(fields.map(\.name.rawName))" }
    /// The mirror, with the same content as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["names": description]) }
}

extension HTTPHeaders {
    /// The name of a field, as a literal or one of the constants for common request fields.
    public struct Name: Sendable, ExpressibleByStringInterpolation {
        fileprivate let text: String
        /// The parsed name; `nil` if the text is not a token.
        fileprivate let name: HTTPField.Name?

        /// Creates a name. With an invalid name the call throws an `HTTPError` with the code `.invalidHeader`.
        public init(stringLiteral text: String) { self.init(text) }

        /// Creates a name. With an invalid name the call throws an `HTTPError` with the code `.invalidHeader`.
        public init(_ text: String) {
            self.text = text
            name = HTTPField.Name(text)
        }

        /// Creates a name from an `HTTPField.Name` of the package HTTPTypes.
        public init(_ name: HTTPField.Name) {
            text = name.rawName
            self.name = name
        }
    }
}

// The common request fields.
extension HTTPHeaders.Name {
    /// The name of the `Accept` field.
    public static var accept: Self { Self(.accept) }
    /// The name of the `Accept-Encoding` field.
    public static var acceptEncoding: Self { Self(.acceptEncoding) }
    /// The name of the `Accept-Language` field.
    public static var acceptLanguage: Self { Self(.acceptLanguage) }
    /// The name of the `Authorization` field.
    public static var authorization: Self { Self(.authorization) }
    /// The name of the `Cache-Control` field.
    public static var cacheControl: Self { Self(.cacheControl) }
    /// The name of the `Connection` field.
    public static var connection: Self { Self(.connection) }
    /// The name of the `Content-Disposition` field.
    public static var contentDisposition: Self { Self(.contentDisposition) }
    /// The name of the `Content-Encoding` field.
    public static var contentEncoding: Self { Self(.contentEncoding) }
    /// The name of the `Content-Language` field.
    public static var contentLanguage: Self { Self(.contentLanguage) }
    /// The name of the `Content-Length` field.
    public static var contentLength: Self { Self(.contentLength) }
    /// The name of the `Content-Type` field.
    public static var contentType: Self { Self(.contentType) }
    /// The name of the `Cookie` field.
    public static var cookie: Self { Self(.cookie) }
    /// The name of the `Expect` field.
    public static var expect: Self { Self(.expect) }
    /// The name of the `Host` field.
    public static var host: Self { Self("Host") }
    /// The name of the `Idempotency-Key` field.
    public static var idempotencyKey: Self { Self("Idempotency-Key") }
    /// The name of the `If-Match` field.
    public static var ifMatch: Self { Self(.ifMatch) }
    /// The name of the `If-Modified-Since` field.
    public static var ifModifiedSince: Self { Self(.ifModifiedSince) }
    /// The name of the `If-None-Match` field.
    public static var ifNoneMatch: Self { Self(.ifNoneMatch) }
    /// The name of the `If-Range` field.
    public static var ifRange: Self { Self(.ifRange) }
    /// The name of the `If-Unmodified-Since` field.
    public static var ifUnmodifiedSince: Self { Self(.ifUnmodifiedSince) }
    /// The name of the `Origin` field.
    public static var origin: Self { Self(.origin) }
    /// The name of the `Proxy-Authorization` field.
    public static var proxyAuthorization: Self { Self(.proxyAuthorization) }
    /// The name of the `Range` field.
    public static var range: Self { Self(.range) }
    /// The name of the `Referer` field.
    public static var referer: Self { Self(.referer) }
    /// The name of the `TE` field.
    public static var te: Self { Self(.te) }
    /// The name of the `Trailer` field.
    public static var trailer: Self { Self(.trailer) }
    /// The name of the `Transfer-Encoding` field.
    public static var transferEncoding: Self { Self(.transferEncoding) }
    /// The name of the `User-Agent` field.
    public static var userAgent: Self { Self(.userAgent) }
}

extension HTTPFields {
    /// The value of the field with a name in any case, such as `response.headers["X-Name"]`. Several values are joined
    /// by commas, those of `Cookie` by semicolons. `nil` without such a field, and for an invalid name.
    public subscript(name: String) -> String? { HTTPField.Name(name).flatMap { self[$0] } }
}
