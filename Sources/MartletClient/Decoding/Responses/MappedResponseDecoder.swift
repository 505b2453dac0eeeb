/// Makes another value of what a decoder makes.
public struct MappedResponseDecoder<Base: ResponseDecoder, Output: Sendable>: ResponseDecoder {
    private let base: Base
    private let transform: @Sendable (Base.Output) throws -> Output

    init(_ base: Base, _ transform: @escaping @Sendable (Base.Output) throws -> Output) {
        self.base = base
        self.transform = transform
    }

    /// What the decoder takes.
    public var acceptableContentTypes: [String] { base.acceptableContentTypes }

    /// The other value.
    /// - Throws: What the decoder or the closure throws.
    public func decode(_ exchange: HTTPExchange) throws -> Output {
        try transform(try base.decode(exchange))
    }
}

extension ResponseDecoder {
    /// A decoder that makes another value of what this one makes.
    public func map<NewOutput: Sendable>(
        _ transform: @escaping @Sendable (Output) throws -> NewOutput
    ) -> MappedResponseDecoder<Self, NewOutput> {
        MappedResponseDecoder(self, transform)
    }
}
