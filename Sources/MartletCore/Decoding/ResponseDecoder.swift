public import FoundationEssentials

/// A decoder that turns a response, with its body and fields, into a value.
///
/// ```swift
/// let user = try await session.get(url).decode(using: .propertyList(User.self))
/// ```
///
/// A decoder is a value without mutable state: many tasks may use it concurrently. To write one, use
/// ``ClosureResponseDecoder`` or conform to this protocol. Add a static function for it in an extension where `Self` is
/// the decoder's type, so that call sites look like the one above.
public protocol ResponseDecoder<Output>: Sendable {
    /// The type of the value.
    associatedtype Output: Sendable

    /// The accepted media ranges, such as `application/json`, `image/*` or `*/*`, as in an `Accept` field (RFC 9110
    /// §12.5.1). Empty (the default) means any type.
    ///
    /// A response without `Content-Type`, or with an empty body, is always decoded.
    var acceptableContentTypes: [String] { get }

    /// Decodes the value. The status and the content type have already been checked; the body may be empty.
    /// - Throws: Any error, which becomes ``HTTPError/underlying``; ``HTTPError`` and `CancellationError` unchanged.
    func decode(_ exchange: HTTPExchange) throws -> Output
}

extension ResponseDecoder {
    /// An empty list: any type is accepted.
    public var acceptableContentTypes: [String] { [] }
}

/// A decoder that calls a closure. All decoders of this module have this type.
public struct ClosureResponseDecoder<Output: Sendable>: ResponseDecoder {
    /// The accepted media ranges; empty for any type.
    public let acceptableContentTypes: [String]
    private let body: @Sendable (HTTPExchange) throws -> Output

    /// Creates a decoder that calls a closure.
    /// - Parameter types: The accepted media ranges; any type by default.
    public init(accepting types: [String] = [], _ body: @escaping @Sendable (HTTPExchange) throws -> Output) {
        acceptableContentTypes = types
        self.body = body
    }

    /// Calls the closure, and returns its value.
    /// - Throws: Any error of the closure.
    public func decode(_ exchange: HTTPExchange) throws -> Output { try body(exchange) }
}

extension ResponseDecoder where Self == ClosureResponseDecoder<[UInt8]> {
    /// A decoder that returns the bytes of the body.
    public static var bytes: Self { Self(\.body) }
}

extension ResponseDecoder where Self == ClosureResponseDecoder<Void> {
    /// A decoder that accepts only an empty body, as of a 204 or a 205. A body with bytes throws
    /// ``ResponseDecodingError/bodyNotEmpty(byteCount:)``.
    public static var empty: Self {
        Self { exchange in
            let byteCount = exchange.body.count
            guard byteCount == 0 else { throw ResponseDecodingError.bodyNotEmpty(byteCount: byteCount) }
        }
    }
}

extension ResponseDecoder where Self == ClosureResponseDecoder<String> {
    /// A decoder of text, in the charset of the byte order mark, else of `Content-Type`, else in UTF-8.
    ///
    /// Supported are UTF-8, UTF-16, UTF-32, windows-1252 (also for ISO-8859-1 and US-ASCII, as on the web) and
    /// ISO-8859-15, by any name (WHATWG Encoding). Others are decoded as UTF-8, and invalid bytes become U+FFFD.
    public static var text: Self { Self(\.text) }

    /// A decoder of text that throws ``ResponseDecodingError/unknownCharset(_:)`` for a charset that ``text`` does not
    /// support, and ``ResponseDecodingError/malformedText(charset:offset:)`` for an invalid byte.
    public static var strictText: Self {
        Self { try TextDecoding(known: $0.contentType?.charset).strictText(from: $0.body) }
    }
}

extension ResponseDecoder where Self == ClosureResponseDecoder<JSONValue> {
    /// A decoder of a JSON tree, for any of the media types of JSON.
    public static var json: Self { .json(removingNulls: false) }

    /// Creates a decoder of a JSON tree, with or without members that are `null`, see ``JSONValue/removingNulls()``.
    public static func json(removingNulls: Bool) -> Self {
        Self(accepting: HTTPExchange.jsonContentTypes) { exchange in
            let value = try exchange.json
            return removingNulls ? value.removingNulls() : value
        }
    }
}

extension ResponseDecoder {
    /// Creates a decoder of JSON, for any of its media types.
    /// - Parameter removingNulls: Whether members that are `null` are removed first, see ``JSONValue/removingNulls()``.
    public static func json<Value: Decodable & Sendable>(
        _ type: Value.Type, decoder: JSONDecoder = JSONDecoder(), removingNulls: Bool = false
    ) -> Self where Self == ClosureResponseDecoder<Value> {
        Self(accepting: HTTPExchange.jsonContentTypes) { exchange in
            let bytes = removingNulls ? try exchange.json.removingNulls().bytes() : exchange.body
            return try decoder.decode(type, from: Data(bytes))
        }
    }

    /// Creates a decoder of XML and binary property lists, for their media types, those of XML, and
    /// `application/octet-stream`.
    ///
    /// The list is checked first, so that its nesting, cycles or size cannot exhaust the stack or the memory. A list
    /// that fails the check throws a ``PropertyListError``.
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

    /// Creates a decoder that returns the value of another one; `nil` for an empty or blank body.
    public static func nilIfEmpty<Wrapped: ResponseDecoder>(_ decoder: Wrapped) -> Self
    where Self == ClosureResponseDecoder<Wrapped.Output?> {
        Self(accepting: decoder.acceptableContentTypes) { exchange in
            let isBlank = exchange.body.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
            return isBlank ? nil : try decoder.decode(exchange)
        }
    }

    /// Returns a decoder that transforms the value of this one.
    public func map<NewOutput: Sendable>(_ transform: @escaping @Sendable (Output) throws -> NewOutput)
        -> ClosureResponseDecoder<NewOutput>
    { ClosureResponseDecoder(accepting: acceptableContentTypes) { [self] in try transform(try decode($0)) } }

    /// Creates a decoder that uses the first of these decoders, in order, that accepts the content type and succeeds.
    /// To give their outputs one type, use ``ResponseDecoder/map(_:)``.
    ///
    /// If none succeeds, it throws ``ResponseDecodingError/noDecoderSucceeded(_:)`` with the error of each. For a
    /// decoder that does not accept the content type, this is an ``HTTPError`` with the code
    /// `.unacceptableContentType`. `CancellationError` is thrown unchanged.
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

    /// Creates a decoder that returns the value of the first of two decoders that succeeds.
    public static func first<First: ResponseDecoder, Second: ResponseDecoder>(of first: First, _ second: Second) -> Self
    where Self == ClosureResponseDecoder<First.Output>, Second.Output == First.Output { .first(of: [first, second]) }

    /// Creates a decoder that returns the value of the first of three decoders that succeeds.
    public static func first<First: ResponseDecoder, Second: ResponseDecoder, Third: ResponseDecoder>(
        of first: First, _ second: Second, _ third: Third
    ) -> Self
    where Self == ClosureResponseDecoder<First.Output>, Second.Output == First.Output, Third.Output == First.Output {
        .first(of: [first, second, third])
    }
}
