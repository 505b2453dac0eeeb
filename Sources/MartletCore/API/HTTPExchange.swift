import Synchronization

/// The head of a response, read with the same names wherever the library hands out a response: ``HTTPExchange``, ``OpenResponse``
/// (also in the closure of a stream) and ``HTTPCall/Response``.
public protocol HTTPResponseHead: Sendable {
    /// The status.
    var status: HTTPResponse.Status { get }
    /// The header fields, in the order they came: `response.headers["X-Name"]`, `response.headers[.contentType]`.
    var headers: HTTPFields { get }
    /// The source of the response: the network, a middleware, or that of a feature, such as `.cache`.
    var source: HTTPExchange.Source { get }
}

extension HTTPResponseHead {
    /// The status code, 200–999: the same as `status.code`.
    public var statusCode: Int { status.code }
    /// The media type in `Content-Type`; `nil` without the field, and for an invalid one, which ``headers`` has.
    public var contentType: MediaType? { headers[.contentType].flatMap { MediaType($0) } }
}

/// A request and its response, with the body collected.
///
/// It holds no connection and no descriptor: it may be kept, copied and passed around at will. Its description is one line and
/// has neither its body nor its fields, which may be large or secret.
public struct HTTPExchange: HTTPResponseHead, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
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

    /// One object, so that a copy of an exchange costs one reference.
    let storage: ExchangeStorage

    /// The request as it was made.
    public var request: HTTPRequest { storage.request }
    /// The URL of the response, after redirects, without user info.
    public var url: HTTPURL { storage.url }
    /// Status and fields. Several fields of one name are in the order they came.
    public var response: HTTPResponse { storage.response }
    /// The status.
    public var status: HTTPResponse.Status { storage.response.status }
    /// The header fields, in the order they came.
    public var headers: HTTPFields { storage.response.headerFields }
    /// The status code, 200–999: the same as `status.code`.
    public var statusCode: Int { storage.head.status }
    /// The body, with content codings decoded.
    public var body: [UInt8] { storage.body }
    /// The same as ``body``, beside ``text`` and ``json``.
    public var bytes: [UInt8] { storage.body }
    /// The fields after a chunked body; they are never merged into the head (RFC 9110 §6.5).
    public var trailers: HTTPFields? { storage.trailers.map(HeadConversion.fields) }
    /// The interim responses that came first: 100, 102, 103 (RFC 9110 §15.2).
    public var interimResponses: [HTTPResponse] { storage.interim.map(HeadConversion.response) }
    /// The times and byte counts of the call.
    public var metrics: HTTPMetrics { storage.measured.metrics }
    /// The source of the response.
    public var source: Source { storage.source }
    /// The number of the call, which differs from that of every other call of the process.
    ///
    /// ``HTTPError/callNumber``, ``SessionEvent/call``, ``CallContext/number``, ``HTTPTask/id``, ``RunningCall/id`` and `call` in the
    /// metadata of logs are the same number. It is never sent: for an id that servers see, add a field by a middleware.
    public var callNumber: UInt64 { storage.callNumber }
    /// The action of the cache and its reason, as a member of the field `Cache-Status` (RFC 9211); `nil` without a cache.
    public var cacheStatus: String? { storage.provenance?.cacheStatus }
    /// The header fields that the request was sent with, except `Host` and those of its body.
    package var sentFields: HTTPFields { HeadConversion.fields(storage.sentFields) }
    /// Whether another response, from the network, follows this one.
    package var isPreview: Bool { storage.provenance?.isPreview ?? false }
    /// The number of the stored body, which it has as long as the cache keeps that body; `nil` if there is none.
    package var representation: UInt64? { storage.representation }
    /// The head's fields byte by byte, in order, `Set-Cookie` apart.
    package var rawHead: ResponseHead { storage.head }
    /// The interim heads byte by byte.
    package var rawInterim: [ResponseHead] { storage.interim }
    /// The trailers byte by byte.
    package var rawTrailers: FieldBlock? { storage.trailers }

    init(_ storage: ExchangeStorage) { self.storage = storage }

    /// A safe name for a file of the body: what `Content-Disposition` proposes, else the last segment of the URL's path.
    ///
    /// It is one component, not hidden, without control characters, of at most 255 bytes; `nil` if there is none.
    public var suggestedFilename: String? {
        SuggestedFilename.of(contentDisposition: storage.head.fields.firstValue(of: "content-disposition"), url: url)
    }

    /// The body as text: by its byte order mark, else the `charset` of `Content-Type`, else UTF-8.
    ///
    /// Invalid bytes become U+FFFD, and a charset that is not known is decoded as UTF-8: ``textError`` shows both. For an error in
    /// place of such a text use `decode(using: .strictText)`. The charsets are those of ``ResponseDecoder/text``.
    public var text: String { TextDecoding(charset: contentType?.charset).text(from: body) }

    /// The reason why ``text`` is not exactly the body's text: a charset that is not known, or bytes that are invalid in theirs; `nil`
    /// if it is.
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
    /// What debuggers and `dump` show: the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension HTTPExchange {
    /// The body as JSON, whatever the status and the content type. Digits of numbers and the order of members are kept.
    /// - Throws: A ``JSONError`` that names the byte.
    public var json: JSONValue { get throws(JSONError) { try JSONValue(parsing: body) } }

    /// The exchange itself if all of these accept it, in this order.
    ///
    /// ```swift
    /// try await session.get(url).validated(.status(200..<300), .contentType("application/json"))
    /// ```
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus`, `.unacceptableContentType`, `.bodyTooLarge` or
    ///   `.unacceptableBody` that carries this exchange, or its replacement by ``SessionConfiguration/errors``; any other
    ///   error of a closure, as it is.
    public func validated(_ first: ResponseValidator, _ others: ResponseValidator...) async throws -> HTTPExchange {
        let subject = ValidationSubject(self)
        do {
            try await first.check(subject)
            for validator in others { try await validator.check(subject) }
            return self
        } catch { throw coding.mapped(error) }
    }
}

/// The parts of an exchange as they were on the wire. The types of the public API are made on demand: many callers need only
/// the status and the body.
final class ExchangeStorage: Sendable {
    let callNumber: UInt64
    let method: HTTPRequest.Method
    private let fields: HTTPFields
    private let givenRequest: HTTPRequest?
    let sentFields: FieldBlock
    let url: HTTPURL
    let head: ResponseHead
    let body: [UInt8]
    /// Whether the body is all that came: not written elsewhere, nor left unread, nor that of a HEAD, which never comes.
    let isBodyCollected: Bool
    let trailers: FieldBlock?
    let interim: [ResponseHead]
    let measured: DeferredMetrics
    let source: HTTPExchange.Source
    let representation: UInt64?
    /// The part that a stage had in the response; `nil` for one of the network.
    let provenance: (any AnswerProvenance)?
    let coding: ResponseCoding
    /// Guards the response, which its first reader makes.
    private let converted = Mutex<HTTPResponse?>(nil)

    init(_ answer: StreamedResponse, _ body: [UInt8], isCollected: Bool) {
        let call = answer.call
        callNumber = call.number
        method = call.method
        fields = call.fields
        givenRequest = call.givenRequest
        sentFields = call.sentFields
        url = call.url
        head = answer.head
        self.body = body
        isBodyCollected = isCollected && call.method != .head
        trailers = answer.trailers
        interim = answer.interim
        measured = answer.deferredMetrics
        source = answer.source
        if case .stored(let body) = answer.channel {
            representation = body.representation
        } else {
            representation = nil
        }
        provenance = answer.provenance
        coding = call.settings.coding
    }

    var request: HTTPRequest { givenRequest ?? HTTPRequest(method: method, url: url, headers: fields) }

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
