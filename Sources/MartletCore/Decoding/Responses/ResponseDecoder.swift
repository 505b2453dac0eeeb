import MartletContent

/// Makes a value of an answer: of its body, and of what its head says about that.
///
/// ```swift
/// let settings = try await session.get(url).decode(using: .propertyList(Settings.self))
/// ```
///
/// A decoder is a value without state of its own: the same one may be at work in many tasks at once. Write one by conforming
/// to this protocol, and a static function for it in an extension where `Self` is the decoder's type, so that call sites
/// read as above.
public protocol ResponseDecoder<Output>: Sendable {
    /// What it makes.
    associatedtype Output: Sendable

    /// The media ranges it makes sense of, such as `application/json`, `image/*` or `*/*`, as an `Accept` field lists them
    /// (RFC 9110 §12.5.1). Empty, the default, means any type.
    ///
    /// They are compared before the body is looked at; an answer without `Content-Type` is not held against them, nor one
    /// whose body is empty.
    var acceptableContentTypes: [String] { get }

    /// Makes the value. Status and content type were looked at before; an empty body is the decoder's to judge.
    ///
    /// - Throws: What it thinks is wrong; callers see that error as it is.
    func decode(_ exchange: HTTPExchange) throws -> Output
}

extension ResponseDecoder {
    /// Any type.
    public var acceptableContentTypes: [String] { [] }
}

/// Hands the body over as it is.
public struct BytesResponseDecoder: ResponseDecoder {
    /// A decoder.
    public init() {}

    /// The body's bytes.
    public func decode(_ exchange: HTTPExchange) -> [UInt8] { exchange.body }
}

extension ResponseDecoder where Self == BytesResponseDecoder {
    /// The body as it is.
    public static var bytes: BytesResponseDecoder { BytesResponseDecoder() }
}

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

/// Makes text of a body: by its byte order mark, else the `charset` of `Content-Type`, else as UTF-8.
///
/// It knows UTF-8, UTF-16, UTF-32, windows-1252 (which ISO-8859-1 and US-ASCII mean on the web) and ISO-8859-15, under all
/// their names (WHATWG Encoding).
public struct TextResponseDecoder: ResponseDecoder {
    /// Whether what makes no sense is an error.
    private let isStrict: Bool

    /// A decoder.
    /// - Parameter isStrict: Whether a charset that is not known, and bytes that make no sense, are errors. By default the
    ///   one is read as UTF-8, and the others become U+FFFD, as ``HTTPExchange/text`` has it.
    public init(isStrict: Bool = false) { self.isStrict = isStrict }

    /// The body's text.
    /// - Throws: When strict, ``ResponseDecodingError/unknownCharset(_:)`` and
    ///   ``ResponseDecodingError/malformedText(charset:offset:)``.
    public func decode(_ exchange: HTTPExchange) throws -> String {
        guard isStrict else { return exchange.text }
        let field = exchange.response.headerFields[.contentType]
        let charset = field.flatMap { MediaType($0) }?.charset
        guard let charset else { return try TextDecoding().strictText(from: exchange.body) }
        guard let encoding = TextDecoding.Encoding(label: charset) else {
            throw ResponseDecodingError.unknownCharset(charset)
        }
        return try TextDecoding(encoding).strictText(from: exchange.body)
    }
}

extension ResponseDecoder where Self == TextResponseDecoder {
    /// The body as text, what makes no sense replaced by U+FFFD.
    public static var text: TextResponseDecoder { TextResponseDecoder() }
    /// The body as text, or an error that names the byte which makes no sense.
    public static var strictText: TextResponseDecoder { TextResponseDecoder(isStrict: true) }
}

/// Makes nothing of a body that is empty, or blank, and of another what a decoder makes of it.
public struct OptionalResponseDecoder<Wrapped: ResponseDecoder>: ResponseDecoder {
    private let wrapped: Wrapped

    /// A decoder around another.
    public init(_ wrapped: Wrapped) { self.wrapped = wrapped }

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
    public static func nilIfEmpty<Wrapped>(_ decoder: Wrapped) -> Self
    where Self == OptionalResponseDecoder<Wrapped> { OptionalResponseDecoder(decoder) }
}

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
    public func decode(_ exchange: HTTPExchange) throws -> Output { try transform(try base.decode(exchange)) }
}

extension ResponseDecoder {
    /// A decoder that makes another value of what this one makes.
    public func map<NewOutput: Sendable>(
        _ transform: @escaping @Sendable (Output) throws -> NewOutput
    ) -> MappedResponseDecoder<Self, NewOutput> { MappedResponseDecoder(self, transform) }
}

/// Tries decoders in order: the first that takes the answer's content type and makes a value has made it.
public struct CompoundResponseDecoder<Output: Sendable>: ResponseDecoder {
    /// The decoders, in the order they are tried.
    private let decoders: [any ResponseDecoder<Output>]

    /// Decoders in the order they are tried. Make their outputs one type with ``ResponseDecoder/map(_:)``.
    public init(_ decoders: any ResponseDecoder<Output>...) { self.decoders = decoders }

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
