import MartletWire
import Testing

@Suite("Byte ranges")
struct RangeTests {
    @Test(
        "A Range field is parsed and formatted",
        arguments: [
            ("bytes=0-499", [ByteRange.closed(0, 499)]), ("bytes=500-", [.from(500)]),
            ("bytes=-500", [.suffix(500)]),
            ("bytes=0-0,-1", [.closed(0, 0), .suffix(1)]),
        ])
    func range(text: String, ranges: [ByteRange]) {
        #expect(RangeField(parsing: text)?.ranges == ranges)
        #expect(RangeField(ranges)?.text == text)
    }

    @Test("Units in any case and blanks around commas are accepted")
    func lenientRange() {
        #expect(RangeField(parsing: "Bytes= 1-2 , 4- ,")?.ranges == [.closed(1, 2), .from(4)])
    }

    @Test(
        "A malformed Range field is ignored",
        arguments: [
            "", "bytes", "bytes=", "bytes=,", "bytes=a-b", "bytes=5-2", "bytes=-", "items=0-1", "bytes=1",
            "bytes=0x1-2",
            "bytes=+1-2", "bytes=1--2", "bytes 0-1", "bytes=9223372036854775808-",
            "bytes=0-99999999999999999999",
        ])
    func malformedRange(text: String) {
        #expect(RangeField(parsing: text) == nil)
    }

    @Test("A Range field with more than 64 ranges is ignored")
    func rangeFlood() {
        let flood = "bytes=" + String(repeating: "0-1,", count: 65)
        #expect(RangeField(parsing: flood) == nil)
        #expect(RangeField(parsing: "bytes=" + String(repeating: "0-1,", count: 64))?.ranges.count == 64)
        #expect(RangeField([]) == nil)
    }

    @Test(
        "A range is resolved against the length",
        arguments: [
            (ByteRange.closed(0, 4), 0..<5), (.closed(8, 100), 8..<10), (.from(9), 9..<10),
            (.suffix(3), 7..<10),
            (.suffix(100), 0..<10), (.closed(0, .max), 0..<10),
        ])
    func resolved(range: ByteRange, expected: Range<UInt64>) {
        #expect(range.resolved(in: 10) == expected)
    }

    @Test(
        "A range beyond the length is unsatisfiable",
        arguments: [ByteRange.closed(10, 12), .from(10), .suffix(0), .from(.max), .closed(5, 4)])
    func unsatisfiable(range: ByteRange) {
        #expect(range.resolved(in: 10) == nil)
    }

    @Test("No range of an empty representation is satisfiable")
    func emptyRepresentation() {
        #expect(RangeField(parsing: "bytes=0-,-5,0-0")?.resolved(in: 0) == [])
    }

    @Test(
        "A Content-Range field is parsed and formatted",
        arguments: [
            ("bytes 0-499/1234", ContentRange.satisfied(0..<500, total: 1234)),
            ("bytes 0-499/*", .satisfied(0..<500, total: nil)),
            ("bytes */1234", .unsatisfied(total: 1234)), ("bytes 0-0/1", .satisfied(0..<1, total: 1)),
        ])
    func contentRange(text: String, expected: ContentRange) {
        #expect(ContentRange(parsing: text) == expected)
        #expect(expected.text == text)
    }

    @Test(
        "A malformed or contradictory Content-Range is ignored",
        arguments: [
            "", "bytes", "bytes 0-499", "bytes */*", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-1/x",
            "bytes -1/10", "bytes 1-/10",
            "items 0-1/10", "bytes=0-1/10", "bytes 0-1/10 x", "bytes 0-99999999999999999999/*",
            "bytes a-b/10",
        ])
    func malformedContentRange(text: String) {
        #expect(ContentRange(parsing: text) == nil)
    }
}
