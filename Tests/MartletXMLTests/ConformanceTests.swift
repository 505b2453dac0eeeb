import MartletXML
import Testing

@Suite("Well-formedness of XML")
struct ConformanceTests {
    @Test(
        "A document is well-formed exactly as XML 1.0 and Namespaces specify",
        arguments: ConformanceTable.all)
    func verdict(_ row: ConformanceCase) {
        let reading = Reading(row.document)
        #expect(reading.error?.code == row.code, "\(String(describing: reading.error))")
        if let error = reading.error {
            #expect((0...row.document.utf8.count).contains(error.position.byteOffset))
            #expect(error.position.line >= 1 && error.position.column >= 1)
        }
    }

    @Test("The table has more than eighty rows of both kinds")
    func table() {
        #expect(ConformanceTable.all.count > 150)
        #expect(ConformanceTable.all.filter { $0.code == nil }.count > 40)
    }

    @Test(
        "A document produces the same events and error wherever it is split",
        arguments: ConformanceTable.all)
    func splits(_ row: ConformanceCase) {
        let bytes = Array(row.document.utf8)
        let whole = Reading(bytes)
        #expect(Reading(bytes, size: 1) == whole)
        for place in 0...bytes.count { #expect(Reading(bytes, cuts: [place]) == whole, "cut at \(place)") }
    }

    @Test("A document that is truncated anywhere is incomplete")
    func truncation() {
        let text =
            "<?xml version='1.0'?><!DOCTYPE a [<!ELEMENT a ANY>]><a b='c'>&amp;<![CDATA[x]]><?p q?><!--r--></a>"
        let bytes = Array(text.utf8)
        #expect(Reading(bytes).error == nil)
        for count in 0..<bytes.count {
            #expect(Reading(Array(bytes[..<count])).error?.code == .unexpectedEnd, "after \(count) bytes")
        }
    }

    @Test("An error persists, and later input produces no events")
    func errorStays() throws {
        var parser = XMLEventParser()
        parser.feed(Array("<a></b>".utf8))
        #expect(try parser.next() == .start("a"))
        let error = XMLError(.mismatchedTag, at: XMLPosition(line: 1, column: 6, byteOffset: 5), "")
        for more in ["", "</a>"] {
            parser.feed(Array(more.utf8))
            let thrown = #expect(throws: XMLError.self) { try parser.next() }
            #expect(thrown?.code == error.code)
            #expect(thrown?.position == error.position)
        }
    }
}
