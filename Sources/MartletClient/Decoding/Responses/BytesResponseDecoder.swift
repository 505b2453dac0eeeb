/// Hands the body over as it is.
public struct BytesResponseDecoder: ResponseDecoder {
    /// A decoder.
    public init() {}

    /// The body's bytes.
    public func decode(_ exchange: HTTPExchange) -> [UInt8] {
        exchange.body
    }
}

extension ResponseDecoder where Self == BytesResponseDecoder {
    /// The body as it is.
    public static var bytes: BytesResponseDecoder { BytesResponseDecoder() }
}
