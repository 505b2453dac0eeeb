import MartletXML
import Testing

@Suite("Encoding of XML documents")
struct EncodingTests {
    private static func wide(_ text: String, isBig: Bool, mark: Bool = true) -> [UInt8] {
        ((mark ? "\u{FEFF}" : "") + text).utf16.flatMap { unit in
            let pair = [UInt8(unit >> 8), UInt8(unit & 0xFF)]
            return isBig ? pair : pair.reversed()
        }
    }

    private static let events: [XMLEvent] = [.start("\u{E9}"), .text("\u{20AC}\u{1F600}\n"), .end("\u{E9}")]
    private static let text = "<\u{E9}>\u{20AC}\u{1F600}\r\n</\u{E9}>"

    @Test("UTF-16 is recognized by its byte order mark, in pieces of any size", arguments: [true, false])
    func wide(isBig: Bool) {
        let bytes = Self.wide(Self.text, isBig: isBig)
        for size in [1, 2, 3, .max] {
            let reading = Reading(bytes, size: size)
            #expect(reading.error == nil)
            #expect(reading.events == Self.events)
            #expect(reading.encoding == (isBig ? .utf16BigEndian : .utf16LittleEndian))
        }
    }

    @Test("A UTF-8 byte order mark is not part of the document, and its bytes are counted")
    func mark() {
        let reading = Reading(Array("\u{FEFF}\(Self.text)".utf8))
        #expect(reading.events == Self.events)
        #expect(Reading(Array("\u{FEFF}x".utf8)).error?.position == XMLPosition(byteOffset: 3))
    }

    @Test("ISO-8859-1 and US-ASCII are decoded if the document declares them")
    func declared() {
        let head = Array("<?xml version='1.0' encoding='iso-8859-1'?>".utf8)
        let reading = Reading(head + [0x3C, 0x61, 0x3E, 0xE9, 0x85, 0x3C, 0x2F, 0x61, 0x3E], size: 1)
        #expect(reading.error == nil)
        #expect(reading.events.dropFirst() == [.start("a"), .text("\u{E9}\u{85}"), .end("a")])
        #expect(reading.encoding == .latin1)
        let ascii = Array("<?xml version='1.0' encoding='US-ASCII'?><a>\u{E9}</a>".utf8)
        #expect(Reading(ascii).error?.code == .invalidByteSequence)
        #expect(Reading(ascii).error?.position.byteOffset == 44)
    }

    @Test(
        "The transport charset precedes the declaration, and a byte order mark precedes both (RFC 7303 §3.2)"
    )
    func order() {
        let latin = Array("<?xml version='1.0' encoding='US-ASCII'?><a>".utf8) + [0xE9] + Array("</a>".utf8)
        #expect(Reading(latin, charset: "ISO-8859-1").events[2] == .text("\u{E9}"))
        let utf8 = Array("<?xml version='1.0' encoding='ISO-8859-1'?><a>\u{E9}</a>".utf8)
        #expect(Reading(utf8, charset: "utf-8").events[2] == .text("\u{E9}"))
        let marked = Self.wide("<?xml version='1.0' encoding='UTF-8'?><a>\u{E9}</a>", isBig: false)
        #expect(Reading(marked, charset: "iso-8859-1").events[2] == .text("\u{E9}"))
        #expect(Reading(marked).error?.code == .encodingMismatch)
        #expect(Reading(Array("\u{FEFF}".utf8) + latin).error?.code == .encodingMismatch)
    }

    @Test("UTF-16 without a mark is decoded if its byte order is specified")
    func unmarked() {
        let named = Self.wide("<?xml version='1.0' encoding='UTF-16BE'?><a/>", isBig: true, mark: false)
        #expect(Reading(named, size: 1).error == nil)
        let unnamed = Self.wide("<?xml version='1.0' encoding='UTF-16'?><a/>", isBig: true, mark: false)
        #expect(Reading(unnamed).error?.code == .encodingMismatch)
        #expect(Reading(Self.wide("<a/>", isBig: false, mark: false), charset: "UTF-16LE").error == nil)
        #expect(Reading(unnamed, charset: "UTF-16").error?.code == .encodingMismatch)
    }

    @Test(
        "Aliases of the encodings are accepted in a declaration",
        arguments: [
            ("utf8", Array("\u{E9}\u{1F600}".utf8), "\u{E9}\u{1F600}"), ("Latin1", [0xE9], "\u{E9}"),
            ("l1", [0xE9], "\u{E9}"), ("ISO_8859-1", [0xE9], "\u{E9}"), ("ascii", [0x65], "e"),
        ] as [(String, [UInt8], String)])
    func aliases(_ name: String, _ bytes: [UInt8], _ text: String) {
        let document = Array("<?xml version='1.0' encoding='\(name)'?><a>".utf8) + bytes + Array("</a>".utf8)
        for size in [1, .max] {
            let reading = Reading(document, size: size)
            #expect(reading.error == nil)
            #expect(
                reading.events == [
                    .declaration(XMLDeclaration(encoding: name)), .start("a"), .text(text), .end("a"),
                ])
        }
    }

    @Test("Bytes whose width or order contradicts the charset are rejected")
    func contradictions() {
        let little = Self.wide("<a/>", isBig: false, mark: false)
        #expect(Reading(little, charset: "UTF-16BE").error?.code == .encodingMismatch)
        #expect(Reading(little, charset: "utf-8").error?.code == .invalidCharacter)
        #expect(Reading(little).error?.code == .invalidCharacter)
        #expect(Reading(Array("<a/>".utf8), charset: "UTF-16LE").error?.code == .encodingMismatch)
    }

    @Test("An unknown encoding is an error, also from the transport")
    func unknown() {
        #expect(Reading(Array("<a/>".utf8), charset: "koi8-r").error?.code == .unsupportedEncoding)
        #expect(Reading([0, 0, 0xFE, 0xFF, 0, 0, 0, 0x3C]).error?.code == .unsupportedEncoding)
        #expect(Reading([0xFF, 0xFE, 0, 0, 0x3C, 0, 0, 0]).error?.code == .unsupportedEncoding)
        #expect(Reading([0x3C, 0, 0, 0]).error?.code == .unsupportedEncoding)
    }

    @Test(
        "The error for invalid UTF-8 has its position",
        arguments: [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80],
            [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xC3, 0x28], [0xE2, 0x82],
        ] as [[UInt8]])
    func malformed(_ bytes: [UInt8]) {
        let document = Array("<a>".utf8) + bytes + Array("</a>".utf8)
        for size in [1, .max] {
            let error = Reading(document, size: size).error
            #expect(error?.code == .invalidByteSequence)
            #expect(error?.position.byteOffset == 3)
        }
    }

    @Test("An unpaired surrogate and an incomplete character at the end are errors")
    func surrogates() {
        let lone = Self.wide("<a>", isBig: true) + [0xD8, 0x00] + Self.wide("</a>", isBig: true, mark: false)
        #expect(Reading(lone).error?.code == .invalidByteSequence)
        let low = Self.wide("<a>", isBig: true) + [0xDC, 0x00]
        #expect(Reading(low).error?.code == .invalidByteSequence)
        #expect(Reading(Self.wide("<a/>", isBig: true) + [0]).error?.code == .invalidByteSequence)
        #expect(Reading(Array("<a/>".utf8) + [0xC3]).error?.code == .invalidByteSequence)
    }
}
