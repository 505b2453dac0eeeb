import MartletWire
import Testing

@Suite("Field blocks")
struct FieldBlockTests {
    private let block = FieldBlock([
        ("Set-Cookie", "a=1"), ("VARY", "x, Y"), ("set-cookie", "b=2"), ("Vary", "\"q, z\", w"),
    ])

    @Test("A name is found in any case, with all its values in order")
    func lookUp() {
        #expect(block.values(of: "SET-cookie") == ["a=1", "b=2"])
        #expect(block.firstValue(of: "vary") == "x, Y")
        #expect(block.firstIndex(of: "Vary", from: 2) == 3)
        #expect(block.contains("Set-Cookie"))
        #expect(!block.contains("Set-Cookie2"))
        #expect(!block.contains("Set-Cooki"))
        #expect(block.values(of: "") == [])
    }

    @Test(
        "Names of any length are found, and names of different lengths never match", arguments: 1...140
    )
    func lengths(length: Int) {
        let name = String(repeating: "n", count: length)
        let block = FieldBlock([("x", "0"), (name + "a", "1"), (name.uppercased() + "B", "2")])
        #expect(block.firstIndex(of: name + "A") == 1)
        #expect(block.firstIndex(of: name + "b") == 2)
        #expect(!block.contains(name))
        #expect(!block.contains(name + "aa"))
    }

    @Test("Only letters are case-insensitive: an @ does not match a grave accent")
    func caseOfLettersOnly() {
        let block = FieldBlock([("a`b", "1"), ("a^", "2")])
        #expect(!block.contains("a@b"))
        #expect(!block.contains("a~"))
        #expect(block.contains("A`B"))
    }

    @Test("A token matches a whole list member, in any case and on any line")
    func tokens() {
        #expect(block.contains("vary", token: "y"))
        #expect(block.contains("vary", token: "W"))
        #expect(!block.contains("vary", token: "z"))
        #expect(!block.contains("vary", token: "x,"))
        #expect(!block.contains("missing", token: "x"))
    }

    @Test("Fields are iterated as names and values")
    func walk() {
        var lines: [String] = []
        for (name, value) in block.prefix(2) { lines.append("\(name)=\(value)") }
        #expect(lines == ["Set-Cookie=a=1", "VARY=x, Y"])
        #expect(block.count == 4)
    }

    @Test("Blocks with equal lines are equal wherever their bytes are stored")
    func equality() {
        let parsed = WireScript("HTTP/1.1 204 N\r\nA:  b \r\nC: d\r\n\r\n").run().head?.fields
        #expect(parsed == FieldBlock([("A", "b"), ("C", "d")]))
        #expect(parsed != FieldBlock([("a", "b"), ("C", "d")]))
        #expect(parsed != FieldBlock([("C", "d"), ("A", "b")]))
        #expect(parsed != FieldBlock([("A", "b")]))
        #expect(parsed != FieldBlock([("A", "b"), ("C", "e")]))
    }

    @Test("A value is decoded as UTF-8 if it is valid, else as Latin-1 without loss")
    func text() {
        var block = FieldBlock()
        block.append(name: "A".utf8, value: [0xC3, 0xBC])
        block.append(name: "B".utf8, value: [0xFC, 0x80, 0xFF])
        #expect(block.valueString(at: 0) == "\u{FC}")
        #expect(ByteText.latin1(block.value(at: 0)) == "\u{C3}\u{BC}")
        #expect(block.valueString(at: 1) == "\u{FC}\u{80}\u{FF}")
        #expect(ByteText.latin1Bytes(ByteText.latin1(block.value(at: 1))) == [0xFC, 0x80, 0xFF])
        #expect(ByteText.latin1Bytes("\u{100}") == nil)
    }

    @Test("Fields can be added to a received block, whose own fields stay", arguments: [0, 1, 40])
    func addedToReceived(count: Int) throws {
        let received = (0..<count).map { ("Name-\($0)", "value \($0)") }
        let head = "HTTP/1.1 200 OK\r\n" + received.map { "\($0): \($1)\r\n" }.joined() + "\r\n"
        var parser = HeadParser()
        var block = try #require(try parser.parse(Array(head.utf8).span)).fields
        let copy = block
        block.append(name: "Added", value: "last")
        #expect(block == FieldBlock(received + [("Added", "last")]))
        #expect(block.firstIndex(of: "ADDED") == count)
        #expect(copy == FieldBlock(received) && !copy.contains("added"))
    }

    @Test("A token is found in any element of any field, in any letter case, and only as a whole element")
    func wholeElements() {
        let block = FieldBlock([("Connection", "keep-alive"), ("connection", "Upgrade, CLOSE"), ("Other", "x")])
        #expect(block.contains("Connection", token: "close"))
        #expect(block.contains("CONNECTION", token: "Keep-Alive"))
        #expect(!block.contains("Connection", token: "clos"))
        #expect(!block.contains("Connection", token: "keep"))
        #expect(!block.contains("Other", token: "close"))
        #expect(!block.contains("Connection", token: ""))
    }
}
