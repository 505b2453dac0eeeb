/// Insists on there being no body, as for a 204 or a 205.
public struct EmptyResponseDecoder: ResponseDecoder {
    /// A decoder.
    public init() {}

    /// Nothing.
    /// - Throws: ``ResponseDecodingError/bodyNotEmpty(byteCount:)``.
    public func decode(_ exchange: HTTPExchange) throws {
        guard exchange.body.isEmpty else {
            throw ResponseDecodingError.bodyNotEmpty(byteCount: exchange.body.count)
        }
    }
}

extension ResponseDecoder where Self == EmptyResponseDecoder {
    /// No body, or an error.
    public static var empty: EmptyResponseDecoder { EmptyResponseDecoder() }
}
