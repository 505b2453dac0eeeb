// Exported, as by `Martlet`, so that a test can compare a method with `.post` without another import.
@_exported public import HTTPTypes
public import MartletCore
import MartletTransport
import MartletURL
import MartletWire

/// The head of an ``OriginRequest``, which a handler responds to, or of a ``RecordedRequest``.
public protocol OriginRequestHead: Sendable {
    /// The method of the request.
    var method: HTTPRequest.Method { get }
    /// The request target, as sent: usually a path with its query.
    var target: String { get }
    /// The HTTP version: `1.1` or `1.0`.
    var version: String { get }
    /// The header fields, as sent.
    var headers: OriginFields { get }
    /// The position of the request on its connection, from 1.
    var number: Int { get }
    /// The connection of the request.
    var connection: OriginPeer { get }
}

extension OriginRequestHead {
    /// The target's path as sent, percent-encoded; for an absolute URL, the part after the authority.
    public var path: String { RequestTarget(target).path }

    /// The query of the target; empty without one.
    public var query: OriginQuery { OriginQuery(stringLiteral: RequestTarget(target).query ?? "") }

    /// The absolute URL, from the connection's scheme, the Host field and the target: `http://127.0.0.1:49152/a?b=c`.
    /// Not meaningful for the method CONNECT and the target `*`, which have no URL.
    public var url: String { base + path + query.suffix }

    /// Scheme and authority of the URL.
    var base: String { RequestTarget(target).base ?? "\(connection.scheme)://\(headers["Host"] ?? "localhost")" }

    /// The value of Content-Type; `nil` without one.
    public var contentType: String? { headers["Content-Type"] }
}

/// The query of a request, with its values by name: `request.query["page"]`.
public struct OriginQuery: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The query as sent, without the `?`.
    public let description: String

    /// Creates a query from its text as sent, for comparisons: `request.query == "page=2"`.
    public init(stringLiteral text: String) { description = text }

    /// Whether there is no query, or an empty one.
    public var isEmpty: Bool { description.isEmpty }

    /// The query after a `?`; empty without one.
    var suffix: String { isEmpty ? "" : "?\(description)" }

    /// The names and values in order, with `%XX` and `+` decoded.
    public var items: [(name: String, value: String)] {
        FormEncoding.decoded(description).map { ($0.name, $0.value ?? "") }
    }

    /// The first decoded value of a name; `nil` without one.
    public subscript(name: String) -> String? { items.first { $0.name == name }?.value }
}

/// A request, as a handler of the test origin receives it. The body is read while the handler runs.
public struct OriginRequest: OriginRequestHead {
    private let head: RecordedRequest
    /// The method of the request.
    public var method: HTTPRequest.Method { head.method }
    /// The request target, as sent: usually a path with its query.
    public var target: String { head.target }
    /// The HTTP version: `1.1` or `1.0`.
    public var version: String { head.version }
    /// The header fields, as sent.
    public var headers: OriginFields { head.headers }
    /// The position of the request on its connection, from 1.
    public var number: Int { head.number }
    /// The connection of the request.
    public var connection: OriginPeer { head.connection }
    /// The values of the placeholders in the route's pattern; set by ``OriginRouter``.
    public internal(set) var parameters: [String: String] = [:]
    /// The body of the request, read on demand.
    public let body: OriginRequestBody

    init(_ head: RecordedRequest, body: OriginRequestBody) { (self.head, self.body) = (head, body) }

    /// The value of a placeholder as an integer; `nil` if it is missing, negative or not an integer.
    public func number(of parameter: String) -> Int? {
        parameters[parameter].flatMap { text in text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil }
    }

    /// Reads the rest of the body.
    /// - Parameter limit: The maximum number of bytes to hold; 16 MiB by default.
    /// - Throws: ``OriginError/bodyTooLarge(limit:)``, ``OriginError/malformedRequest(_:)``,
    ///   ``OriginError/disconnected(_:)``, ``OriginError/bodyNotReadable``.
    public func collectBody(upTo limit: Int = 16 << 20) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await chunk in body {
            guard chunk.count <= limit - bytes.count else { throw OriginError.bodyTooLarge(limit: limit) }
            bytes += chunk
        }
        return bytes
    }

    /// Reads the rest of the body as text; bytes that are not UTF-8 become U+FFFD. See ``collectBody(upTo:)``.
    public func collectText(upTo limit: Int = 16 << 20) async throws -> String {
        String(decoding: try await collectBody(upTo: limit), as: UTF8.self)
    }

    /// Reads the rest of the body, at most 16 MiB by default, and decodes it from JSON. The default decoder is a plain
    /// `JSONDecoder`; another example is `.json(keys: .snakeCase, dates: .iso8601)`.
    /// - Throws: ``OriginError/bodyNotDecodable(_:)``, and the errors of ``collectBody(upTo:)``.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: BodyDecoder = .json(), upTo limit: Int = 16 << 20
    ) async throws -> Value { try OriginError.decoding(type, await collectBody(upTo: limit), decoder) }

    /// Reads the rest of a multipart body and returns its parts, in order.
    /// - Parameter limit: The maximum number of bytes to hold; 16 MiB by default.
    /// - Throws: ``OriginError/bodyNotDecodable(_:)`` if the body is not multipart or is malformed; the errors of
    ///   ``collectBody(upTo:)``.
    public func collectParts(upTo limit: Int = 16 << 20) async throws -> [OriginPart] {
        try OriginPart.parts(of: await collectBody(upTo: limit), contentType: contentType)
    }

    /// Sends an interim response immediately (RFC 9110 §15.2). HTTP/1.0 clients receive none.
    ///
    /// A `100` is sent automatically when a handler first reads the body of a request that expects it.
    /// - Throws: ``OriginError/disconnected(_:)``; ``OriginError/malformedRequest(_:)`` for fields that cannot be sent.
    public func send(_ response: InterimResponse) async throws {
        if version == "1.1" { try await body.reader.send(response) }
    }
}

/// The body of a request: chunks of bytes as they arrive, without chunked framing.
///
/// It is read from the connection on demand: if a handler stops reading, the client has to wait. It can be read once,
/// by one reader, until the response is complete.
public struct OriginRequestBody: AsyncSequence, Sendable {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    let reader: RequestReader
    let serial: Int
    /// The length that Content-Length declares; `nil` for a chunked body, 0 for none.
    public let declaredLength: UInt64?

    /// The trailer fields of a chunked body; none before its end.
    public var trailers: OriginFields { reader.trailers(serial: serial) }

    /// Starts reading, or continues after the last piece of an earlier iterator.
    public func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    /// Reads the body piece by piece.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let body: OriginRequestBody

        /// The next piece; `nil` at the end.
        /// - Throws: ``OriginError/malformedRequest(_:)``, ``OriginError/disconnected(_:)``,
        ///   ``OriginError/bodyNotReadable``.
        public mutating func next() async throws -> [UInt8]? { try await body.reader.nextChunk(serial: body.serial) }
    }
}

/// The connection of a request.
public struct OriginPeer: Sendable, Hashable {
    /// The connection's number, from 1.
    public let number: Int
    /// The client's address, such as `127.0.0.1:50123`; `memory` for a mock transport.
    public let remoteAddress: String
    /// The scheme: `http` or `https`. A mock transport may have `https`, although it does not encrypt.
    public let scheme: String
    /// `TLSv1.2` or `TLSv1.3`; `nil` on a plain connection.
    public let tlsVersion: String?
    /// Whether the TLS handshake resumed an earlier session.
    public let isResumed: Bool
    /// The protocol chosen by ALPN; `nil` if the client offered none.
    public let applicationProtocol: String?
    /// The server name that the client sent (SNI); `nil` if it sent none.
    public let serverName: String?
    /// The client's certificate in DER; empty if it sent none.
    public let clientCertificate: [UInt8]

    init(_ number: Int, _ information: ConnectionInformation, isSecure: Bool, serverName: String? = nil) {
        self.number = number
        scheme = isSecure ? "https" : "http"
        (self.serverName, remoteAddress) = (serverName, information.remoteAddress)
        tlsVersion = information.tls?.version
        isResumed = information.tls?.isResumed ?? false
        applicationProtocol = information.tls?.applicationProtocol
        clientCertificate = information.tls?.peerCertificate ?? []
    }

    /// The common name in the client's certificate; `nil` without one.
    public var clientCommonName: String? { OriginCertificate.commonName(inDER: clientCertificate) }
}

/// The parts of a request target (RFC 9112 §3.2).
private struct RequestTarget {
    /// Scheme and authority of the absolute form, as sent to proxies; `nil` in other forms.
    let base: String?
    let path: String
    let query: String?

    init(_ target: String) {
        var rest = Substring(target)
        if let scheme = rest.firstRange(of: "://"), !rest.hasPrefix("/") {
            let end = rest[scheme.upperBound...].firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
            base = String(rest[..<end])
            rest = rest[end...]
        } else {
            base = nil
        }
        let mark = rest.firstIndex(of: "?")
        path = String(rest[..<(mark ?? rest.endIndex)])
        query = mark.map { String(rest[rest.index(after: $0)...]) }
    }
}
