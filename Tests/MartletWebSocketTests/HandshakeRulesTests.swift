import MartletCore
import MartletWebSocket
import Testing

@Suite("WebSocket: the rules of the opening handshake")
struct HandshakeRulesTests {
    @Test("The value of Sec-WebSocket-Accept is that of RFC 6455 §1.3")
    func accept() {
        #expect(OpeningHandshake.accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test("Each handshake has a new key of 16 bytes")
    func keys() throws {
        let keys = try (0..<20).map { _ in try OpeningHandshake(WebSocketOptions()).key }
        #expect(Set(keys).count == 20)
        #expect(keys.allSatisfy { $0.utf8.count == 24 && $0.hasSuffix("==") })
    }

    @Test(
        "A subprotocol that is not a token, or given twice, is an error",
        arguments: [[""], ["a b"], ["a,b"], ["a", "a"]])
    func invalidSubprotocols(_ names: [String]) {
        #expect(throws: HTTPError.self) { _ = try OpeningHandshake(WebSocketOptions { $0.subprotocols = names }) }
    }

    private func check(
        _ change: (inout HTTPFields) -> Void,
        _ options: WebSocketOptions = WebSocketOptions { $0.subprotocols = ["a", "b"] }
    ) throws -> String? {
        let handshake = try OpeningHandshake(options)
        var fields = HTTPFields()
        fields[.secWebSocketAccept] = OpeningHandshake.accept(handshake.key)
        fields[.connection] = "keep-alive, upgrade"
        change(&fields)
        return try handshake.check(fields).0
    }

    @Test("The server may choose one of the offered subprotocols, or none")
    func subprotocols() throws {
        #expect(try check { _ in } == nil)
        #expect(try check { $0[.secWebSocketProtocol] = "b" } == "b")
        for value in ["c", "a, b", "A", ""] {
            #expect(throws: WebSocketError.self, "\(value)") { try check { $0[.secWebSocketProtocol] = value } }
        }
        #expect(throws: WebSocketError.self) { try check({ $0[.secWebSocketProtocol] = "a" }, WebSocketOptions()) }
    }

    @Test("A wrong, missing or repeated Sec-WebSocket-Accept is an error")
    func wrongAccept() {
        #expect(throws: WebSocketError.self) { try check { $0[.secWebSocketAccept] = nil } }
        #expect(throws: WebSocketError.self) { try check { $0[.secWebSocketAccept] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" } }
        #expect(throws: WebSocketError.self) {
            try check { $0.append(HTTPField(name: .secWebSocketAccept, value: $0[.secWebSocketAccept] ?? "")) }
        }
    }

    @Test("An offer names the parameters that differ from the defaults")
    func offers() {
        var compression = WebSocketCompression()
        #expect(DeflateNegotiation.offer(compression) == "permessage-deflate; client_max_window_bits")
        (compression.clientMaximumWindowBits, compression.serverMaximumWindowBits) = (10, -5)
        (compression.clientNoContextTakeover, compression.serverNoContextTakeover) = (true, true)
        #expect(
            DeflateNegotiation.offer(compression)
                == "permessage-deflate; client_max_window_bits=10; server_max_window_bits=9; "
                + "client_no_context_takeover; server_no_context_takeover")
    }

    @Test("The parameters of a reply apply to their directions")
    func replies() throws {
        let offer = WebSocketCompression()
        #expect(try DeflateNegotiation.parse([], offer: offer) == nil)
        #expect(try DeflateNegotiation.parse(["Permessage-Deflate"], offer: offer) == DeflateNegotiation())
        let all = try DeflateNegotiation.parse(
            [
                " permessage-deflate ;server_max_window_bits=\"10\" ; client_max_window_bits = 12;server_no_context_takeover"
            ],
            offer: offer)
        var expected = DeflateNegotiation()
        (expected.serverWindowBits, expected.clientWindowBits, expected.serverNoContextTakeover) = (10, 12, true)
        #expect(all == expected)
    }

    @Test(
        "A reply that was not offered, or that RFC 7692 does not allow, is an error",
        arguments: [
            "", "x-webkit-deflate-frame", "permessage-deflate, permessage-deflate", "permessage-deflate; unknown",
            "permessage-deflate; server_no_context_takeover=1", "permessage-deflate; client_no_context_takeover=",
            "permessage-deflate; server_max_window_bits", "permessage-deflate; server_max_window_bits=7",
            "permessage-deflate; server_max_window_bits=16", "permessage-deflate; server_max_window_bits=09",
            "permessage-deflate; client_max_window_bits", "permessage-deflate; client_max_window_bits=0",
            "permessage-deflate; client_max_window_bits=9; client_max_window_bits=9", "permessage-deflate;",
            "permessage-deflate; server_max_window_bits=\"9", "permessage-deflate; =9",
        ])
    func invalidReplies(_ reply: String) {
        #expect(throws: WebSocketError.self) {
            try DeflateNegotiation.parse([reply], offer: WebSocketCompression())
        }
    }

    @Test("A server must respect a smaller window and a missing context, and offers nothing by itself")
    func ignoredOffers() throws {
        var offer = WebSocketCompression()
        offer.serverMaximumWindowBits = 10
        for reply in ["permessage-deflate", "permessage-deflate; server_max_window_bits=11"] {
            #expect(throws: WebSocketError.self) { try DeflateNegotiation.parse([reply], offer: offer) }
        }
        offer = WebSocketCompression()
        offer.serverNoContextTakeover = true
        #expect(throws: WebSocketError.self) { try DeflateNegotiation.parse(["permessage-deflate"], offer: offer) }
        #expect(throws: WebSocketError.self) { try DeflateNegotiation.parse(["permessage-deflate"], offer: nil) }
    }

    @Test("Each offer allows the replies that respect it, in both directions", arguments: 9...15, [false, true])
    func negotiations(_ offered: Int, _ isWithout: Bool) throws {
        for replied in [nil, 8, 9, 10, 11, 12, 13, 14, 15] as [Int?] {
            for isReplyWithout in [false, true] {
                func reply(_ side: String) -> String {
                    "permessage-deflate" + (replied.map { "; \(side)_max_window_bits=\($0)" } ?? "")
                        + (isReplyWithout ? "; \(side)_no_context_takeover" : "")
                }
                var offer = WebSocketCompression()
                (offer.serverMaximumWindowBits, offer.serverNoContextTakeover) = (offered, isWithout)
                var expected = DeflateNegotiation()
                (expected.serverWindowBits, expected.serverNoContextTakeover) = (replied ?? 15, isReplyWithout)
                let isAllowed = replied ?? 15 <= offered && (isReplyWithout || !isWithout)
                let result = try? DeflateNegotiation.parse([reply("server")], offer: offer)
                #expect(result == (isAllowed ? expected : nil))
                // A server may demand less of the client, and may ignore the limit, which the client keeps.
                offer = WebSocketCompression()
                (offer.clientMaximumWindowBits, offer.clientNoContextTakeover) = (offered, isWithout)
                expected = DeflateNegotiation()
                expected.clientWindowBits = min(replied ?? 15, offered)
                expected.clientNoContextTakeover = isWithout || isReplyWithout
                #expect(try DeflateNegotiation.parse([reply("client")], offer: offer) == expected)
            }
        }
    }
}
