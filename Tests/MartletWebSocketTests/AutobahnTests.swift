import MartletCore
import MartletWebSocket
import Testing

@Suite("WebSocket: the cases of the Autobahn test suite", .timeLimit(.minutes(10)))
struct AutobahnTests {
    private enum Arrival: CaseIterable {
        case together, byFrame, byByte

        func chunks(_ frames: [[UInt8]]) -> [[UInt8]] {
            switch self {
            case .together: [Array(frames.joined())]
            case .byFrame: frames
            case .byByte: frames.joined().map { [$0] }
            }
        }
    }

    @Test("The client answers each case as it should, however the frames arrive", arguments: AutobahnCase.all)
    func replies(_ test: AutobahnCase) async throws {
        for arrival in Arrival.allCases {
            // Large cases are not sent byte by byte.
            if arrival == .byByte, test.frames.joined().count > 70_000 { continue }
            try await withSocket { (socket, server) async throws in
                let client = Task { await echo(socket) }
                for chunk in arrival.chunks(test.frames) { server.transport.send(chunk) }
                var replies: [Reply] = []
                if !test.isClosedByFrames {
                    while replies.count < test.replies.count - 1, let reply = try await server.next() {
                        replies.append(reply)
                    }
                    server.send(close(1000))
                }
                while let reply = try await server.next() { replies.append(reply) }
                #expect(replies.last == test.replies.last, "\(test.number), \(arrival)")
                // Frames and messages of one read are answered by two tasks: the order between them is not defined. A
                // message before an error may be read, but can no longer be returned.
                let isComplete = Set(replies) == Set(test.replies) && replies.count == test.replies.count
                #expect(
                    isComplete || (test.isClosedByFrames && Set(replies).isSubset(of: test.replies)),
                    "\(test.number), \(arrival): \(replies.count) replies")
                server.transport.end()
                let error = await client.value
                let code = test.replies.last
                #expect((error == nil) == [.close(1000), .close(1001), .close(1005)].contains(code), "\(test.number)")
                #expect(await server.transport.isClosed.becomesTrue())
            }
        }
    }
}

@Suite("WebSocket: compressed messages of the Autobahn test suite", .timeLimit(.minutes(10)))
struct AutobahnCompressionTests {
    /// The parameters of sections 12 and 13: the reply of the server to the offer of the client.
    static let replies = [
        "permessage-deflate", "permessage-deflate; server_no_context_takeover",
        "permessage-deflate; client_no_context_takeover", "permessage-deflate; server_max_window_bits=9",
        "permessage-deflate; client_max_window_bits=9", "permessage-deflate; server_max_window_bits=8",
        "permessage-deflate; client_max_window_bits=8",
        "permessage-deflate; server_max_window_bits=15; client_max_window_bits=\"15\"",
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=9; "
            + "client_max_window_bits=9",
    ]

    @Test("Messages of all sizes are returned with all parameters, whole and in fragments", arguments: replies)
    func roundTrip(_ reply: String) async throws {
        let negotiation = try #require(try DeflateNegotiation.parse([reply], offer: WebSocketCompression()))
        let deflater = MessageDeflater(
            windowBits: negotiation.serverWindowBits, keepsContext: !negotiation.serverNoContextTakeover, level: nil)
        try await withSocket(negotiation: negotiation) { (socket, server) async throws in
            let client = Task { await echo(socket) }
            for (index, count) in [0, 16, 64, 256, 1024, 4096, 8192, 32_768, 131_072, 300, 5000].enumerated() {
                let words = (0..<count).map { "\(($0 * 7919) % 1000) " }.joined()
                let payload = Array(words.utf8.prefix(count))
                let message = index % 2 == 0 ? WebSocketMessage(.text, payload) : .binary(payload)
                let compressed = payload.isEmpty ? [0x00] : try deflater.compress(payload[...], isLast: true)
                let opcode: UInt8 = index % 2 == 0 ? 1 : 2
                let cut = index % 3 == 0 ? compressed.count : compressed.count / 2
                var frames = frame(opcode, Array(compressed[..<cut]), fin: cut == compressed.count, bits: 4)
                if cut < compressed.count { frames += frame(0, Array(compressed[cut...])) }
                server.transport.send(frames)
                #expect(try await server.next() == .message(message), "\(count) bytes")
            }
            server.send(close(1000))
            while try await server.next() != nil {}
            server.transport.end()
            #expect(await client.value == nil)
        }
    }

    @Test("A message with a final block, and one without any byte, are read", arguments: [true, false])
    func unusualEncodings(_ keepsContext: Bool) async throws {
        // A stored block that is marked as the last one, and the empty block that then follows (RFC 7692 §7.2.3.4).
        let final: [UInt8] = [0x01, 0x05, 0x00, 0xFA, 0xFF] + Array("Hello".utf8) + [0x00]
        // From RFC 7692 §7.2.3.2: the second one refers to the first.
        let hello: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        let again: [UInt8] = [0xF2, 0x00, 0x11, 0x00, 0x00]
        var negotiation = DeflateNegotiation()
        negotiation.serverNoContextTakeover = !keepsContext
        try await withSocket(negotiation: negotiation) { (socket, server) async throws in
            for bytes in [final, [], hello, hello, [0x00]] { server.send(frame(1, bytes, bits: 4)) }
            if keepsContext { server.send(frame(1, again, bits: 4), close(1000)) } else { server.send(close(1000)) }
            var texts: [String?] = []
            for try await message in socket.messages { texts.append(message.text) }
            #expect(texts == ["Hello", "", "Hello", "Hello", ""] + (keepsContext ? ["Hello"] : []))
        }
    }
}
