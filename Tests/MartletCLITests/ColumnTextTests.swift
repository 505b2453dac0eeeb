import Testing

@testable import MartletCLI

@Suite("Text in terminal columns")
struct ColumnTextTests {
    @Test(
        "Wide characters take two columns, combining marks none",
        arguments: [
            ("", 0), ("abc", 3), ("naïve", 5), ("nai\u{308}ve", 5), ("燕", 2), ("한국", 4),
            ("\u{1112}\u{1161}", 2),
            ("ＡＢ", 4), ("日本語.txt", 10), ("🐦", 2), ("━─…", 3), ("e\u{301}\u{302}\u{303}", 1), ("ｱ", 1),
        ])
    func width(_ text: String, _ columns: Int) {
        #expect(ColumnText.width(text) == columns)
    }

    @Test("A name is shortened in the middle, never within a character")
    func cut() {
        #expect(ColumnText.cut("abcdefghij", to: 10, usesUnicode: true) == "abcdefghij")
        #expect(ColumnText.cut("abcdefghij", to: 7, usesUnicode: true) == "abc…hij")
        #expect(ColumnText.cut("abcdefghijkl", to: 9, usesUnicode: false) == "abc...jkl")
        #expect(ColumnText.cut("abcdefghij", to: 6, usesUnicode: false) == "abc~ij")
        #expect(ColumnText.cut("燕燕燕燕燕", to: 7, usesUnicode: true) == "燕…燕")
        #expect(
            ColumnText.cut("e\u{301}e\u{301}e\u{301}e\u{301}", to: 3, usesUnicode: true)
                == "e\u{301}…e\u{301}")
        #expect(ColumnText.cut("abcdef", to: 2, usesUnicode: true) == "ab")
        #expect(ColumnText.cut("abcdef", to: 0, usesUnicode: true) == "")
    }

    @Test("A shortened text is never wider than its limit", arguments: 0...40)
    func bound(_ limit: Int) {
        for text in ["model-q4_k_m.gguf", "日本語のファイル名前.tar.gz", "e\u{301}燕🐦한x", ""] {
            for usesUnicode in [true, false] {
                let cut = ColumnText.cut(text, to: limit, usesUnicode: usesUnicode)
                #expect(ColumnText.width(cut) <= limit)
                #expect(ColumnText.width(ColumnText.fitted(cut, to: limit)) == limit)
            }
        }
    }

    @Test("Control characters are printed as numbers, and without UTF-8 only ASCII is printed")
    func safe() {
        let name = "a\u{1B}[2Jb\r\nc\u{202E}d\u{9B}e燕"
        let shown = ColumnText.safe(name, usesUnicode: true)
        #expect(shown == "a\\u{1b}[2Jb\\u{d}\\u{a}c\\u{202e}d\\u{9b}e燕")
        let ascii = ColumnText.safe(name, usesUnicode: false)
        #expect(ascii == "a\\u{1b}[2Jb\\u{d}\\u{a}c\\u{202e}d\\u{9b}e?")
    }
}
