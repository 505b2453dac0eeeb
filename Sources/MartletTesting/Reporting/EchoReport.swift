import FoundationEssentials

/// What ``OriginHandler/echo`` tells of a request, in JSON.
public struct EchoReport: Codable, Sendable, Hashable {
    /// The method, as sent.
    public var method: String
    /// The request target, as sent.
    public var target: String
    /// The path, as sent.
    public var path: String
    /// The query, as sent; `nil` without one.
    public var query: String?
    /// `1.1` or `1.0`.
    public var version: String
    /// The field lines in order: name and value each.
    public var headers: [[String]]
    /// The body as text; `nil` when it is not UTF-8.
    public var body: String?
    /// The body in Base64.
    public var bodyBase64: String
    /// The body's length in bytes.
    public var bodyLength: Int
    /// The fields behind a chunked body.
    public var trailers: [[String]]
    /// The number of the connection, from 1.
    public var connection: Int
    /// The request's place on its connection, from 1.
    public var request: Int
    /// `TLSv1.2` or `TLSv1.3`; `nil` on a plain connection.
    public var tls: String?
    /// The name the client asked for by SNI.
    public var serverName: String?
    /// The common name in the client's certificate.
    public var clientCertificate: String?

    /// Reads the request's body, of at most 16 MiB, and describes the request.
    init(_ request: OriginRequest) async throws {
        let bytes = try await request.collectBody()
        method = request.method
        target = request.target
        path = request.path
        query = request.query
        version = request.version
        headers = request.fields.map { [$0.name, $0.value] }
        body = String(validating: bytes, as: UTF8.self)
        bodyBase64 = Data(bytes).base64EncodedString()
        bodyLength = bytes.count
        trailers = request.body.trailers.map { [$0.name, $0.value] }
        connection = request.connection.number
        self.request = request.number
        tls = request.connection.tlsVersion
        serverName = request.connection.serverName
        clientCertificate = request.connection.clientCommonName
    }

    /// The first value of a field, whose name is compared in any case.
    public func header(_ name: String) -> String? {
        headers.first { $0.count == 2 && $0[0].lowercased() == name.lowercased() }?[1]
    }
}
