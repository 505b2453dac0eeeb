public import FoundationEssentials

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
