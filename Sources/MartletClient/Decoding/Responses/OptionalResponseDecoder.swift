/// Makes nothing of a body that is empty, or blank, and of another what a decoder makes of it.
public struct OptionalResponseDecoder<Wrapped: ResponseDecoder>: ResponseDecoder {
    private let wrapped: Wrapped

    /// A decoder around another.
    public init(_ wrapped: Wrapped) {
        self.wrapped = wrapped
    }

    /// What the decoder takes.
    public var acceptableContentTypes: [String] { wrapped.acceptableContentTypes }

    /// The value; `nil` for a body without a byte that is not white space.
    /// - Throws: What the decoder throws.
    public func decode(_ exchange: HTTPExchange) throws -> Wrapped.Output? {
        let isBlank = exchange.body.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
        return isBlank ? nil : try wrapped.decode(exchange)
    }
}

extension ResponseDecoder {
    /// What another decoder makes; `nil` for a body that is empty, or blank as some servers send in its place.
    public static func nilIfEmpty<Wrapped>(
        _ decoder: Wrapped
    ) -> Self where Self == OptionalResponseDecoder<Wrapped> {
        OptionalResponseDecoder(decoder)
    }
}
