import FoundationEssentials
import MartletTransport
import MartletURL
import MartletWire

/// A request, as a handler of the test origin receives it. The body is read while the handler runs.
public struct OriginRequest: Sendable {
    /// The method, as sent.
    public let method: String
    /// The request target, as sent: usually a path with its query.
    public let target: String
    /// The HTTP version: `1.1` or `1.0`.
    public let version: String
    /// The fields, as sent.
    public let fields: OriginFields
    /// The position on its connection, from 1.
    public let number: Int
    /// The connection of the request.
    public let connection: OriginPeer
    /// The values of the placeholders in the route's pattern; set by ``OriginRouter``.
    public internal(set) var parameters: [String: String] = [:]
    /// The body.
    public let body: OriginRequestBody

    init(head: RequestHead, number: Int, connection: OriginPeer, body: OriginRequestBody) {
        method = head.method
        target = head.target
        version = head.version == .http11 ? "1.1" : "1.0"
        fields = OriginFields(head.fields)
        self.number = number
        self.connection = connection
        self.body = body
    }

    /// The target's path as sent, percent-encoded; of an absolute form, the part after the authority.
    public var path: String { RequestTarget(target).path }

    /// The part of the target after the first `?`, as sent; `nil` without one.
    public var query: String? { RequestTarget(target).query }

    /// The parts of the query, with `%XX` and `+` decoded.
    public var queryItems: [(name: String, value: String)] {
        FormEncoding.decoded(query ?? "").map { ($0.name, $0.value ?? "") }
    }

    /// The first decoded value of a name in the query.
    public func queryValue(of name: String) -> String? { queryItems.first { $0.name == name }?.value }

    /// A parameter of the route's pattern as a number that is not negative.
    public func number(of parameter: String) -> Int? {
        parameters[parameter].flatMap { text in
            text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
        }
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

    /// Reads the rest of the body and decodes it from JSON.
    /// - Throws: ``OriginError/bodyNotDecodable(_:)``, and the errors of ``collectBody(upTo:)``.
    public func decodeBody<Value: Decodable>(
        as type: Value.Type = Value.self, upTo limit: Int = 16 << 20
    ) async throws -> Value {
        let bytes = try await collectBody(upTo: limit)
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch {
            throw OriginError.bodyNotDecodable("\(error)")
        }
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
/// It is read from the connection on demand, so a handler that stops reading stops the sender. It can be read once, by one
/// reader, until the response is complete.
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
        /// - Throws: ``OriginError/malformedRequest(_:)``, ``OriginError/disconnected(_:)``, ``OriginError/bodyNotReadable``.
        public mutating func next() async throws -> [UInt8]? {
            try await body.reader.nextChunk(serial: body.serial)
        }
    }
}

/// The connection of a request.
public struct OriginPeer: Sendable, Hashable {
    /// The connection's number, from 1.
    public let number: Int
    /// The client's address, such as `127.0.0.1:50123`; `memory` for a mock transport.
    public let remoteAddress: String
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

    init(_ number: Int, _ information: ConnectionInformation, serverName: String? = nil) {
        self.number = number
        self.serverName = serverName
        remoteAddress = information.remoteAddress
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
    let path: String
    let query: String?

    init(_ target: String) {
        var rest = Substring(target)
        if let scheme = rest.firstRange(of: "://"), !rest.hasPrefix("/") {
            // The absolute form, as sent to proxies: only the part after the authority counts.
            rest = rest[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
        }
        let mark = rest.firstIndex(of: "?")
        path = String(rest[..<(mark ?? rest.endIndex)])
        query = mark.map { String(rest[rest.index(after: $0)...]) }
    }
}
