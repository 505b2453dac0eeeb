/// A request that was answered, with its body collected.
///
/// It holds no connection and no descriptor: it may be kept, copied and passed around at will. Printed, it says what it is
/// in a line: neither its body nor its fields, which may be large or secret.
public struct HTTPExchange: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// Where the answer came from.
    public enum Source: String, Hashable, Sendable {
        /// A server, through the network.
        case network
        /// What was stored, and was fresh.
        case cache
        /// What was stored, and the server said that it is still good.
        case validatedCache
        /// What was stored, though no longer fresh: while it is validated, in place of an error, or because the request
        /// takes such.
        case staleCache
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
    public var cacheStatus: String? { storage.cacheStatus?.text }
    /// Which stored body it is: the same number as long as the cache keeps that body; `nil` where it has none.
    package var representation: UInt64? { storage.representation }
    /// The head's fields byte by byte, in order, `Set-Cookie` apart.
    package var rawHead: ResponseHead { storage.head }
    /// The interim heads byte by byte.
    package var rawInterim: [ResponseHead] { storage.interim }
    /// The trailers byte by byte.
    package var rawTrailers: FieldBlock? { storage.trailers }

    init(_ storage: ExchangeStorage) {
        self.storage = storage
    }

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
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description])
    }
}
