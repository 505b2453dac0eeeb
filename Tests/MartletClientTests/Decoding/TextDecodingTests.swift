import MartletClient
import Testing

@Suite("Text of bodies")
struct TextDecodingTests {
    @Test(
        "Bytes become text by byte order mark, then charset, then UTF-8",
        arguments: [
            (nil, [0xC3, 0xA9], "é"), ("utf-8", [0xC3, 0xA9], "é"), ("UTF8", [0xC3, 0xA9], "é"),
            ("nonsense", [0xC3, 0xA9], "é"), (nil, [0xE9, 0x21], "\u{FFFD}!"), ("iso-8859-1", [0xE9], "é"),
            ("Latin1", [0x80, 0x9F], "€Ÿ"), ("windows-1252", [0x81, 0x99], "\u{81}™"),
            ("us-ascii", [0x41, 0xE9], "Aé"),
            ("utf-16le", [0xE9, 0], "é"), ("utf-16be", [0, 0xE9], "é"), ("utf-16", [0xE9, 0], "é"),
            ("utf-16be", [0xD8, 0x3D, 0xDE, 0], "😀"), ("utf-16le", [0x3D, 0xD8], "\u{FFFD}"),
            ("utf-16le", [0x41, 0, 0x42], "A\u{FFFD}"), ("iso-8859-1", [0xEF, 0xBB, 0xBF, 0xC3, 0xA9], "é"),
            ("utf-8", [0xFE, 0xFF, 0, 0x41], "A"), (nil, [0xFF, 0xFE, 0x41, 0], "A"),
            ("utf-8", [0xEF, 0xBB], "\u{FFFD}"),
            (nil, [], ""), ("utf-16", [], ""), (nil, [0xEF, 0xBB, 0xBF], ""),
        ] as [(String?, [UInt8], String)])
    func decoding(charset: String?, bytes: [UInt8], text: String) {
        #expect(
            Array(TextDecoding(charset: charset).text(from: bytes).unicodeScalars)
                == Array(text.unicodeScalars))
    }
}
