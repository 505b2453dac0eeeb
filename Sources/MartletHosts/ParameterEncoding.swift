public import MartletCore
public import FoundationEssentials

/// The format of the parameters of a request, and their place: the URL or the body.
///
/// The parameters of GET, HEAD and DELETE, and of a request with a separate body, are appended to the query of the URL.
/// They follow the rules of ``query``, whatever the format of bodies. For other methods the parameters are the body: a
/// form, JSON or a property list, with the matching `Content-Type` unless the request has its own.
///
/// In a query and a form, a host writes the names of an `Encodable` by the key strategy of its ``HTTPHost/encoder``. It
/// writes dates by the encoder's date strategy if ``QueryEncoding/dates`` of ``query`` is the default. The encoder does
/// not change the names of literals and dictionaries.
public struct ParameterEncoding: Sendable {
    package enum Format: Sendable {
        case form
        /// JSON, with an encoder; `nil` for the host's encoder, if it is set.
        case json(JSONEncoder?)
        case propertyList(PropertyListFormat)
    }

    package let format: Format
    /// The rules for queries and forms.
    public var query = QueryEncoding()
    /// The methods with parameters in the URL; GET, HEAD and DELETE by default.
    public var methodsWithParametersInURL: Set<HTTPRequest.Method> = [.get, .head, .delete]

    private init(_ format: Format) { self.format = format }

    /// Forms (`application/x-www-form-urlencoded`), written like queries.
    public static let form = ParameterEncoding(.form)
    /// JSON (`application/json`), written by the encoder of the host or its session if one is set; otherwise with
    /// sorted names and dates in ISO 8601.
    public static let json = ParameterEncoding(.json(nil))

    /// Creates JSON parameters with an encoder, which must not be changed afterwards.
    public static func json(_ encoder: JSONEncoder) -> ParameterEncoding { ParameterEncoding(.json(encoder)) }

    /// Creates property list parameters (`application/x-plist`).
    public static func propertyList(_ format: PropertyListFormat) -> ParameterEncoding {
        ParameterEncoding(.propertyList(format))
    }

    /// Returns the same encoding with changes.
    public func with(_ change: (inout ParameterEncoding) -> Void) -> ParameterEncoding {
        var changed = self
        change(&changed)
        return changed
    }

    /// Returns parameters as a body; ``HTTPBody/none`` if they are null.
    /// - Throws: A ``ParameterError``; the errors of the value's own encoding and of ``QueryEncoding/serializer``.
    public func body(for parameters: some Encodable) throws -> HTTPBody { try body(for: parameters, by: BodyEncoder()) }

    /// Returns parameters as a body.
    /// - Parameter own: The encoder of a host, for ``json`` and for the names and dates of a form.
    func body(for parameters: some Encodable, by own: @autoclosure () -> BodyEncoder) throws -> HTTPBody {
        if ParameterEncoding.isNull(parameters) { return .none }
        let own = own()
        switch format {
        case .form:
            guard let form = try text(of: parameters, by: own) else { return .none }
            return HTTPBody(.bytes(Array(form.utf8)), contentType: "application/x-www-form-urlencoded")
        case .json(let encoder):
            try (parameters as? ParameterValue)?.check()
            let encoder = encoder.map { .json($0) } ?? (own.isChosen ? own : .json(dates: .iso8601))
            return HTTPBody(.bytes(try encoder.bytes(of: parameters)), contentType: "application/json")
        case .propertyList(let format):
            try (parameters as? ParameterValue)?.check(allowsNull: false)
            return try HTTPBody.encodingPropertyList(parameters, format: format)
        }
    }

    /// Returns a URL with parameters appended to its query; the unchanged URL if they are null or empty.
    /// - Throws: The errors of ``body(for:)``; an ``HTTPURL/ParseError`` if the URL becomes too long.
    public func url(_ url: HTTPURL, adding parameters: some Encodable) throws -> HTTPURL {
        try self.url(url, adding: parameters, by: BodyEncoder())
    }

    func url(_ url: HTTPURL, adding parameters: some Encodable, by own: @autoclosure () -> BodyEncoder) throws
        -> HTTPURL
    {
        if ParameterEncoding.isNull(parameters) { return url }
        return try text(of: parameters, by: own()).map { try url.appending(encodedQuery: $0) } ?? url
    }

    /// Returns parameters as a query or a form; `nil` if they are null.
    private func text(of parameters: some Encodable, by own: BodyEncoder) throws -> String? {
        var (query, dates) = (query, JSONEncoder.DateEncodingStrategy.deferredToDate)
        if own.isChosen, query.dates == .iso8601 {
            dates = own.dateStrategy
            // The tree's encoder calls a closure. Seconds since 2001 are unusual in a query: ISO 8601 is used.
            let form = JSONForm.Dates(dates).flatMap { QueryEncoding.Dates(rawValue: $0.rawValue) }
            query.dates = form ?? query.dates
        }
        let tree = try ParameterValue(encoding: parameters, keys: own.keyStrategy, dates: dates)
        return tree == .null ? nil : try query.encoded(tree)
    }

    /// Whether a value is null or `nil`, which means no parameters.
    private static func isNull(_ parameters: some Encodable) -> Bool {
        if let tree = parameters as? ParameterValue { return tree == .null }
        return (parameters as? any OptionalParameters)?.isNone ?? false
    }
}

/// An optional value.
private protocol OptionalParameters { var isNone: Bool { get } }

extension Optional: OptionalParameters { fileprivate var isNone: Bool { self == nil } }

extension HTTPURL {
    /// Returns the URL with parameters appended to its query, joined by `&`.
    /// - Parameters:
    ///   - parameters: The values by name; literals may have mixed kinds.
    ///   - encoding: The rules of the query.
    /// - Throws: A ``ParameterError``; a ``ParseError`` if the URL is too long; the errors of a serializer.
    public func appending(parameters: ParameterValue, encoding: QueryEncoding = QueryEncoding()) throws -> HTTPURL {
        try appending(encodedQuery: try encoding.encoded(parameters))
    }

    /// Returns the URL with the parameters of any `Encodable`; otherwise like the other function of this name.
    public func appending(parameters: some Encodable, encoding: QueryEncoding = QueryEncoding()) throws -> HTTPURL {
        try appending(parameters: try ParameterValue(encoding: parameters), encoding: encoding)
    }
}

extension HTTPBody {
    /// Creates a body from a value as a property list (`application/x-plist`), encoded immediately. If encoding fails,
    /// the call throws the encoder's error before anything is sent. The value must be an array or a dictionary.
    public static func propertyList(_ value: some Encodable, format: PropertyListFormat = .xml) -> HTTPBody {
        do { return try encodingPropertyList(value, format: format) } catch {
            return HTTPBody(.failure(error), contentType: nil)
        }
    }

    static func encodingPropertyList(_ value: some Encodable, format: PropertyListFormat) throws -> HTTPBody {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format == .xml ? .xml : .binary
        return HTTPBody(.bytes(Array(try encoder.encode(value))), contentType: "application/x-plist")
    }
}

/// The format of a property list.
public enum PropertyListFormat: String, Hashable, Sendable, CaseIterable, Codable {
    /// The XML format.
    case xml
    /// Apple's binary format.
    case binary
}
