import Synchronization

/// The head of a response, with the same names in all public response types: ``HTTPExchange``, ``OpenResponse`` (also
/// in the closure of a stream) and ``HTTPCall/Response``.
public protocol HTTPResponseHead: Sendable {
    /// The status of the response.
    var status: HTTPResponse.Status { get }
    /// The header fields, in the order received: `response.headers["X-Name"]`, `response.headers[.contentType]`.
    var headers: HTTPFields { get }
    /// The source of the response: the network, a middleware, or a feature, such as `.cache`.
    var source: HTTPExchange.Source { get }
}

extension HTTPResponseHead {
    /// The status code, 200–999: the same as `status.code`.
    public var statusCode: Int { status.code }
    /// The media type in `Content-Type`; `nil` if the field is missing or invalid. ``headers`` has the field as
    /// received.
    public var contentType: MediaType? { headers[.contentType].flatMap { MediaType($0) } }
}

/// A request and its response, with the body collected.
///
/// An exchange holds no connection or descriptor, so it can be stored freely. Its description is one line without the
/// body and the fields, which may be large or secret.
public struct HTTPExchange: HTTPResponseHead, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The source of a response. Features add their own sources.
    public struct Source: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name of the source, such as `network`.
        public var rawValue: String

        /// Creates a source by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name of the source, the same as ``rawValue``.
        public var description: String { rawValue }

        /// A server, through the network.
        public static let network = Source(rawValue: "network")
        /// A middleware that made the response without the network.
        public static let middleware = Source(rawValue: "middleware")
    }

    /// A single object, so that copying an exchange only copies a reference.
    let storage: ExchangeStorage
    /// Whether errors of decoding and validation are passed to the mapper. `false` in an exchange that a mapper
    /// receives: if the mapper decodes the body and fails, it must not be called again.
    var mapsErrors = true

    /// The last request of the call, after redirects and with the changes of middleware.
    public var request: HTTPRequest { storage.request }
    /// The URL of the response, after redirects, without user info.
    public var url: HTTPURL { storage.url }
    /// The status and the fields. Fields with the same name are in the order received.
    public var response: HTTPResponse { storage.response }
    /// The status of the response.
    public var status: HTTPResponse.Status { storage.response.status }
    /// The header fields, in the order received.
    public var headers: HTTPFields { storage.response.headerFields }
    /// The status code, 200–999: the same as `status.code`.
    public var statusCode: Int { storage.head.status }
    /// The body, with content codings decoded.
    public var body: [UInt8] { storage.body }
    /// The body; the same as ``body``, named like ``text`` and ``json``.
    public var bytes: [UInt8] { storage.body }
    /// The trailers of a chunked body. They are never merged into the head (RFC 9110 §6.5).
    public var trailers: HTTPFields? { storage.trailers.map(HeadConversion.fields) }
    /// The interim responses (1xx, RFC 9110 §15.2) before the final one. Of many 104, the first and the last are kept.
    public var interimResponses: [HTTPResponse] { storage.interim.map(HeadConversion.response) }
    /// The times and byte counts of the call.
    public var metrics: HTTPMetrics { storage.measured.metrics }
    /// The source of the response, such as the network.
    public var source: Source { storage.source }
    /// The number of the call, unique in the process.
    ///
    /// ``HTTPError/callNumber``, ``SessionEvent/call``, ``CallContext/number``, ``HTTPTask/id``, ``RunningCall/id`` and
    /// `call` in the metadata of logs are the same number, which is never sent to servers.
    public var callNumber: UInt64 { storage.callNumber }
    /// The action of the cache and its reason, as a member of the field `Cache-Status` (RFC 9211), with `stored` if the
    /// response was stored; `nil` without a cache.
    public var cacheStatus: String? { storage.provenance?.cacheStatus }
    /// The header fields that the request was sent with, except `Host` and those of its body.
    package var sentFields: HTTPFields { HeadConversion.fields(storage.sentFields) }
    /// Whether the call delivers another response, from the network, after this one.
    package var isPreview: Bool { storage.provenance?.isPreview ?? false }
    /// The number of the stored body, valid while the cache stores that body; `nil` without a stored body.
    package var representation: UInt64? { storage.representation }
    /// The head exactly as received, with the fields in order and each `Set-Cookie` separate.
    package var rawHead: ResponseHead { storage.head }
    /// The interim heads, exactly as received.
    package var rawInterim: [ResponseHead] { storage.interim }
    /// The trailers, exactly as received.
    package var rawTrailers: FieldBlock? { storage.trailers }

    init(_ storage: ExchangeStorage) { self.storage = storage }

    /// The links of the `Link` fields (RFC 8288), in order, without malformed ones. The number of links times the
    /// length of ``url`` is at most 1 MiB; further links are omitted.
    public var links: [HTTPLink] { HTTPLink.links(in: storage.head.fields.values(of: "link"), base: url) }

    /// Returns the target of the first link with a relation, such as `next` for the next page of a list; `nil` without
    /// one. Relations are compared without regard to case.
    public func link(_ relation: String) -> HTTPURL? {
        HTTPLink.links(in: storage.head.fields.values(of: "link"), base: url, relation: relation).first?.url
    }

    /// A safe file name for the body: the name in `Content-Disposition`, else the last segment of the URL's path.
    ///
    /// One path component of at most 255 bytes, not hidden, without control characters; `nil` without such a name.
    public var suggestedFilename: String? {
        SuggestedFilename.of(contentDisposition: storage.head.fields.firstValue(of: "content-disposition"), url: url)
    }

    /// The body as text, decoded by its byte order mark, else by the `charset` of `Content-Type`, else as UTF-8.
    ///
    /// Invalid bytes become U+FFFD, and an unknown charset is decoded as UTF-8; ``textError`` reports both. To throw an
    /// error instead, use `decode(using: .strictText)`. The supported charsets are those of ``ResponseDecoder/text``.
    public var text: String { TextDecoding(charset: contentType?.charset).text(from: body) }

    /// Returns the body as text, like ``text``, in a charset such as `iso-8859-1` instead of that of `Content-Type`.
    /// - Throws: An ``HTTPError`` with the code `.decodingFailed` for an unknown charset.
    public func text(charset: String) throws -> String {
        try checked { try TextDecoding(known: charset).text(from: body) }
    }

    /// The error that ``text`` conceals: an unknown charset, or bytes that are invalid in the charset; `nil` for none.
    public var textError: ResponseDecodingError? {
        do throws(ResponseDecodingError) {
            _ = try TextDecoding(known: contentType?.charset).strictText(from: body)
            return nil
        } catch { return error }
    }

    /// The method, the URL without credentials, the status and the size of the body.
    public var description: String { "\(storage.method.rawValue) \(url.redacted): \(statusCode), \(body.count) bytes" }

    /// The same as ``description``.
    public var debugDescription: String { description }
    /// The mirror for debuggers and `dump`: the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension HTTPExchange {
    /// The body as JSON, for any status and content type. Digits of numbers and the order of members are preserved.
    /// - Throws: A ``JSONError`` with the byte offset.
    public var json: JSONValue { get throws(JSONError) { try JSONValue(parsing: body) } }

    /// Returns the exchange if all of these validators accept it. The validators run in the given order.
    ///
    /// ```swift
    /// try await session.get(url).validated(.status(200..<300), .contentType("text/csv"))
    /// ```
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus`, `.unacceptableContentType`, `.bodyTooLarge` or
    ///   `.unacceptableBody` that carries this exchange, or the error that ``SessionConfiguration/errors`` maps it to.
    ///   An error of a validator's closure is thrown unchanged.
    @discardableResult public func validated(_ first: ResponseValidator, _ others: ResponseValidator...) async throws
        -> HTTPExchange
    {
        let subject = ValidationSubject(self)
        do {
            try await first.check(subject)
            for validator in others { try await validator.check(subject) }
            return self
        } catch { throw mapped(error) }
    }
}

/// The parts of an exchange as received. They are converted to public types on demand: many callers need only a few.
final class ExchangeStorage: Sendable {
    let callNumber: UInt64
    let method: HTTPRequest.Method
    private let fields: HTTPFields
    private let givenRequest: HTTPRequest?
    private let sent: SentFields
    let url: HTTPURL
    let head: ResponseHead
    let body: [UInt8]
    /// Whether ``body`` is the whole body: it was not written elsewhere or left unread, and the method is not HEAD.
    let isBodyCollected: Bool
    let trailers: FieldBlock?
    let interim: [ResponseHead]
    let measured: DeferredMetrics
    let source: HTTPExchange.Source
    let representation: UInt64?
    /// The part of a stage, such as the cache, in the response; `nil` for a response from the network alone.
    let provenance: (any ResponseProvenance)?
    let coding: ResponseCoding
    /// The converted response, created on first access, with its lock.
    private let converted = Mutex<HTTPResponse?>(nil)

    init(_ answer: StreamedResponse, _ body: [UInt8], isCollected: Bool) {
        let call = answer.call
        (callNumber, method, fields, givenRequest) = (call.number, call.method, call.fields, call.givenRequest)
        (sent, url) = (call.sent, call.url)
        (head, self.body) = (answer.head, body)
        isBodyCollected = isCollected && call.method != .head
        (trailers, interim) = (answer.trailers, answer.interim)
        (measured, source) = (answer.deferredMetrics, answer.source)
        representation = if case .stored(let body) = answer.channel { body.representation } else { nil }
        provenance = answer.provenance?.detached
        coding = call.settings.coding
    }

    var request: HTTPRequest { givenRequest ?? HTTPRequest(method: method, url: url, headers: fields) }
    var sentFields: FieldBlock { sent.block }

    /// The response, converted once.
    var response: HTTPResponse {
        converted.withLock { converted in
            if let response = converted { return response }
            let response = HeadConversion.response(head)
            converted = response
            return response
        }
    }
}
