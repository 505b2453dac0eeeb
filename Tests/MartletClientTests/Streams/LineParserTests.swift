import MartletConditions
import MartletCore
import MartletStreams
import MartletTransport
import Testing

@Suite("Splitting a byte stream into lines")
struct LineParserTests {
    /// Returns all lines of a text that is fed in pieces of a size, and whether a line was too long.
    private func lines(
        _ text: String, _ ending: LineParser.Ending = .lineFeed, limit: Int = 1000, size: Int
    ) -> (lines: [String], isTooLong: Bool) {
        var parser = LineParser(ending: ending, limit: limit)
        var lines: [String] = []
        let bytes = Array(text.utf8)
        do throws(LineParser.TooLong) {
            for start in stride(from: 0, to: bytes.count, by: size) {
                parser.feed(bytes[start..<min(start + size, bytes.count)])
                while let line = try parser.next() { lines.append(String(decoding: line, as: UTF8.self)) }
            }
            if let line = try parser.rest() { lines.append(String(decoding: line, as: UTF8.self)) }
        } catch {
            return (lines, true)
        }
        return (lines, false)
    }

    /// Checks that a text gives the same lines with pieces of any size.
    private func expect(
        _ text: String, _ ending: LineParser.Ending = .lineFeed, limit: Int = 1000,
        becomes expected: [String],
        isTooLong: Bool = false, _ location: SourceLocation = #_sourceLocation
    ) {
        for size in 1...max(1, text.utf8.count) {
            let found = lines(text, ending, limit: limit, size: size)
            #expect(found.lines == expected, "in pieces of \(size)", sourceLocation: location)
            #expect(found.isTooLong == isTooLong, "in pieces of \(size)", sourceLocation: location)
        }
    }

    @Test("LF and CR LF end a line, and the text after the last one is a line too")
    func endings() {
        expect("one\ntwo\r\n\nfour", becomes: ["one", "two", "", "four"])
        expect("one\n", becomes: ["one"])
        expect("\n", becomes: [""])
    }

    @Test("A lone CR is part of the line")
    func lonelyReturn() {
        expect("a\rb\r\r\nc\r", becomes: ["a\rb\r", "c\r"])
    }

    @Test("With any ending allowed, a lone CR ends a line, and CR LF is one ending")
    func anyEnding() {
        expect("a\rb\r\nc\n\rd\r\r\n", .any, becomes: ["a", "b", "c", "", "d", ""])
    }

    @Test("A line that ends with CR is delivered before the LF arrives")
    func promptReturn() throws {
        var parser = LineParser(ending: .any, limit: 10)
        parser.feed(Array("a\r".utf8))
        #expect(try parser.next() == Array("a".utf8))
        parser.feed(Array("\nb\r".utf8))
        #expect(try parser.next() == Array("b".utf8))
        #expect(try parser.next() == nil)
    }

    @Test("A byte order mark is skipped only at the beginning")
    func mark() {
        expect("\u{FEFF}a\n\u{FEFF}b", becomes: ["a", "\u{FEFF}b"])
        expect("\u{FEFF}\u{FEFF}a\n", becomes: ["\u{FEFF}a"])
        expect("\u{FEFF}", becomes: [])
        expect("\u{FEFF}\n", becomes: [""])
        #expect(lines("\u{FEFF}abc\n", limit: 3, size: 1).lines == ["abc"])
    }

    @Test("An incomplete byte order mark is part of the line")
    func halfMark() throws {
        var parser = LineParser(ending: .lineFeed, limit: 2)
        parser.feed([0xEF])
        #expect(try parser.next() == nil)
        parser.feed([0xBB])
        #expect(try parser.next() == nil)
        #expect(try parser.rest() == [0xEF, 0xBB])
    }

    @Test("A line of exactly the limit is delivered, and one more byte is an error")
    func limit() {
        expect("abc\nabc\r\nabc", limit: 3, becomes: ["abc", "abc", "abc"])
        expect("abc\nabcd\nx", limit: 3, becomes: ["abc"], isTooLong: true)
        expect("abcd", limit: 3, becomes: [], isTooLong: true)
        expect("\n\na", limit: 0, becomes: ["", ""], isTooLong: true)
    }

    @Test("An endless line is an error before more than the limit is stored")
    func endless() throws {
        var parser = LineParser(ending: .lineFeed, limit: 100)
        var fed = 0
        #expect(throws: LineParser.TooLong(limit: 100)) {
            while fed < 1000 {
                parser.feed([UInt8](repeating: 0x61, count: 10))
                fed += 10
                _ = try parser.next()
            }
        }
        #expect(fed == 110)
        #expect(throws: LineParser.TooLong.self) { try parser.rest() }
    }

    @Test("An empty stream has no lines")
    func empty() throws {
        var parser = LineParser(ending: .lineFeed, limit: 1)
        #expect(try parser.next() == nil)
        parser.feed([])
        #expect(try parser.rest() == nil)
    }

    @Test("A megabyte of line feeds takes linear time")
    func linear() throws {
        var parser = LineParser(ending: .any, limit: 10)
        parser.feed([UInt8](repeating: 0x0A, count: 200_000))
        let (count, time) = try ThreadTime.of {
            var count = 0
            while try parser.next() != nil { count += 1 }
            return count
        }
        #expect(count == 200_000)
        #expect(time < .seconds(20))
    }
}
