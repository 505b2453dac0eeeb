import FoundationEssentials
package import MartletCore

/// The client's side of the opening handshake (RFC 6455 §4.1): the fields of the request, and the checks of the
/// response.
package struct OpeningHandshake: Sendable {
    /// 16 random bytes in Base64.
    package let key: String
    private let subprotocols: [String]
    private let compression: WebSocketCompression?

    /// Creates a handshake with a new random key.
    /// - Throws: An `HTTPError`, `.invalidHeader`, for a subprotocol that is not a token, or is given twice.
    package init(_ options: WebSocketOptions) throws(HTTPError) {
        subprotocols = options.subprotocols
        compression = options.compression
        for name in subprotocols where name.isEmpty || !name.utf8.allSatisfy({ ByteClass.isToken($0) }) {
            throw HTTPError(.invalidHeader, phase: .preparing, message: "the subprotocol “\(name)” is not a token")
        }
        guard Set(subprotocols).count == subprotocols.count else {
            throw HTTPError(.invalidHeader, phase: .preparing, message: "a subprotocol is given twice")
        }
        key = Data((0..<16).map { _ in UInt8.random(in: .min ... .max) }).base64EncodedString()
    }

    /// Adds the fields of the handshake, which replace those of the same names.
    package func complete(_ headers: inout HTTPHeaders) {
        headers[.secWebSocketKey] = key
        headers[.secWebSocketVersion] = "13"
        headers[.secWebSocketProtocol] = subprotocols.isEmpty ? nil : subprotocols.joined(separator: ", ")
        headers[.secWebSocketExtensions] = compression.map(DeflateNegotiation.offer)
    }

    /// Checks the fields of a 101 response.
    /// - Returns: The subprotocol and the compression that the server chose.
    package func check(_ fields: HTTPFields) throws(WebSocketError) -> (String?, DeflateNegotiation?) {
        guard fields[values: .secWebSocketAccept] == [OpeningHandshake.accept(key)] else {
            throw .protocolViolation("the value of Sec-WebSocket-Accept is wrong or missing")
        }
        let tokens = fields[values: .connection].flatMap { value in
            value.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
        }
        guard tokens.contains("upgrade") else {
            throw .protocolViolation("the response has no “Connection: Upgrade”")
        }
        let chosen = fields[values: .secWebSocketProtocol]
        guard chosen.isEmpty || (chosen.count == 1 && subprotocols.contains(chosen[0])) else {
            let names = chosen.joined(separator: ", ").prefix(60)
            throw .protocolViolation("the server chose the subprotocol “\(names)”, which was not offered")
        }
        let compression = try DeflateNegotiation.parse(fields[values: .secWebSocketExtensions], offer: compression)
        return (chosen.first, compression)
    }

    /// The value of `Sec-WebSocket-Accept` for a key (RFC 6455 §4.2.2); empty if OpenSSL has no SHA-1.
    package static func accept(_ key: String) -> String {
        let text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        return (try? MessageDigest.digest(.sha1, of: text.utf8)).map { Data($0).base64EncodedString() } ?? ""
    }
}
