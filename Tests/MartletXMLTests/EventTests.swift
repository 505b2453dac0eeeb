import MartletXML
import Testing

@Suite("XML events")
struct EventTests {
    @Test("A document produces its declaration, type, elements, text, comments and instructions in order")
    func everything() {
        let reading = Reading(
            """
            <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
            <!DOCTYPE feed PUBLIC "-//X//Y" "x.dtd">
            <!-- before -->
            <feed version='2'><title>One &amp; <![CDATA[<two>]]></title><empty/><?run now?></feed>
            <?end?>
            """)
        #expect(reading.error == nil)
        #expect(
            reading.events == [
                .declaration(XMLDeclaration(version: "1.0", encoding: "UTF-8", isStandalone: true)),
                .doctype(XMLDoctype(name: "feed", publicID: "-//X//Y", systemID: "x.dtd")),
                .comment(" before "), .start("feed", ["version": "2"]), .start("title"),
                .text("One & <two>"), .end("title"), .start("empty"), .end("empty"),
                .instruction(target: "run", data: "now"), .end("feed"), .instruction(target: "end", data: ""),
            ])
    }

    @Test("References become characters in text and in values")
    func references() {
        let reading = Reading("<a b='&lt;&#x20AC;&quot;'>&#65;&apos;&gt;&#x1F600;</a>")
        #expect(
            reading.events == [.start("a", ["b": "<\u{20AC}\""]), .text("A'>\u{1F600}"), .end("a")])
    }

    @Test("Brackets in text and in CDATA sections are retained")
    func brackets() {
        #expect(Reading("<a>]]x]</a>").events[1] == .text("]]x]"))
        #expect(Reading("<a><![CDATA[]]]]]></a>").events[1] == .text("]]]"))
        #expect(Reading("<a><![CDATA[]]x]>]]]></a>").events[1] == .text("]]x]>]"))
        #expect(Reading("<a>]]<![CDATA[>]]></a>").events[1] == .text("]]>"))
    }

    @Test("Each line end becomes an LF, except those written as references")
    func lineEnds() {
        let reading = Reading("<a>\r\n\r\r\n\n&#13;\n</a>")
        #expect(reading.events[1] == .text("\n\n\n\n\r\n"))
        #expect(Reading("<a><!--\r\n-\r--></a>").events[1] == .comment("\n-\n"))
        #expect(Reading("<a><![CDATA[\r]]></a>").events[1] == .text("\n"))
    }

    @Test("White space in a value becomes spaces, except if written as references (XML 1.0 §3.3.3)")
    func values() {
        let reading = Reading("<a b=' x\ty\r\nz\n&#10;&#9;&#13;&#32; '/>")
        #expect(reading.events[0] == .start("a", ["b": " x y z \n\t\r  "]))
    }

    @Test("Names have their namespace, and prefixes do not affect equality")
    func namespaces() throws {
        let reading = Reading(
            "<f xmlns='urn:f' xmlns:x='urn:x'><x:g h='1' x:h='2'/><k xmlns='' xmlns:x='urn:y' x:l=''/></f>")
        #expect(reading.error == nil)
        var starts: [XMLElementStart] = []
        for case .start(let start) in reading.events { starts.append(start) }
        #expect(
            starts.map(\.name) == [
                XMLName("f", namespace: "urn:f"), XMLName("g", namespace: "urn:x", prefix: "other"),
                XMLName("k"),
            ])
        #expect(starts[0].namespaces == [XMLNamespace("urn:f"), XMLNamespace("urn:x", prefix: "x")])
        #expect(starts[0].attributes.isEmpty)
        #expect(starts[1]["h"] == "1")
        #expect(starts[1]["h", namespace: "urn:x"] == "2")
        #expect(starts[1].name.prefix == "x")
        #expect(starts[2]["l", namespace: "urn:y"] == "")
        #expect(Reading("<a xml:lang='en'/>").events[0] != .start("a", ["lang": "en"]))
    }

    @Test("An error has its line, column and byte, for all kinds of line ends")
    func places() {
        let error = Reading("<a>\r\n \u{E9}\u{1F600}&b;\r</a>").error
        #expect(error?.code == .undeclaredEntity)
        #expect(error?.position == XMLPosition(line: 2, column: 4, byteOffset: 12))
        #expect(error?.description.hasPrefix("line 2, column 4 (byte 12): ") == true)
        #expect(Reading("<a>\r\r\n\n<").error?.position.line == 4)
    }

    @Test("A document type does not affect later values and positions")
    func afterDoctype() {
        let reading = Reading(
            "<!DOCTYPE a [\n<!ATTLIST a b NMTOKENS #IMPLIED>]> <a b=' x  y '>\n<c>&d;</c></a>")
        #expect(reading.events.dropFirst().first == .start("a", ["b": " x  y "]))
        #expect(reading.error?.position == XMLPosition(line: 3, column: 4, byteOffset: 67))
        let sameLine = Reading("<!DOCTYPE a>&d;")
        #expect(sameLine.error?.position == XMLPosition(line: 1, column: 13, byteOffset: 12))
    }

    @Test("An event is delivered with its last byte, and its position is its first byte")
    func promptness() throws {
        let document = "<?xml version='1.0'?><a b='c'>text<!--d--><?e f?></a>"
        var parser = XMLEventParser()
        var events: [(event: XMLEvent, fedCount: Int, start: Int)] = []
        for (index, byte) in document.utf8.enumerated() {
            parser.feed([byte])
            while let event = try parser.next() {
                events.append((event, index + 1, parser.position.byteOffset))
            }
        }
        #expect(
            events.map(\.event) == [
                .declaration(XMLDeclaration()), .start("a", ["b": "c"]), .text("text"), .comment("d"),
                .instruction(target: "e", data: "f"), .end("a"),
            ])
        #expect(events.map(\.fedCount) == [21, 30, 42, 42, 49, 53])
        #expect(events.map(\.start) == [0, 21, 30, 34, 42, 49])
    }

    @Test("The event of long markup in small pieces is delayed by at most a sixteenth of its length")
    func lateness() throws {
        let tag = "<a b='\(String(repeating: "x", count: 100_000))'>"
        var parser = XMLEventParser()
        for byte in tag.utf8.dropLast() {
            parser.feed([byte])
            #expect(try parser.next() == nil)
        }
        parser.feed([0x3E])
        var more = 0
        while more < 7_000, try parser.next() == nil {
            parser.feed([0x20])
            more += 1
        }
        #expect(more < 7_000)
    }

    @Test("Long text is delivered in the same pieces of at most 64 KiB, however it arrives")
    func longText() {
        let text = String(repeating: "abc\u{E9}-\u{1F600}", count: 30_000)
        let bytes = Array("<a>\(text)</a>".utf8)
        let whole = Reading(bytes)
        var pieces: [String] = []
        for case .text(let piece) in whole.events { pieces.append(piece) }
        #expect(pieces.joined() == text)
        #expect(pieces.count > 4)
        #expect(pieces.allSatisfy { $0.utf8.count <= 64 * 1024 })
        #expect(Reading(bytes, size: 997) == whole)
        #expect(Reading(bytes, size: 65_536) == whole)
    }
}
