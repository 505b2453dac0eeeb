import MartletWire
import Testing

@Suite("Request heads")
struct RequestEncoderTests {
    private func text(_ encode: (inout RequestEncoder) throws -> Void) rethrows -> String {
        var encoder = RequestEncoder()
        try encode(&encoder)
        return String(decoding: encoder.bytes, as: UTF8.self)
    }

    /// Returns the error of an encoding, and checks that nothing is left to send even if the caller continues.
    private func fault(_ encode: (inout RequestEncoder) throws(WireError) -> Void) -> WireError? {
        var encoder = RequestEncoder()
        do throws(WireError) {
            try encode(&encoder)
            return nil
        } catch {
            #expect(encoder.bytes.isEmpty)
            #expect(throws: WireError(.encodingOutOfOrder, at: 0)) {
                try encoder.field(name: "A", value: "b")
            }
            encoder.end()
            #expect(encoder.bytes.isEmpty)
            return error
        }
    }

    @Test("A head consists of the request line, the fields in order and an empty line")
    func plain() throws {
        let text = try text {
            try $0.begin(method: "GET", target: "/a?b=c%20d")
            try $0.hostField("example.com")
            try $0.field(name: "X-A", value: "b, c")
            try $0.field(name: "Empty", value: "")
            $0.end()
        }
        #expect(text == "GET /a?b=c%20d HTTP/1.1\r\nHost: example.com\r\nX-A: b, c\r\nEmpty: \r\n\r\n")
    }

    @Test("Reused memory leaves no bytes in a head, and a copy of its former contents is unchanged")
    func reusedMemory() throws {
        let former = Array("GET /secret HTTP/1.1\r\n\r\n".utf8)
        var encoder = RequestEncoder(reusing: former)
        #expect(encoder.bytes.isEmpty)
        try encoder.begin(method: "PUT", target: "/")
        encoder.end()
        #expect(encoder.bytes == Array("PUT / HTTP/1.1\r\n\r\n".utf8))
        #expect(former == Array("GET /secret HTTP/1.1\r\n\r\n".utf8))
    }

    @Test(
        "Other forms of a target and HTTP/1.0 are written unchanged",
        arguments: ["*", "http://a/b", "a:443", "/"])
    func targets(target: String) throws {
        let text = try text {
            try $0.begin(method: "OPTIONS", target: target, version: .http10)
            $0.end()
        }
        #expect(text == "OPTIONS \(target) HTTP/1.0\r\n\r\n")
    }

    @Test(
        "A method that is not a token is rejected",
        arguments: [("GE T", 2), ("GET\r\nX: y", 3), ("", 0), ("G\0", 1), ("GÉT", 1), ("GET:", 3)])
    func method(method: String, index: Int) {
        let fault = fault { encoder throws(WireError) in try encoder.begin(method: method, target: "/") }
        #expect(fault == WireError(.invalidMethod, at: index))
        #expect(fault?.isLocalError == true)
    }

    @Test(
        "A target that could end the line is rejected",
        arguments: [
            ("/a b", 2), ("/a\r\nX: y", 2), ("/a\nb", 2), ("/\0", 1), ("", 0), ("/\t", 1), ("/\u{E9}", 1),
            ("/a HTTP/1.1\r\n\r\n", 2),
            ("/\u{7F}", 1),
        ])
    func target(target: String, index: Int) {
        let fault = fault { encoder throws(WireError) in try encoder.begin(method: "GET", target: target) }
        #expect(fault == WireError(.invalidTarget, at: index))
    }

    @Test(
        "A field name that is not a token is rejected",
        arguments: [
            ("", 0), ("A B", 1), ("A:", 1), ("A\r\nB", 1), ("A\n", 1), ("A\0", 1), ("\u{C4}", 0),
            ("aaaaaaaaaaaa\r", 12),
        ])
    func name(name: String, index: Int) {
        let fault = fault { encoder throws(WireError) in
            try encoder.begin(method: "GET", target: "/")
            try encoder.field(name: name, value: "v")
        }
        #expect(fault == WireError(.invalidFieldName, at: index))
    }

    @Test(
        "A field value with a control byte is rejected, as text and as bytes",
        arguments: ["a\r\nb", "\r", "\n", "\0", "\u{1}", "\u{7F}", "\u{B}", "\r\nA: b", "aaaaaaaaaaaaaaaa\n"])
    func value(value: String) {
        let index = value.utf8.firstIndex { $0 < 0x20 || $0 == 0x7F }.map {
            value.utf8.distance(from: value.startIndex, to: $0)
        }
        let expected = index.map { WireError(.invalidFieldValue, at: $0) }
        let asText = fault { encoder throws(WireError) in
            try encoder.begin(method: "GET", target: "/")
            try encoder.field(name: "A", value: value)
        }
        #expect(asText == expected)
        let asBytes = fault { encoder throws(WireError) in
            try encoder.begin(method: "GET", target: "/")
            try encoder.field(name: "A", rawValue: Array(value.utf8))
        }
        #expect(asBytes == expected)
    }

    @Test("HTAB, UTF-8 and raw Latin-1 are written unchanged")
    func highBytes() throws {
        var encoder = RequestEncoder()
        try encoder.begin(method: "GET", target: "/")
        try encoder.field(name: "A", value: "\u{FC}\tx")
        try encoder.field(name: "B", rawValue: [0xFC])
        encoder.end()
        let expected = Array("GET / HTTP/1.1\r\nA: \u{FC}\tx\r\nB: ".utf8) + [0xFC] + Array("\r\n\r\n".utf8)
        #expect(encoder.bytes == expected)
    }

    @Test(
        "A complete Host field is rejected if it could end the line or name two hosts",
        arguments: ["a\r\nb", "a b", "a/b", "a@b", "a#b", "a?b", "a\\b", "a,b", "a, b", "a\0", "\u{E9}"])
    func badHostField(value: String) {
        let fault = fault { encoder throws(WireError) in
            try encoder.begin(method: "GET", target: "/")
            try encoder.hostField(value)
        }
        #expect(fault?.code == .invalidHost)
    }

    @Test(
        "A valid Host field is written unchanged, even if it is empty",
        arguments: ["a.example:8080", "[::1]:80", ""])
    func hostField(value: String) throws {
        let text = try text {
            try $0.begin(method: "GET", target: "/")
            try $0.hostField(value)
            $0.end()
        }
        #expect(text == "GET / HTTP/1.1\r\nHost: \(value)\r\n\r\n")
    }

    @Test("A second Cookie or Host line is rejected", arguments: ["Cookie", "HOST"])
    func repeated(name: String) {
        let fault = fault { encoder throws(WireError) in
            try encoder.begin(method: "GET", target: "/")
            try encoder.field(name: name, value: "a")
            try encoder.field(name: name.lowercased(), value: "a")
        }
        #expect(fault?.code == .repeatedField)
    }

    @Test(
        "A request never has two framing fields", arguments: ["Content-Length", "transfer-ENCODING"],
        ["content-length", "Transfer-Encoding"])
    func framingConflict(first: String, second: String) {
        let fault = fault { encoder throws(WireError) in
            try encoder.begin(method: "POST", target: "/")
            try encoder.field(name: first, value: "5")
            try encoder.field(name: second, value: "5")
        }
        #expect(fault?.code == .conflictingFraming)
    }

    @Test("A body is framed by its length or in chunks")
    func framing() throws {
        let length = try text {
            try $0.begin(method: "POST", target: "/")
            try $0.framing(.length(12))
            $0.end()
        }
        #expect(length == "POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\n")
        let chunked = try text {
            try $0.begin(method: "POST", target: "/")
            try $0.framing(.chunked)
            try $0.framing(.none)
            $0.end()
        }
        #expect(chunked == "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    }

    @Test("A request body never ends with the connection")
    func untilClose() {
        let fault = fault { encoder throws(WireError) in
            try encoder.begin(method: "POST", target: "/")
            try encoder.framing(.untilClose)
        }
        #expect(fault?.code == .conflictingFraming)
    }

    @Test("A field before the start line is rejected")
    func outOfOrder() {
        let fault = fault { encoder throws(WireError) in try encoder.field(name: "A", value: "b") }
        #expect(fault?.code == .encodingOutOfOrder)
    }

    @Test("After a rejected request the next request is complete")
    func recovery() throws {
        var encoder = RequestEncoder()
        #expect(throws: WireError.self) { try encoder.begin(method: "G T", target: "/") }
        try encoder.begin(method: "GET", target: "/")
        encoder.end()
        #expect(encoder.bytes == Array("GET / HTTP/1.1\r\n\r\n".utf8))
    }

    @Test("The server machine reads back the requests of the encoder")
    func roundTrip() throws {
        var encoder = RequestEncoder()
        try encoder.begin(method: "PATCH", target: "/x?y#z")
        try encoder.hostField("[::1]:8080")
        try encoder.field(name: "X-Text", value: "gr\u{FC}n")
        try encoder.framing(.length(2))
        encoder.end()
        let outcome = RequestScript(bytes: encoder.bytes + Array("hi".utf8)).run()
        let fields = FieldBlock([("Host", "[::1]:8080"), ("X-Text", "gr\u{FC}n"), ("Content-Length", "2")])
        #expect(outcome.request == RequestHead(method: "PATCH", target: "/x?y#z", fields: fields))
        #expect(outcome.body == "hi")
    }
}
