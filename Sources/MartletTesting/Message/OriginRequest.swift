import FoundationEssentials
import MartletURL
import MartletWire

/// A request as a handler of the test origin sees it; the body is read while the handler runs.
public struct OriginRequest: Sendable {
    /// The method, as sent.
    public let method: String
    /// The request target, as sent: usually a path with its query.
    public let target: String
    /// The minor version: `1.1` or `1.0`.
    public let version: String
    /// The fields, as sent.
    public let fields: OriginFields
    /// Its place on its connection, from 1.
    public let number: Int
    /// The connection it came on.
    public let connection: OriginPeer
    /// What the placeholders of the route's pattern stand for; filled in by ``OriginRouter``.
    public internal(set) var parameters: [String: String] = [:]
    /// The body.
    public let body: OriginRequestBody

    private let interim: @Sendable (InterimResponse) async throws -> Void

    init(
        head: RequestHead, number: Int, connection: OriginPeer, body: OriginRequestBody,
        interim: @escaping @Sendable (InterimResponse) async throws -> Void
    ) {
        method = head.method
        target = head.target
        version = head.version == .http11 ? "1.1" : "1.0"
        fields = OriginFields(head.fields)
        self.number = number
        self.connection = connection
        self.body = body
        self.interim = interim
    }

    /// The target's path as sent, percent-encoding included; of an absolute form, the part behind the
    /// authority.
    public var path: String { RequestTarget(target).path }

    /// What follows the first `?` of the target, as sent; `nil` without one.
    public var query: String? { RequestTarget(target).query }

    /// The parts of the query, decoded: `%XX` and `+` become what they stand for.
    public var queryItems: [(name: String, value: String)] { RequestTarget(target).queryItems }

    /// The first decoded value of a name in the query.
    public func queryValue(of name: String) -> String? { queryItems.first { $0.name == name }?.value }

    /// A parameter of the route's pattern as a number that is not negative.
    public func number(of parameter: String) -> Int? {
        parameters[parameter].flatMap { text in
            text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
        }
    }

    /// Reads the rest of the body.
    /// - Parameter limit: The most bytes to hold; 16 MiB by default.
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

    /// Reads the rest of the body as text; bytes that are not UTF-8 become U+FFFD. Else as
    /// ``collectBody(upTo:)``.
    public func collectText(upTo limit: Int = 16 << 20) async throws -> String {
        String(decoding: try await collectBody(upTo: limit), as: UTF8.self)
    }

    /// Reads the rest of the body and decodes it from JSON.
    /// - Throws: ``OriginError/bodyNotDecodable(_:)``, and what ``collectBody(upTo:)`` throws.
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

    /// Sends an interim response at once (RFC 9110 §15.2). HTTP/1.0 clients get none.
    ///
    /// A `100` is sent by itself when a handler first reads the body of a request that expects it.
    /// - Throws: ``OriginError/disconnected(_:)``; ``OriginError/malformedRequest(_:)`` for fields that
    ///   cannot be sent.
    public func send(_ response: InterimResponse) async throws { try await interim(response) }
}

/// The body of a request: chunks of bytes as they arrive, without chunked framing.
///
/// It is read from the connection as it is asked for, so a handler that stops asking stops the sender. One
/// reader may read it, once, until the response is complete.
public struct OriginRequestBody: AsyncSequence, Sendable {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    private let reader: RequestReader
    private let serial: Int

    /// The length that Content-Length declares; `nil` for a chunked body, 0 for none.
    public let declaredLength: UInt64?

    init(reader: RequestReader, serial: Int, declaredLength: UInt64?) {
        self.reader = reader
        self.serial = serial
        self.declaredLength = declaredLength
    }

    /// The fields behind a chunked body; none before its end.
    public var trailers: OriginFields { reader.trailers(serial: serial) }

    /// Starts reading, or goes on where an earlier iterator stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader, serial: serial) }

    /// Reads the body piece by piece.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: RequestReader
        fileprivate let serial: Int

        /// The next piece; `nil` at the end.
        /// - Throws: ``OriginError/malformedRequest(_:)``, ``OriginError/disconnected(_:)``,
        ///   ``OriginError/bodyNotReadable``.
        public mutating func next() async throws -> [UInt8]? { try await reader.nextChunk(serial: serial) }
    }
}

/// What a handler may know of the connection a request came on.
public struct OriginPeer: Sendable, Hashable {
    /// The connection's number, from 1.
    public let number: Int
    /// The client's address, such as `127.0.0.1:50123`; `memory` for a mock transport.
    public let remoteAddress: String
    /// `TLSv1.2` or `TLSv1.3`; `nil` on a plain connection.
    public let tlsVersion: String?
    /// Whether the TLS handshake resumed an earlier session.
    public let isResumed: Bool
    /// The protocol that ALPN chose; `nil` when the client offered none.
    public let applicationProtocol: String?
    /// The name that the client asked for (SNI); `nil` when it sent none.
    public let serverName: String?
    /// The client's certificate in DER; empty where it showed none.
    public let clientCertificate: [UInt8]

    /// The common name in the client's certificate; `nil` without one.
    public var clientCommonName: String? { OriginCertificate.commonName(inDER: clientCertificate) }
}

/// The parts of a request target (RFC 9112 §3.2).
struct RequestTarget {
    let path: String
    let query: String?

    init(_ target: String) {
        var rest = Substring(target)
        if let scheme = rest.firstRange(of: "://"), !rest.hasPrefix("/") {
            // Absolute form, as sent to proxies: what follows the authority counts.
            let authority = rest[scheme.upperBound...]
            let end = authority.firstIndex { $0 == "/" || $0 == "?" } ?? authority.endIndex
            rest = authority[end...]
        }
        if let mark = rest.firstIndex(of: "?") {
            path = String(rest[..<mark])
            query = String(rest[rest.index(after: mark)...])
        } else {
            path = String(rest)
            query = nil
        }
    }

    var queryItems: [(name: String, value: String)] {
        FormEncoding.decoded(query ?? "").map { ($0.name, $0.value ?? "") }
    }
}
