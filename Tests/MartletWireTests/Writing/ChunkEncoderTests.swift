import MartletWire
import Testing

@Suite("Outgoing chunks")
struct ChunkEncoderTests {
    @Test("A chunk's footer is sent with the next header, and the last chunk ends the body")
    func chunks() throws {
        var encoder = ChunkEncoder()
        #expect(encoder.header(byteCount: 5) == Array("5\r\n".utf8))
        #expect(encoder.header(byteCount: 255) == Array("\r\nff\r\n".utf8))
        #expect(try encoder.lastChunk() == Array("\r\n0\r\n\r\n".utf8))
        #expect(encoder.header(byteCount: 5).isEmpty)
        #expect(try encoder.lastChunk().isEmpty)
    }

    @Test("A chunk whose bytes are available is sent together with its footer")
    func wholeChunks() throws {
        var encoder = ChunkEncoder()
        let first = encoder.chunk(Array("hello".utf8))
        #expect(first.bytes == Array("5\r\nhello\r\n".utf8) && first.payload == 3..<8)
        #expect(encoder.chunk([]).bytes.isEmpty)
        #expect(encoder.chunk(Array("!".utf8)).bytes == Array("1\r\n!\r\n".utf8))
        #expect(try encoder.lastChunk() == Array("0\r\n\r\n".utf8))
        #expect(encoder.chunk([1]).bytes.isEmpty)
    }

    @Test("An empty payload writes no chunk because an empty chunk would end the body")
    func emptyChunk() throws {
        var encoder = ChunkEncoder()
        #expect(encoder.header(byteCount: 0).isEmpty)
        #expect(try encoder.lastChunk() == Array("0\r\n\r\n".utf8))
    }

    @Test("Trailers follow the last chunk")
    func trailers() throws {
        var encoder = ChunkEncoder()
        let bytes = try encoder.lastChunk(trailers: [("X-Sum", "1")])
        #expect(bytes == Array("0\r\nX-Sum: 1\r\n\r\n".utf8))
    }

    @Test("A trailer that could split the message or change its framing is rejected")
    func badTrailers() {
        var encoder = ChunkEncoder()
        #expect(throws: WireError(.invalidFieldValue, at: 1)) {
            try encoder.lastChunk(trailers: [("A", "b\r\nc")])
        }
        #expect(throws: WireError(.invalidFieldName, at: 1)) {
            try encoder.lastChunk(trailers: [("A B", "c")])
        }
        for name in ["Content-Length", "TRANSFER-ENCODING", "host", "Set-Cookie", "Authorization"] {
            #expect(throws: WireError(.forbiddenTrailer, at: 0)) {
                try encoder.lastChunk(trailers: [(name, "1")])
            }
        }
    }

    @Test("The decoder reads back the chunks and trailers of the encoder")
    func roundTrip() throws {
        var encoder = ChunkEncoder()
        var bytes: [UInt8] = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        for payload in ["hello", "", ", ", "world, and more than sixteen bytes"] {
            bytes += encoder.header(byteCount: payload.utf8.count)
            bytes += Array(payload.utf8)
        }
        bytes += try encoder.lastChunk(trailers: [("X-Sum", "1")])
        let outcome = WireScript(bytes: bytes).run()
        #expect(outcome.body == "hello, world, and more than sixteen bytes")
        #expect(outcome.trailers == FieldBlock([("X-Sum", "1")]))
    }
}
