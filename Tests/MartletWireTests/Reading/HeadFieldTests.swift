import MartletWire
import Testing

@Suite("Fields of a head")
struct HeadFieldTests {
    private func outcome(_ lines: String, limits: WireLimits = .default) -> WireOutcome {
        WireScript("HTTP/1.1 204 No Content\r\n\(lines)\r\n", limits: limits).run()
    }

    /// The offset of the first field line.
    private let start = 25

    @Test("Fields retain their order, case, duplicates and bytes")
    func order() {
        let fields = outcome("B: 1\r\na: 2\r\nB: 3\r\nx-unknown: ?\r\n").head?.fields
        #expect(fields == FieldBlock([("B", "1"), ("a", "2"), ("B", "3"), ("x-unknown", "?")]))
    }

    @Test("White space around a value is trimmed, and inside it is retained")
    func trimming() {
        let fields = outcome("A: \t one \t two\t \r\nB:three\r\nC: \r\nD:\r\n").head?.fields
        #expect(fields == FieldBlock([("A", "one \t two"), ("B", "three"), ("C", ""), ("D", "")]))
    }

    @Test("A control byte is found at any position of a value of any length", arguments: 1...20)
    func controlBytes(length: Int) {
        for (position, byte) in (0..<length).flatMap({ position in
            [0x00, 0x0B, 0x1F, 0x7F].map { (position, UInt8($0)) }
        }) {
            var value = [UInt8](repeating: 0xC3, count: length)
            value[position] = byte
            for rest in ["\r\n\r\n", "\r\nB: x\r\n\r\n"] {
                let bytes = Array("HTTP/1.1 204 No Content\r\nA:".utf8) + value + Array(rest.utf8)
                let fault = WireScript(bytes: bytes).run().fault
                #expect(fault == WireError(.malformedFieldValue(byte), at: start + 2 + position))
            }
        }
    }

    @Test(
        "A tab inside a value, bytes above ASCII and bytes after the value are accepted", arguments: 1...20)
    func harmlessBytes(length: Int) {
        var value = [UInt8](repeating: 0xFF, count: length)
        if length > 2 { value[length / 2] = 0x09 }
        let bytes = Array("HTTP/1.1 204 No Content\r\nA:".utf8) + value + Array("\r\nB: x\r\n\r\n".utf8)
        #expect((WireScript(bytes: bytes).run().head?.fields.value(at: 0)).map(Array.init) == value)
    }

    @Test("Only SP and HTAB are white space: a no-break space is retained")
    func noOtherTrimming() {
        let bytes = Array("HTTP/1.1 204 N\r\nA: ".utf8) + [0xA0, 0x41, 0xA0] + Array("\r\n\r\n".utf8)
        let fields = WireScript(bytes: bytes).run().head?.fields
        #expect(fields?.value(at: 0) == [0xA0, 0x41, 0xA0])
    }

    @Test("A UTF-8 value is decoded as UTF-8")
    func utf8() {
        #expect(outcome("A: gr\u{FC}n\r\n").head?.fields.firstValue(of: "a") == "gr\u{FC}n")
    }

    @Test("A head without fields is complete")
    func noFields() {
        #expect(outcome("").head?.fields.isEmpty == true)
    }

    @Test("A folded line is joined to its value with one space")
    func fold() {
        let fields = outcome("X-A: one\r\n two\r\nB: x\r\n").head?.fields
        #expect(fields == FieldBlock([("X-A", "one two"), ("B", "x")]))
    }

    @Test("Several folds with any blanks around them leave no line end in the value")
    func manyFolds() {
        let fields = outcome("A: one \r\n\t  two\t\r\n \r\n three\r\nB:\r\n  late\r\nC: 1\n 2\r\n").head?
            .fields
        #expect(fields == FieldBlock([("A", "one two three"), ("B", "late"), ("C", "1 2")]))
    }

    @Test("Strict mode rejects a folded line")
    func strictFold() {
        var limits = WireLimits()
        limits.isStrict = true
        #expect(
            outcome("X-A: one\r\n two\r\n", limits: limits).fault == WireError(.obsoleteFold, at: start + 10))
    }

    @Test("A folded line without a preceding field is rejected")
    func misplacedFold() {
        #expect(outcome(" A: b\r\n").fault == WireError(.misplacedFold, at: start))
    }

    @Test("White space before the colon is rejected", arguments: [" ", "\t", "  \t"])
    func whitespaceBeforeColon(blanks: String) {
        let fault = outcome("Transfer-Encoding\(blanks): chunked\r\n").fault
        #expect(fault == WireError(.whitespaceBeforeColon, at: start + 17))
    }

    @Test("A line without a colon is rejected", arguments: [("garbage", 7), ("some garbage", 4)])
    func missingColon(line: String, index: Int) {
        #expect(outcome("\(line)\r\nA: b\r\n").fault == WireError(.missingColon, at: start + index))
    }

    @Test("A field without a name is rejected", arguments: [":", ": value", ":a:b"])
    func emptyName(line: String) {
        #expect(outcome("\(line)\r\n").fault == WireError(.emptyFieldName, at: start))
    }

    @Test("A space inside a name is rejected")
    func spaceInName() {
        #expect(outcome("a b: c\r\n").fault == WireError(.malformedFieldName(0x20), at: start + 1))
    }

    @Test("A name accepts exactly the token bytes", arguments: UInt8.min...UInt8.max)
    func nameBytes(byte: UInt8) throws {
        let isToken = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8
            .contains(byte)
        #expect(ByteClass.isToken(byte) == isToken)
        if byte == 0x3A || byte == 0x0A { return }
        // The test covers each position in a word of eight bytes and after it, because names are scanned eight bytes at
        // a time.
        for index in 0..<18 {
            var name = [UInt8](repeating: 0x61, count: 18)
            name[index] = byte
            var parser = HeadParser()
            let head = Array("HTTP/1.1 200 OK\r\n".utf8) + name + Array(": v\r\n\r\n".utf8)
            if isToken {
                #expect(try parser.parse(head.span)?.fields.name(at: 0) == name[...])
            } else {
                #expect(throws: WireError.self) { try parser.parse(head.span) }
            }
        }
    }

    @Test("A value accepts exactly HTAB and the bytes from SP up, except DEL", arguments: UInt8.min...UInt8.max)
    func valueBytes(byte: UInt8) throws {
        let isAllowed = byte == 0x09 || (byte >= 0x20 && byte != 0x7F)
        #expect(ByteClass.isFieldValue(byte) == isAllowed)
        if byte == 0x0A { return }
        for index in 1..<17 {
            var value = [UInt8](repeating: 0x61, count: 18)
            value[index] = byte
            var parser = HeadParser()
            let head = Array("HTTP/1.1 200 OK\r\nA: ".utf8) + value + Array("\r\n\r\n".utf8)
            if isAllowed {
                #expect(try parser.parse(head.span)?.fields.value(at: 0) == value[...])
            } else {
                let code: WireErrorCode = byte == 0x0D ? .bareCarriageReturn : .malformedFieldValue(byte)
                #expect(throws: WireError(code, at: 20 + index)) { try parser.parse(head.span) }
            }
        }
    }

    @Test("NUL in a value is rejected with its position")
    func nul() {
        #expect(outcome("A: b\0c\r\n").fault == WireError(.malformedFieldValue(0), at: start + 4))
    }

    @Test(
        "A lone CR is rejected at any position",
        arguments: [("A: b\rc\r\n", 4), ("A\r: b\r\n", 1), ("\rA: b\r\n", 0), ("A: b\r\r\n", 4)])
    func carriageReturn(lines: String, index: Int) {
        #expect(outcome(lines).fault == WireError(.bareCarriageReturn, at: start + index))
    }

    @Test("A bare LF ends a line of a head")
    func bareLineFeed() {
        let outcome = WireScript("HTTP/1.1 200 OK\nContent-Length: 2\nA: b\n\nhi").run()
        #expect(outcome.head?.fields == FieldBlock([("Content-Length", "2"), ("A", "b")]))
        #expect(outcome.body == "hi")
    }

    @Test("A bare LF is rejected unless it is tolerated")
    func intolerantLineFeed() {
        var limits = WireLimits()
        limits.toleratesBareLineFeed = false
        #expect(outcome("A: b\n", limits: limits).fault == WireError(.bareLineFeed, at: start + 4))
    }

    @Test("Strict mode rejects a bare LF")
    func strictLineFeed() {
        var limits = WireLimits()
        limits.isStrict = true
        #expect(outcome("A: b\n", limits: limits).fault == WireError(.bareLineFeed, at: start + 4))
    }

    @Test("The error of a rejected head is thrown again, and nothing after it is read")
    func faultIsFinal() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        machine.requestFinished()
        let fault = WireError(.missingColon, at: 20)
        #expect(machine.events(of: "HTTP/1.1 200 OK\r\nbad\r\n") == [.fault(fault)])
        #expect(machine.events(of: "HTTP/1.1 204 No Content\r\n\r\n") == [.fault(fault)])
        #expect(machine.faultOfEnd(isClean: true) == fault)
        let isReusable = machine.isReusable
        #expect(!isReusable)
    }
}
