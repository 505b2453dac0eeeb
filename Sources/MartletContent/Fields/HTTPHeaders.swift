public import HTTPTypes

/// Header fields for a request, written as a literal with names and values:
///
/// ```swift
/// let page = try await session.get(url, headers: ["X-Trace": id, .accept: "application/json"])
/// ```
///
/// The order and repeated fields are kept. Nothing is repaired: a name that is not a token (RFC 9110 §5.1), and a value with a
/// line break, a NUL or another control character except a tab, are remembered, and the call throws an `HTTPError` with the
/// code `.invalidHeader` before anything is sent.
///
/// `HTTPFields`, the type of received fields and of an `HTTPRequest`, replaces such characters by spaces when a value is set.
public struct HTTPHeaders: Hashable, Sendable {
    /// The valid fields.
    package var fields: HTTPFields
    /// The fields that were rejected, in the order they were given.
    private var rejections: [Rejection] = []

    /// A name or a value that cannot be sent. The value is not stored: it may be a secret.
    private struct Rejection: Hashable, Sendable {
        let name: String
        let reason: String
    }

    /// No fields.
    public init() { fields = HTTPFields() }

    /// The fields of a response or of another request.
    public init(_ fields: HTTPFields) { self.fields = fields }

    /// The fields of a dictionary, in the order of their names.
    public init(_ fields: [String: String]) {
        self.init()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { append(Name(name), value) }
    }

    /// The value of the field with a name; several values are joined by commas, those of `Cookie` by semicolons. Setting it
    /// replaces all fields of that name; `nil` removes them.
    public subscript(name: HTTPField.Name) -> String? {
        get { fields[name] }
        set { self[name.rawName] = newValue }
    }

    /// The value of the field with a name given as a string; otherwise as the other subscript.
    public subscript(name: String) -> String? {
        get { HTTPField.Name(name).flatMap { fields[$0] } }
        set {
            rejections.removeAll { $0.name.lowercased() == name.lowercased() }
            let parsed = HTTPField.Name(name)
            if let newValue, let parsed, HTTPHeaders.rejection(of: name, parsed, newValue) == nil {
                fields[parsed] = newValue
            } else {
                if let parsed { fields[parsed] = nil }
                if let newValue { append(name, newValue, parsed) }
            }
        }
    }

    /// Adds a field at the end. Fields of the same name stay.
    public mutating func append(_ name: Name, _ value: String) { append(name.text, value, name.name) }

    /// Adds a field at the end. Fields of the same name stay.
    public mutating func append(_ field: HTTPField) { fields.append(field) }

    private mutating func append(_ text: String, _ value: String, _ name: HTTPField.Name?) {
        if let reason = HTTPHeaders.rejection(of: text, name, value) {
            rejections.append(Rejection(name: text, reason: reason))
        } else if let name {
            guard fields.count < HTTPHeaders.countLimit else {
                return rejections.append(Rejection(name: text, reason: "is one of more than \(HTTPHeaders.countLimit)"))
            }
            fields.append(HTTPField(name: name, value: value))
        }
    }

    /// The maximum number of fields; `HTTPFields` traps at 65,535.
    private static let countLimit = 10_000

    /// The reason why a field cannot be sent; `nil` if it can be.
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
        return "has a byte in its \(part) that HTTP does not allow there (\(number), at position \(offset))"
    }

    /// Whether there is no field, valid or not.
    public var isEmpty: Bool { fields.isEmpty && rejections.isEmpty }

    /// Whether there is a field with a name.
    public func contains(_ name: HTTPField.Name) -> Bool { fields.contains(name) }

    /// The first invalid field in words, without its value; `nil` without one.
    package var rejection: String? {
        rejections.first.map { rejection in
            // A name may be anything: it is shortened, and its control characters are shown as escapes.
            let name = String(rejection.name.prefix(64)).debugDescription.dropFirst().dropLast()
            return "the header field “\(name)” \(rejection.reason)"
        }
    }

    /// Adds the fields whose names are not set.
    package mutating func fill(from other: HTTPFields) {
        for field in other where !fields.contains(field.name) { fields.append(field) }
    }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral, Sequence {
    /// Fields in the order of the literal. A name may be repeated.
    public init(dictionaryLiteral elements: (Name, String)...) {
        self.init()
        for (name, value) in elements { append(name, value) }
    }

    /// Iterates over the valid fields, in order.
    public func makeIterator() -> IndexingIterator<HTTPFields> { fields.makeIterator() }
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
    /// The names of the fields. Values may be secrets.
    public var description: String { "\(fields.map(\.name.rawName))" }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["names": description]) }
}

extension HTTPHeaders {
    /// The name of a field, as a literal or one of the constants for common request fields.
    public struct Name: Sendable, ExpressibleByStringInterpolation {
        fileprivate let text: String
        /// The parsed name; `nil` if the text is not a token.
        fileprivate let name: HTTPField.Name?

        /// A name; an invalid one is reported by the call.
        public init(stringLiteral text: String) { self.init(text) }

        /// A name; an invalid one is reported by the call.
        public init(_ text: String) {
            self.text = text
            name = HTTPField.Name(text)
        }

        /// A name of HTTPTypes.
        public init(_ name: HTTPField.Name) {
            text = name.rawName
            self.name = name
        }
    }
}

// The common request fields.
extension HTTPHeaders.Name {
    /// `Accept`
    public static var accept: Self { Self(.accept) }
    /// `Accept-Encoding`
    public static var acceptEncoding: Self { Self(.acceptEncoding) }
    /// `Accept-Language`
    public static var acceptLanguage: Self { Self(.acceptLanguage) }
    /// `Authorization`
    public static var authorization: Self { Self(.authorization) }
    /// `Cache-Control`
    public static var cacheControl: Self { Self(.cacheControl) }
    /// `Connection`
    public static var connection: Self { Self(.connection) }
    /// `Content-Disposition`
    public static var contentDisposition: Self { Self(.contentDisposition) }
    /// `Content-Encoding`
    public static var contentEncoding: Self { Self(.contentEncoding) }
    /// `Content-Language`
    public static var contentLanguage: Self { Self(.contentLanguage) }
    /// `Content-Length`
    public static var contentLength: Self { Self(.contentLength) }
    /// `Content-Type`
    public static var contentType: Self { Self(.contentType) }
    /// `Cookie`
    public static var cookie: Self { Self(.cookie) }
    /// `Expect`
    public static var expect: Self { Self(.expect) }
    /// `Host`
    public static var host: Self { Self("Host") }
    /// `Idempotency-Key`
    public static var idempotencyKey: Self { Self("Idempotency-Key") }
    /// `If-Match`
    public static var ifMatch: Self { Self(.ifMatch) }
    /// `If-Modified-Since`
    public static var ifModifiedSince: Self { Self(.ifModifiedSince) }
    /// `If-None-Match`
    public static var ifNoneMatch: Self { Self(.ifNoneMatch) }
    /// `If-Range`
    public static var ifRange: Self { Self(.ifRange) }
    /// `If-Unmodified-Since`
    public static var ifUnmodifiedSince: Self { Self(.ifUnmodifiedSince) }
    /// `Origin`
    public static var origin: Self { Self(.origin) }
    /// `Proxy-Authorization`
    public static var proxyAuthorization: Self { Self(.proxyAuthorization) }
    /// `Range`
    public static var range: Self { Self(.range) }
    /// `Referer`
    public static var referer: Self { Self(.referer) }
    /// `TE`
    public static var te: Self { Self(.te) }
    /// `Trailer`
    public static var trailer: Self { Self(.trailer) }
    /// `Transfer-Encoding`
    public static var transferEncoding: Self { Self(.transferEncoding) }
    /// `User-Agent`
    public static var userAgent: Self { Self(.userAgent) }
}

extension HTTPFields {
    /// The value of the field with a name, in any case, as `response.headers["X-Name"]`; several values are joined by commas, those
    /// of `Cookie` by semicolons. `nil` without such a field, and for a text that is not a name.
    public subscript(name: String) -> String? { HTTPField.Name(name).flatMap { self[$0] } }
}
