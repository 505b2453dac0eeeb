import MartletCore
import MartletHosts
import MartletStreams
import Testing

@Suite("Parsing of server-sent events")
struct ServerSentEventParserTests {
    /// The result of parsing a stream.
    private struct Reading: Equatable {
        var events: [ServerSentEvent] = []
        var lastEventID = ""
        var retry: UInt64?
        var isTooLarge = false
    }

    private func read(_ bytes: [UInt8], limit: Int, lastEventID: String, size: Int) -> Reading {
        var parser = ServerSentEventParser(lastEventID: lastEventID, limit: limit)
        var reading = Reading()
        do throws(ServerSentEventParser.TooLarge) {
            for start in stride(from: 0, to: bytes.count, by: size) {
                parser.feed(bytes[start..<min(start + size, bytes.count)])
                while let event = try parser.next() { reading.events.append(event) }
            }
        } catch {
            reading.isTooLarge = true
        }
        reading.lastEventID = parser.lastEventID
        reading.retry = parser.retryMilliseconds
        return reading
    }

    /// Parses a stream in pieces of any size, and checks that all results are equal.
    private func reading(
        _ text: String, limit: Int = 1000, lastEventID: String = "",
        _ location: SourceLocation = #_sourceLocation
    ) -> Reading {
        let bytes = Array(text.utf8)
        let whole = read(bytes, limit: limit, lastEventID: lastEventID, size: max(1, bytes.count))
        for size in 1..<max(2, bytes.count) {
            let pieces = read(bytes, limit: limit, lastEventID: lastEventID, size: size)
            #expect(pieces == whole, "in pieces of \(size)", sourceLocation: location)
        }
        return whole
    }

    @Test("An event consists of its fields up to an empty line")
    func one() {
        let found = reading("event: add\ndata: 73857293\nid: 7\n\n")
        #expect(found.events == [ServerSentEvent(event: "add", data: "73857293", id: "7")])
        #expect(found.lastEventID == "7")
    }

    @Test("Several data fields are lines of one event")
    func lines() {
        let found = reading("data: YHOO\ndata: +2\ndata: 10\n\n")
        #expect(found.events == [ServerSentEvent(data: "YHOO\n+2\n10")])
    }

    @Test("The standard's example with comments, IDs and an unfinished event is parsed")
    func standardExample() {
        let found = reading(
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event")
        #expect(
            found.events == [
                ServerSentEvent(data: "first event", id: "1"), ServerSentEvent(data: "second event"),
            ])
        #expect(found.lastEventID == "")
    }

    @Test("A data field without a value, or with one space, is an event with an empty text")
    func emptyData() {
        let found = reading("data\n\ndata\ndata\n\ndata:")
        #expect(found.events == [ServerSentEvent(data: ""), ServerSentEvent(data: "\n")])
    }

    @Test("Only one space after the colon is removed")
    func blanks() {
        let found = reading("data:test\n\ndata: test\n\ndata:  test\n\ndata:\ttest\n\n")
        #expect(found.events.map(\.data) == ["test", "test", " test", "\ttest"])
    }

    @Test("LF, CR LF and CR end lines in any mixture")
    func endings() {
        let found = reading("data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\rdata: e\n\n")
        #expect(found.events.map(\.data) == ["a\nb\nc", "d", "e"])
    }

    @Test("An event that ends with CR is dispatched before its LF arrives")
    func promptDispatch() throws {
        var parser = ServerSentEventParser(limit: 100)
        parser.feed(Array("data: a\r\n\r".utf8))
        #expect(try parser.next()?.data == "a")
        parser.feed(Array("\ndata: b\n\n".utf8))
        #expect(try parser.next()?.data == "b")
    }

    @Test("A byte order mark at the beginning is not part of the stream")
    func mark() {
        #expect(reading("\u{FEFF}data: a\n\n").events.map(\.data) == ["a"])
        #expect(reading("\u{FEFF}\u{FEFF}data: a\n\n").events.isEmpty)
    }

    @Test("Events without data are not dispatched, and their type is discarded")
    func noData() {
        let found = reading("event: lost\n\nid: 5\n\ndata: a\n\n")
        #expect(found.events == [ServerSentEvent(data: "a", id: "5")])
    }

    @Test("An ID applies to the following events until another one")
    func identifiers() {
        let found = reading("id: 1\ndata: a\n\ndata: b\n\nid:\ndata: c\n\n")
        #expect(found.events.map(\.id) == ["1", "1", ""])
    }

    @Test("An ID with a NUL is ignored")
    func identifierWithNUL() {
        let found = reading("id: 1\ndata: a\n\nid: 2\u{0}3\ndata: b\n\n")
        #expect(found.events.map(\.id) == ["1", "1"])
    }

    @Test("An ID of an incomplete event is ignored")
    func unfinishedIdentifier() {
        let found = reading("id: 1\ndata: a\n\nid: 2\ndata: b\n")
        #expect(found.events.count == 1)
        #expect(found.lastEventID == "1")
    }

    @Test("A stream continues with the ID of the previous one")
    func inheritedIdentifier() {
        let found = reading("data: a\n\n", lastEventID: "9")
        #expect(found.events == [ServerSentEvent(data: "a", id: "9")])
    }

    @Test("A retry field of digits is accepted, even if it overflows")
    func retry() {
        #expect(reading("retry: 1500\n").retry == 1500)
        #expect(reading("retry: 007\n\n").retry == 7)
        #expect(reading("retry: 99999999999999999999999\n").retry == .max)
    }

    @Test("Other retry fields are ignored", arguments: ["-1", "+1", "1.5", "1 ", "1s", "٣", "0x1", ""])
    func badRetry(_ value: String) {
        #expect(reading("retry: 20\nretry: \(value)\n\n").retry == 20)
    }

    @Test("Unknown fields, and names in another case, are ignored")
    func unknown() {
        #expect(reading("Data: a\nda ta: b\n data: c\nfoo\nfoo: bar\n\n").events.isEmpty)
    }

    @Test("Invalid UTF-8 becomes U+FFFD")
    func malformed() {
        let bytes: [UInt8] = Array("data: a".utf8) + [0xFF, 0xC3, 0x0A, 0x0A]
        #expect(read(bytes, limit: 99, lastEventID: "", size: 1).events.map(\.data) == ["a\u{FFFD}\u{FFFD}"])
    }

    @Test("An event at the data limit is delivered, and one byte more is a permanent error")
    func limit() throws {
        #expect(reading("data:abcd\ndata:efgh\n\n", limit: 9).events.map(\.data) == ["abcd\nefgh"])
        let found = reading("data:a\n\ndata:abcd\ndata:efgh\n\ndata:b\n\n", limit: 8)
        #expect(found.isTooLarge, "the line itself is longer than eight bytes")
        #expect(found.events.map(\.data) == ["a"])
        let late = reading("data:a\n\ndata:ab\ndata:cd\ndata:efgh\n\n", limit: 9)
        #expect(late.events.map(\.data) == ["a"])
        #expect(late.isTooLarge)
    }

    @Test("An endless comment is an error")
    func endlessComment() {
        #expect(reading(":" + String(repeating: "x", count: 50), limit: 20).isTooLarge)
    }

    @Test("Any number of comments uses no memory")
    func comments() {
        #expect(reading(String(repeating: ":\n", count: 100), limit: 2) == Reading())
    }
}
