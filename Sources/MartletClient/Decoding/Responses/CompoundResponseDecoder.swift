/// Tries decoders in order: the first that takes the answer's content type and makes a value has made it.
public struct CompoundResponseDecoder<Output: Sendable>: ResponseDecoder {
    /// The decoders, in the order they are tried.
    private let decoders: [any ResponseDecoder<Output>]

    /// Decoders in the order they are tried. Make their outputs one type with ``ResponseDecoder/map(_:)``.
    public init(_ decoders: any ResponseDecoder<Output>...) {
        self.decoders = decoders
    }

    /// What any of them takes.
    public var acceptableContentTypes: [String] {
        let types = decoders.map(\.acceptableContentTypes)
        return types.contains { $0.isEmpty } ? [] : types.flatMap { $0 }
    }

    /// The value of the first that makes one.
    /// - Throws: ``ResponseDecodingError/noDecoderSucceeded(_:)`` with what each had to say, an ``HTTPError`` with the code
    ///   `.unacceptableContentType` for one that does not take the type; `CancellationError`, as it is.
    public func decode(_ exchange: HTTPExchange) throws -> Output {
        let subject = ValidationSubject(exchange)
        var failures: [any Error] = []
        for decoder in decoders {
            do {
                try subject.checkContentType(of: decoder)
                return try decoder.decode(exchange)
            } catch let error as CancellationError {
                throw error
            } catch {
                failures.append(error)
            }
        }
        throw ResponseDecodingError.noDecoderSucceeded(failures)
    }
}

extension ResponseDecoder {
    /// What the first of two decoders makes that takes the answer.
    public static func first<First: ResponseDecoder, Second: ResponseDecoder>(
        of first: First, _ second: Second
    ) -> Self where Self == CompoundResponseDecoder<First.Output>, Second.Output == First.Output {
        CompoundResponseDecoder(first, second)
    }

    /// What the first of three decoders makes that takes the answer.
    public static func first<First: ResponseDecoder, Second: ResponseDecoder, Third: ResponseDecoder>(
        of first: First, _ second: Second, _ third: Third
    ) -> Self
    where
        Self == CompoundResponseDecoder<First.Output>, Second.Output == First.Output,
        Third.Output == First.Output
    {
        CompoundResponseDecoder(first, second, third)
    }
}
