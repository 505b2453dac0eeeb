public import FoundationEssentials

extension HTTPExchange {
    /// Decodes the body as JSON, provided that the status is 2xx. The content type is not looked at.
    ///
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` that carries this exchange; the decoder's own error,
    ///   as it is.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        try decoder.decode(type, from: Data(try validated().body))
    }

    /// Makes a value of the answer, provided that the status is 2xx and the content type is one that the decoder takes.
    ///
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` or `.unacceptableContentType` that carries this
    ///   exchange; the decoder's own error, as it is.
    public func decode<Decoder: ResponseDecoder>(using decoder: Decoder) throws -> Decoder.Output {
        try decoder.decode(try validated())
    }
}
