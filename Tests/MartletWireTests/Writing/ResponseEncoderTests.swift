import MartletWire
import Testing

@Suite("Response heads")
struct ResponseEncoderTests {
    @Test("The client machine reads back the responses of the encoder")
    func roundTrip() throws {
        var encoder = ResponseEncoder()
        try encoder.begin(status: 404, reason: "Not Found")
        try encoder.field(name: "Server", value: "x")
        try encoder.field(name: "A", value: "gr\u{FC}n")
        try encoder.field(name: "B", rawValue: [0xFC])
        try encoder.framing(.length(2))
        encoder.end()
        let outcome = WireScript(bytes: encoder.bytes + Array("no".utf8)).run()
        #expect(outcome.head?.status == 404)
        #expect(outcome.head?.reason == "Not Found")
        #expect(outcome.head?.fields.values(of: "b") == ["\u{FC}"])
        #expect(outcome.body == "no")
    }

    @Test("A chunked head has its framing field, and a head that ends with the connection has none")
    func framings() throws {
        var encoder = ResponseEncoder()
        try encoder.begin(status: 200, version: .http10)
        try encoder.framing(.untilClose)
        encoder.end()
        #expect(encoder.bytes == Array("HTTP/1.0 200 \r\n\r\n".utf8))
        try encoder.begin(status: 200, reason: "OK")
        try encoder.framing(.chunked)
        encoder.end()
        #expect(encoder.bytes == Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
    }

    @Test("A status outside 100...999 is rejected", arguments: [99, 1000, -1, Int.max])
    func badStatus(status: Int) {
        var encoder = ResponseEncoder()
        #expect(throws: WireError(.invalidStatus, at: 0)) { try encoder.begin(status: status) }
        #expect(encoder.bytes.isEmpty)
    }

    @Test("A reason phrase that could end the line is rejected")
    func badReason() {
        var encoder = ResponseEncoder()
        #expect(throws: WireError(.invalidReason, at: 1)) {
            try encoder.begin(status: 200, reason: "O\r\nX: y")
        }
        #expect(encoder.bytes.isEmpty)
    }
}
