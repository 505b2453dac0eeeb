import MartletContent
public import FoundationEssentials

/// Makes a value of a body that is JSON.
public struct JSONResponseDecoder<Value: Decodable & Sendable>: ResponseDecoder {
    private let decoder: JSONDecoder
    private let removesNulls: Bool

    /// A decoder.
    /// - Parameters:
    ///   - type: What to make.
    ///   - decoder: What makes it.
    ///   - removingNulls: Whether members that are `null` are taken out before, see ``JSONValue/removingNulls()``.
    public init(
        _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder(), removingNulls: Bool = false
    ) {
        self.decoder = decoder
        removesNulls = removingNulls
    }

    /// JSON under any of its names.
    public var acceptableContentTypes: [String] { JSONTreeResponseDecoder.contentTypes }

    /// The value.
    /// - Throws: What the decoder throws; a ``JSONError`` where nulls are taken out.
    public func decode(_ exchange: HTTPExchange) throws -> Value {
        let bytes = removesNulls ? try exchange.json.removingNulls().bytes() : exchange.body
        return try decoder.decode(Value.self, from: Data(bytes))
    }
}

extension ResponseDecoder {
    /// The body as JSON.
    /// - Parameters:
    ///   - type: What to make.
    ///   - decoder: What makes it.
    ///   - removingNulls: Whether members that are `null` are taken out before, see ``JSONValue/removingNulls()``.
    public static func json<Value>(
        _ type: Value.Type, decoder: JSONDecoder = JSONDecoder(), removingNulls: Bool = false
    ) -> Self where Self == JSONResponseDecoder<Value> {
        JSONResponseDecoder(type, decoder: decoder, removingNulls: removingNulls)
    }
}

/// Makes a tree of a body that is JSON.
public struct JSONTreeResponseDecoder: ResponseDecoder {
    /// Whether members that are `null` are left out.
    private let removesNulls: Bool

    /// A decoder.
    /// - Parameter removingNulls: Whether members that are `null` are left out, see ``JSONValue/removingNulls()``.
    public init(removingNulls: Bool = false) { removesNulls = removingNulls }

    /// JSON under any of its names.
    public var acceptableContentTypes: [String] { JSONTreeResponseDecoder.contentTypes }

    /// What servers call JSON.
    static let contentTypes = ["application/json", "text/json", "text/javascript", "application/*+json"]

    /// The tree.
    /// - Throws: A ``JSONError``.
    public func decode(_ exchange: HTTPExchange) throws -> JSONValue {
        let value = try exchange.json
        return removesNulls ? value.removingNulls() : value
    }
}

extension ResponseDecoder where Self == JSONTreeResponseDecoder {
    /// The body as a tree of JSON.
    public static var json: JSONTreeResponseDecoder { JSONTreeResponseDecoder() }

    /// The body as a tree of JSON, without members that are `null` if so asked.
    public static func json(removingNulls: Bool) -> JSONTreeResponseDecoder {
        JSONTreeResponseDecoder(removingNulls: removingNulls)
    }
}

/// Makes a value of a body that is a property list, in XML or binary.
public struct PropertyListResponseDecoder<Value: Decodable & Sendable>: ResponseDecoder {
    private let decoder: PropertyListDecoder

    /// A decoder.
    /// - Parameters:
    ///   - type: What to make.
    ///   - decoder: What makes it.
    public init(_ type: Value.Type = Value.self, decoder: PropertyListDecoder = PropertyListDecoder()) {
        self.decoder = decoder
    }

    /// Property lists under any of their names, XML, and what servers send files as.
    public var acceptableContentTypes: [String] {
        [
            "application/x-plist", "application/plist", "application/x-apple-plist",
            "application/x-apple-binary-plist", "application/xml", "text/xml", "application/octet-stream",
        ]
    }

    /// Decodes the value. The list is checked first: nesting, cycles and counts cannot exhaust the stack or the memory.
    /// - Throws: A ``PropertyListError`` for a list that must not be decoded; any error of the decoder.
    public func decode(_ exchange: HTTPExchange) throws -> Value {
        try PropertyListScanner.check(exchange.body)
        return try decoder.decode(Value.self, from: Data(exchange.body))
    }
}

extension ResponseDecoder {
    /// The body as a property list, in XML or binary.
    public static func propertyList<Value>(
        _ type: Value.Type, decoder: PropertyListDecoder = PropertyListDecoder()
    ) -> Self where Self == PropertyListResponseDecoder<Value> {
        PropertyListResponseDecoder(type, decoder: decoder)
    }
}
