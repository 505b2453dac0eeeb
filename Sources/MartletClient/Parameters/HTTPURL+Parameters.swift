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
    ) throws -> HTTPURL {
        try appending(encodedQuery: try encoding.encoded(parameters))
    }

    /// The same address with the parameters that any `Encodable` has; else as the other function of this name.
    public func appending(
        parameters: some Encodable, encoding: QueryEncoding = QueryEncoding()
    ) throws -> HTTPURL {
        try appending(parameters: try ParameterValue(encoding: parameters), encoding: encoding)
    }
}
