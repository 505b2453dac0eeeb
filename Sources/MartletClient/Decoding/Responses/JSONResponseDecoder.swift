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
