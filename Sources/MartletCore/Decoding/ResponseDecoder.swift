public import FoundationEssentials

/// Decodes a response into a value, by its body and the fields about it.
///
/// ```swift
/// let settings = try await session.get(url).decode(using: .propertyList(Settings.self))
/// ```
///
/// A decoder is a value without mutable state: the same one may be used by many tasks concurrently. Write one as a
/// ``ClosureResponseDecoder``, or by conforming to this protocol, and a static function for it in an extension where `Self` is the
/// decoder's type, so that call sites read as above.
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

/// A decoder that consists of a closure, as all decoders of this module do.
public struct ClosureResponseDecoder<Output: Sendable>: ResponseDecoder {
    /// The media ranges that it decodes; empty for any type.
    public let acceptableContentTypes: [String]
    private let body: @Sendable (HTTPExchange) throws -> Output

    /// A decoder that calls a closure.
    /// - Parameter types: The media ranges that it decodes; any type by default.
    public init(accepting types: [String] = [], _ body: @escaping @Sendable (HTTPExchange) throws -> Output) {
        acceptableContentTypes = types
        self.body = body
    }

    /// The value that the closure returns.
    /// - Throws: Any error of the closure.
    public func decode(_ exchange: HTTPExchange) throws -> Output { try body(exchange) }
}

extension ResponseDecoder where Self == ClosureResponseDecoder<[UInt8]> {
    /// The body as it is.
    public static var bytes: Self { Self(\.body) }
}

extension ResponseDecoder where Self == ClosureResponseDecoder<Void> {
    /// No body, as for a 204 or a 205; ``ResponseDecodingError/bodyNotEmpty(byteCount:)`` for another response.
    public static var empty: Self {
        Self { exchange in
            let byteCount = exchange.body.count
            guard byteCount == 0 else { throw ResponseDecodingError.bodyNotEmpty(byteCount: byteCount) }
        }
    }
}

extension ResponseDecoder where Self == ClosureResponseDecoder<String> {
    /// The body as text, as ``HTTPExchange/text``: by its byte order mark, else the `charset` of `Content-Type`, else as UTF-8.
    ///
    /// The charsets are UTF-8, UTF-16, UTF-32, windows-1252 (which ISO-8859-1 and US-ASCII mean on the web) and ISO-8859-15, under all
    /// their names (WHATWG Encoding). Another one is decoded as UTF-8, and invalid bytes become U+FFFD.
    public static var text: Self { Self(\.text) }

    /// The body as text; for another charset ``ResponseDecodingError/unknownCharset(_:)``, and for an invalid byte
    /// ``ResponseDecodingError/malformedText(charset:offset:)``.
    public static var strictText: Self {
        Self { try TextDecoding(known: $0.contentType?.charset).strictText(from: $0.body) }
    }
}

extension ResponseDecoder where Self == ClosureResponseDecoder<JSONValue> {
    /// The body as a tree of JSON, under any of its media types.
    public static var json: Self { .json(removingNulls: false) }

    /// The body as a tree of JSON, with or without members that are `null`, see ``JSONValue/removingNulls()``.
    public static func json(removingNulls: Bool) -> Self {
        Self(accepting: HTTPExchange.jsonContentTypes) { exchange in
            let value = try exchange.json
            return removingNulls ? value.removingNulls() : value
        }
    }
}

extension ResponseDecoder {
    /// The body as JSON, under any of its media types.
    /// - Parameter removingNulls: Whether members that are `null` are removed first, see ``JSONValue/removingNulls()``.
    public static func json<Value: Decodable & Sendable>(
        _ type: Value.Type, decoder: JSONDecoder = JSONDecoder(), removingNulls: Bool = false
    ) -> Self where Self == ClosureResponseDecoder<Value> {
        Self(accepting: HTTPExchange.jsonContentTypes) { exchange in
            let bytes = removingNulls ? try exchange.json.removingNulls().bytes() : exchange.body
            return try decoder.decode(type, from: Data(bytes))
        }
    }

    /// The body as a property list, in XML or binary, under any of its media types, XML's, and that of files.
    ///
    /// The list is checked first: nesting, cycles and counts cannot exhaust the stack or the memory. A ``PropertyListError`` is thrown
    /// for one that must not be decoded.
    public static func propertyList<Value: Decodable & Sendable>(
        _ type: Value.Type, decoder: PropertyListDecoder = PropertyListDecoder()
    ) -> Self where Self == ClosureResponseDecoder<Value> {
        let types = [
            "application/x-plist", "application/plist", "application/x-apple-plist", "application/x-apple-binary-plist",
            "application/xml", "text/xml", "application/octet-stream",
        ]
        return Self(accepting: types) { exchange in
            try PropertyListScanner.check(exchange.body)
            return try decoder.decode(type, from: Data(exchange.body))
        }
    }

    /// The value of another decoder; `nil` for a body that is empty, or blank as some servers send in its place.
    public static func nilIfEmpty<Wrapped: ResponseDecoder>(_ decoder: Wrapped) -> Self
    where Self == ClosureResponseDecoder<Wrapped.Output?> {
        Self(accepting: decoder.acceptableContentTypes) { exchange in
            let isBlank = exchange.body.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
            return isBlank ? nil : try decoder.decode(exchange)
        }
    }

    /// A decoder that transforms the value of this one.
    public func map<NewOutput: Sendable>(_ transform: @escaping @Sendable (Output) throws -> NewOutput)
        -> ClosureResponseDecoder<NewOutput>
    { ClosureResponseDecoder(accepting: acceptableContentTypes) { [self] in try transform(try decode($0)) } }

    /// The value of the first of these decoders, in their order, that accepts the content type and decodes one.
    /// ``ResponseDecoder/map(_:)`` makes their outputs one type.
    ///
    /// If none does, it throws ``ResponseDecodingError/noDecoderSucceeded(_:)`` with the error of each, an ``HTTPError`` with the code
    /// `.unacceptableContentType` for one that does not accept the type; `CancellationError`, as it is.
    public static func first<Value>(of decoders: [any ResponseDecoder<Value>]) -> Self
    where Self == ClosureResponseDecoder<Value> {
        let types = decoders.map(\.acceptableContentTypes)
        let isForAny = types.contains(where: \.isEmpty)
        return Self(accepting: isForAny ? [] : types.flatMap(\.self)) { exchange in
            let subject = ValidationSubject(exchange)
            var failures: [any Error] = []
            for decoder in decoders {
                do {
                    try subject.checkContentType(of: decoder)
                    return try decoder.decode(exchange)
                } catch let error as CancellationError { throw error } catch { failures.append(error) }
            }
            throw ResponseDecodingError.noDecoderSucceeded(failures)
        }
    }

    /// The value of the first of two decoders that succeeds.
    public static func first<First: ResponseDecoder, Second: ResponseDecoder>(of first: First, _ second: Second) -> Self
    where Self == ClosureResponseDecoder<First.Output>, Second.Output == First.Output { .first(of: [first, second]) }

    /// The value of the first of three decoders that succeeds.
    public static func first<First: ResponseDecoder, Second: ResponseDecoder, Third: ResponseDecoder>(
        of first: First, _ second: Second, _ third: Third
    ) -> Self
    where Self == ClosureResponseDecoder<First.Output>, Second.Output == First.Output, Third.Output == First.Output {
        .first(of: [first, second, third])
    }
}
