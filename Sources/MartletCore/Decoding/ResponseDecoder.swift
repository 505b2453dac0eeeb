public import FoundationEssentials

/// Decodes a response into a value, by its body and the fields about it.
///
/// ```swift
/// let settings = try await session.get(url).decode(using: .propertyList(Settings.self))
/// ```
///
/// A decoder is a value without mutable state: the same one may be used by many tasks concurrently. Write one by conforming
/// to this protocol, and a static function for it in an extension where `Self` is the decoder's type, so that call sites
/// read as above.
public protocol ResponseDecoder<Output>: Sendable {
    /// The type of the value.
    associatedtype Output: Sendable

    /// The media ranges that it decodes, such as `application/json`, `image/*` or `*/*`, as in an `Accept` field
    /// (RFC 9110 §12.5.1). Empty (the default) means any type.
    ///
    /// They are compared before the body is decoded; a response without `Content-Type`, or with an empty body, is accepted.
    var acceptableContentTypes: [String] { get }

    /// Decodes the value. Status and content type were checked before; an empty body was not.
    ///
    /// - Throws: Any error, which is ``HTTPError/underlying`` of the one that callers receive; an ``HTTPError`` and
    ///   `CancellationError` as they are.
    func decode(_ exchange: HTTPExchange) throws -> Output
}

extension ResponseDecoder {
    /// Any type.
    public var acceptableContentTypes: [String] { [] }
}

/// Returns the body as it is.
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

/// Requires an empty body, as for a 204 or a 205.
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

/// Decodes text by its byte order mark, else the `charset` of `Content-Type`, else as UTF-8.
///
/// It supports UTF-8, UTF-16, UTF-32, windows-1252 (which ISO-8859-1 and US-ASCII mean on the web) and ISO-8859-15, under all
/// their names (WHATWG Encoding).
public struct TextResponseDecoder: ResponseDecoder {
    private let isStrict: Bool

    /// A decoder.
    /// - Parameter isStrict: Whether an unknown charset and invalid bytes are errors. By default an unknown charset is decoded
    ///   as UTF-8, and invalid bytes become U+FFFD, as in ``HTTPExchange/text``.
    public init(isStrict: Bool = false) { self.isStrict = isStrict }

    /// The body's text.
    /// - Throws: When strict, ``ResponseDecodingError/unknownCharset(_:)`` and
    ///   ``ResponseDecodingError/malformedText(charset:offset:)``.
    public func decode(_ exchange: HTTPExchange) throws -> String {
        guard isStrict else { return exchange.text }
        guard let charset = exchange.charset else {
            return try TextDecoding().strictText(from: exchange.body)
        }
        guard let encoding = TextDecoding.Encoding(label: charset) else {
            throw ResponseDecodingError.unknownCharset(charset)
        }
        return try TextDecoding(encoding).strictText(from: exchange.body)
    }
}

extension ResponseDecoder where Self == TextResponseDecoder {
    /// The body as text, with U+FFFD in place of invalid bytes.
    public static var text: TextResponseDecoder { TextResponseDecoder() }
    /// The body as text, or an error that names the first invalid byte.
    public static var strictText: TextResponseDecoder { TextResponseDecoder(isStrict: true) }
}

/// Decodes an empty or blank body as `nil`, and any other with a decoder.
public struct OptionalResponseDecoder<Wrapped: ResponseDecoder>: ResponseDecoder {
    private let wrapped: Wrapped

    /// A decoder around another.
    public init(_ wrapped: Wrapped) { self.wrapped = wrapped }

    /// The types of the decoder.
    public var acceptableContentTypes: [String] { wrapped.acceptableContentTypes }

    /// The value; `nil` for a body of white space.
    /// - Throws: Any error of the decoder.
    public func decode(_ exchange: HTTPExchange) throws -> Wrapped.Output? {
        let isBlank = exchange.body.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
        return isBlank ? nil : try wrapped.decode(exchange)
    }
}

extension ResponseDecoder {
    /// The value of another decoder; `nil` for a body that is empty, or blank as some servers send in its place.
    public static func nilIfEmpty<Wrapped>(_ decoder: Wrapped) -> Self
    where Self == OptionalResponseDecoder<Wrapped> { OptionalResponseDecoder(decoder) }
}

/// Transforms the value of a decoder.
public struct MappedResponseDecoder<Base: ResponseDecoder, Output: Sendable>: ResponseDecoder {
    private let base: Base
    private let transform: @Sendable (Base.Output) throws -> Output

    init(_ base: Base, _ transform: @escaping @Sendable (Base.Output) throws -> Output) {
        self.base = base
        self.transform = transform
    }

    /// The types of the decoder.
    public var acceptableContentTypes: [String] { base.acceptableContentTypes }

    /// The transformed value.
    /// - Throws: Any error of the decoder or the closure.
    public func decode(_ exchange: HTTPExchange) throws -> Output { try transform(try base.decode(exchange)) }
}

extension ResponseDecoder {
    /// A decoder that transforms the value of this one.
    public func map<NewOutput: Sendable>(
        _ transform: @escaping @Sendable (Output) throws -> NewOutput
    ) -> MappedResponseDecoder<Self, NewOutput> { MappedResponseDecoder(self, transform) }
}

/// Tries decoders in order: the first that accepts the content type and decodes a value is used.
public struct CompoundResponseDecoder<Output: Sendable>: ResponseDecoder {
    private let decoders: [any ResponseDecoder<Output>]

    /// Creates a decoder of others, in the order they are tried. ``ResponseDecoder/map(_:)`` makes their outputs one type.
    public init(_ decoders: any ResponseDecoder<Output>...) { self.decoders = decoders }

    /// The types of all of them.
    public var acceptableContentTypes: [String] {
        let types = decoders.map(\.acceptableContentTypes)
        return types.contains { $0.isEmpty } ? [] : types.flatMap { $0 }
    }

    /// The value of the first that decodes one.
    /// - Throws: ``ResponseDecodingError/noDecoderSucceeded(_:)`` with the error of each, an ``HTTPError`` with the code
    ///   `.unacceptableContentType` for one that does not accept the type; `CancellationError`, as it is.
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
    /// The value of the first of two decoders that succeeds.
    public static func first<First: ResponseDecoder, Second: ResponseDecoder>(
        of first: First, _ second: Second
    ) -> Self where Self == CompoundResponseDecoder<First.Output>, Second.Output == First.Output {
        CompoundResponseDecoder(first, second)
    }

    /// The value of the first of three decoders that succeeds.
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

/// Decodes a value from JSON.
public struct JSONResponseDecoder<Value: Decodable & Sendable>: ResponseDecoder {
    private let decoder: JSONDecoder
    private let removesNulls: Bool

    /// A decoder.
    /// - Parameter removingNulls: Whether members that are `null` are removed before, see ``JSONValue/removingNulls()``.
    public init(
        _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder(), removingNulls: Bool = false
    ) {
        self.decoder = decoder
        removesNulls = removingNulls
    }

    /// JSON under any of its names.
    public var acceptableContentTypes: [String] { JSONTreeResponseDecoder.contentTypes }

    /// The value.
    /// - Throws: Any error of the decoder; a ``JSONError`` if nulls are removed.
    public func decode(_ exchange: HTTPExchange) throws -> Value {
        let bytes = removesNulls ? try exchange.json.removingNulls().bytes() : exchange.body
        return try decoder.decode(Value.self, from: Data(bytes))
    }
}

extension ResponseDecoder {
    /// The body as JSON, with or without members that are `null`.
    public static func json<Value>(
        _ type: Value.Type, decoder: JSONDecoder = JSONDecoder(), removingNulls: Bool = false
    ) -> Self where Self == JSONResponseDecoder<Value> {
        JSONResponseDecoder(type, decoder: decoder, removingNulls: removingNulls)
    }
}

/// Decodes JSON as a tree.
public struct JSONTreeResponseDecoder: ResponseDecoder {
    private let removesNulls: Bool

    /// A decoder.
    /// - Parameter removingNulls: Whether members that are `null` are removed, see ``JSONValue/removingNulls()``.
    public init(removingNulls: Bool = false) { removesNulls = removingNulls }

    /// JSON under any of its names.
    public var acceptableContentTypes: [String] { JSONTreeResponseDecoder.contentTypes }

    /// The types under which servers send JSON.
    static let contentTypes = ["application/json", "text/json", "text/javascript", "application/*+json"]

    /// The tree.
    /// - Throws: A ``JSONError``.
    public func decode(_ exchange: HTTPExchange) throws -> JSONValue {
        let value = try exchange.json
        return removesNulls ? value.removingNulls() : value
    }
}

extension ResponseDecoder where Self == JSONTreeResponseDecoder {
    /// The body as a tree of JSON.
    public static var json: JSONTreeResponseDecoder { JSONTreeResponseDecoder() }

    /// The body as a tree of JSON, with or without members that are `null`.
    public static func json(removingNulls: Bool) -> JSONTreeResponseDecoder {
        JSONTreeResponseDecoder(removingNulls: removingNulls)
    }
}

/// Decodes a value from a property list, in XML or binary.
public struct PropertyListResponseDecoder<Value: Decodable & Sendable>: ResponseDecoder {
    private let decoder: PropertyListDecoder

    /// A decoder.
    public init(_ type: Value.Type = Value.self, decoder: PropertyListDecoder = PropertyListDecoder()) {
        self.decoder = decoder
    }

    /// Property lists under any of their names, XML, and the type under which servers send files.
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
