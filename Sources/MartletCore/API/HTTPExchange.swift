import MartletContent
import MartletURL
public import FoundationEssentials

/// A request that was answered, with its body collected.
///
/// It holds no connection and no descriptor: it may be kept, copied and passed around at will. Printed, it says what it is
/// in a line: neither its body nor its fields, which may be large or secret.
public struct HTTPExchange: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
    /// The source of a response. Features add their own.
    public struct Source: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name of the source.
        public var rawValue: String

        /// A source by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name of the source.
        public var description: String { rawValue }

        /// A server, through the network.
        public static let network = Source(rawValue: "network")
        /// A middleware, which made the response without the network.
        public static let middleware = Source(rawValue: "middleware")
    }

    /// One object, so that exchanges are handed around at the cost of one reference.
    let storage: ExchangeStorage

    /// The request as it was asked for.
    public var request: HTTPRequest { storage.request }
    /// The URL that answered.
    public var url: HTTPURL { storage.url }
    /// Status and fields. Several fields of one name stand in the order they came.
    public var response: HTTPResponse { storage.response }
    /// The status code, 200–999: the same as `response.status.code`.
    public var statusCode: Int { storage.head.status }
    /// The body, with content coding undone.
    public var body: [UInt8] { storage.body }
    /// The same as ``body``, beside ``text`` and ``json``.
    public var bytes: [UInt8] { storage.body }
    /// Fields that came behind a chunked body; they are never merged into the head (RFC 9110 §6.5).
    public var trailers: HTTPFields? { storage.trailers.map(HeadConversion.fields) }
    /// The interim responses that came first: 100, 102, 103 (RFC 9110 §15.2).
    public var interimResponses: [HTTPResponse] { storage.interim.map(HeadConversion.response) }
    /// When the parts of the call happened.
    public var metrics: HTTPMetrics { storage.metrics }
    /// Where the answer came from.
    public var source: Source { storage.source }
    /// What the cache did and why, as a member of the field `Cache-Status` (RFC 9211), for debugging; `nil` without a cache.
    public var cacheStatus: String? { storage.provenance?.cacheStatus }
    /// Whether another response, from the network, follows this one.
    package var isPreview: Bool { storage.provenance?.isPreview ?? false }
    /// Which stored body it is: the same number as long as the cache keeps that body; `nil` where it has none.
    package var representation: UInt64? { storage.representation }
    /// The head's fields byte by byte, in order, `Set-Cookie` apart.
    package var rawHead: ResponseHead { storage.head }
    /// The interim heads byte by byte.
    package var rawInterim: [ResponseHead] { storage.interim }
    /// The trailers byte by byte.
    package var rawTrailers: FieldBlock? { storage.trailers }

    init(_ storage: ExchangeStorage) { self.storage = storage }

    /// The body as text: by its byte order mark, else the `charset` of `Content-Type`, else UTF-8. Bytes that make no sense
    /// become U+FFFD.
    public var text: String {
        let type = response.headerFields[.contentType].flatMap { MediaType($0) }
        return TextDecoding(charset: type?.charset).text(from: body)
    }

    /// The method, the URL without credentials, the status and the size of the body.
    public var description: String {
        "\(storage.method.rawValue) \(url.redacted): \(statusCode), \(body.count) bytes"
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What debuggers and `dump` show: the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension HTTPExchange {
    /// Decodes the body as JSON, provided that the status is 2xx. The content type is not looked at.
    ///
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` that carries this exchange; the decoder's own error,
    ///   as it is.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value { try decoder.decode(type, from: Data(try validated().body)) }

    /// Makes a value of the answer, provided that its status is one of these and its content type one that the decoder
    /// takes (``ResponseDecoder/acceptableContentTypes``).
    ///
    /// ```swift
    /// let settings = try await session.get(url).decode(using: .propertyList(Settings.self))
    /// let problem = try error.exchange?.decode(using: .json(Problem.self), status: 400..<600)
    /// ```
    ///
    /// An answer without `Content-Type` is decoded: what it is shows in its bytes (RFC 9110 §8.3).
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` or `.unacceptableContentType` that carries this
    ///   exchange; the decoder's own error, as it is.
    public func decode<Decoder: ResponseDecoder>(
        using decoder: Decoder, status: Range<Int> = 200..<300
    ) throws -> Decoder.Output {
        let subject = ValidationSubject(self)
        try subject.checkStatus(status.isEmpty ? [] : [ClosedRange(status)])
        try subject.checkContentType(of: decoder)
        return try decoder.decode(self)
    }

    /// The body as JSON, whatever the status and the content type say; all digits of numbers and the order of members are
    /// kept.
    /// - Throws: A ``JSONError`` that names the byte.
    public var json: JSONValue { get throws(JSONError) { try JSONValue(parsing: body) } }
}

extension ValidationSubject {
    /// Asks for a content type that a decoder takes.
    func checkContentType(of decoder: some ResponseDecoder) throws(HTTPError) {
        let types = decoder.acceptableContentTypes
        guard !types.isEmpty else { return }
        try checkContentType(MediaRangeList(types), takesUntyped: true)
    }
}

extension HTTPExchange {
    /// The exchange itself if the status is 2xx.
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` that carries this exchange.
    public func validated() throws(HTTPError) -> HTTPExchange {
        try ValidationSubject(self).checkStatus([200...299])
        return self
    }

    /// The exchange itself if it is what all of these take. They are asked in this order.
    ///
    /// ```swift
    /// try await session.get(url).validated(.status(200..<300), .contentType("application/json"))
    /// ```
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus`, `.unacceptableContentType`, `.bodyTooLarge` or
    ///   `.unacceptableBody` that carries this exchange; what a closure of a validator throws, as it is.
    public func validated(
        _ first: ResponseValidator, _ others: ResponseValidator...
    ) async throws -> HTTPExchange {
        let subject = ValidationSubject(self)
        try await first.check(subject)
        for validator in others { try await validator.check(subject) }
        return self
    }
}
