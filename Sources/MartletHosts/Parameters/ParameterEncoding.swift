import MartletURL
public import MartletCore
public import HTTPTypes
public import FoundationEssentials

/// How the parameters of a request are written, and where: into its URL or its body.
///
/// Those of GET, HEAD and DELETE go into the URL, by the rules of ``query``, whatever the format of bodies is: they are
/// appended to a query that is there already. Those of other methods are the body: a form, JSON or a property list, under
/// the type that goes with it, unless the request names a `Content-Type` of its own. A request that has a body besides its
/// parameters has these in its URL.
public struct ParameterEncoding: Sendable {
    enum Format: Sendable {
        case form
        case json(JSONEncoder)
        case propertyList(PropertyListFormat)
    }

    let format: Format

    /// How queries and forms are written.
    public var query = QueryEncoding()

    /// The methods whose parameters go into the URL; GET, HEAD and DELETE by default.
    public var methodsWithParametersInURL: Set<HTTPRequest.Method> = [.get, .head, .delete]

    private init(_ format: Format) { self.format = format }

    /// Forms (`application/x-www-form-urlencoded`), written as queries are.
    public static let form = ParameterEncoding(.form)

    /// JSON (`application/json`), with names in order and dates in ISO 8601.
    public static let json: ParameterEncoding = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        encoder.dateEncodingStrategy = .iso8601
        return ParameterEncoding(.json(encoder))
    }()

    /// JSON as an encoder writes it. The encoder must not be changed afterwards.
    public static func json(_ encoder: JSONEncoder) -> ParameterEncoding { ParameterEncoding(.json(encoder)) }

    /// Property lists (`application/x-plist`).
    public static func propertyList(_ format: PropertyListFormat) -> ParameterEncoding {
        ParameterEncoding(.propertyList(format))
    }

    /// The same encoding with changes.
    public func with(_ change: (inout ParameterEncoding) -> Void) -> ParameterEncoding {
        var changed = self
        change(&changed)
        return changed
    }

    /// Parameters as a body; ``HTTPBody/none`` where they are null.
    ///
    /// - Throws: A ``ParameterError``, what the value's own encoding throws, what ``QueryEncoding/serializer`` throws.
    public func body(for parameters: some Encodable) throws -> HTTPBody {
        if ParameterEncoding.isNull(parameters) { return .none }
        switch format {
        case .form:
            let tree = try ParameterValue(encoding: parameters)
            if case .null = tree { return .none }
            return HTTPBody(
                .bytes(Array(try query.encoded(tree).utf8)), contentType: "application/x-www-form-urlencoded")
        case .json(let encoder):
            try (parameters as? ParameterValue)?.check()
            return HTTPBody(.bytes(Array(try encoder.encode(parameters))), contentType: "application/json")
        case .propertyList(let format):
            try (parameters as? ParameterValue)?.check(allowsNull: false)
            return try HTTPBody.encodingPropertyList(parameters, format: format)
        }
    }

    /// A URL with parameters behind its query; the URL as it is where they are null or leave nothing.
    ///
    /// - Throws: As ``body(for:)``; an ``HTTPURL/ParseError`` where the URL becomes too long.
    public func url(_ url: HTTPURL, adding parameters: some Encodable) throws -> HTTPURL {
        if ParameterEncoding.isNull(parameters) { return url }
        return try url.appending(encodedQuery: try query.encoded(try ParameterValue(encoding: parameters)))
    }

    /// Whether a value is an absent one, so that there are no parameters at all.
    private static func isNull(_ parameters: some Encodable) -> Bool {
        if let tree = parameters as? ParameterValue { return tree == .null }
        return (parameters as? any OptionalParameters)?.isNone ?? false
    }
}

/// A value that may be absent.
private protocol OptionalParameters { var isNone: Bool { get } }

extension Optional: OptionalParameters { fileprivate var isNone: Bool { self == nil } }

extension HTTPURL {
    /// The same address with parameters behind its query, joined by `&`.
    ///
    /// - Parameters:
    ///   - parameters: Values by name; literals may be of mixed kinds.
    ///   - encoding: How they are written; as AFNetworking by default.
    /// - Throws: A ``ParameterError``; a ``ParseError`` with the code ``ParseError/Code/tooLong``; what
    ///   ``QueryEncoding/serializer`` throws.
    public func appending(
        parameters: ParameterValue, encoding: QueryEncoding = QueryEncoding()
    ) throws -> HTTPURL { try appending(encodedQuery: try encoding.encoded(parameters)) }

    /// The same address with the parameters that any `Encodable` has; else as the other function of this name.
    public func appending(
        parameters: some Encodable, encoding: QueryEncoding = QueryEncoding()
    ) throws -> HTTPURL {
        try appending(parameters: try ParameterValue(encoding: parameters), encoding: encoding)
    }
}

extension HTTPBody {
    /// A value as a property list (`application/x-plist`). It is encoded here; if that fails, the call throws the encoder's
    /// error before anything is sent.
    ///
    /// At the top it must be an array or a dictionary, as property lists are.
    public static func propertyList(
        _ value: some Encodable, format: PropertyListFormat = .xml
    ) -> HTTPBody {
        do {
            return try encodingPropertyList(value, format: format)
        } catch {
            return HTTPBody(.failure(error), contentType: nil)
        }
    }

    static func encodingPropertyList(_ value: some Encodable, format: PropertyListFormat) throws -> HTTPBody {
        let encoder = PropertyListEncoder()
        switch format {
        case .xml: encoder.outputFormat = .xml
        case .binary: encoder.outputFormat = .binary
        }
        return HTTPBody(.bytes(Array(try encoder.encode(value))), contentType: "application/x-plist")
    }
}

/// How a property list is written.
public enum PropertyListFormat: String, Hashable, Sendable, CaseIterable {
    /// As XML.
    case xml
    /// In Apple's binary format.
    case binary
}
