public import FoundationEssentials

extension HTTPExchange {
    /// Decodes the body as JSON, provided that the status is 2xx.
    ///
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` that carries this exchange; the decoder's own error,
    ///   as it is.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        try decoder.decode(type, from: Data(try validated().body))
    }
}
