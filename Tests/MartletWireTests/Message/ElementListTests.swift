import MartletWire
import Testing

@Suite("Comma-separated lists")
struct ElementListTests {
    private func elements(_ text: String) -> [String] {
        ElementList(Array(text.utf8)[...]).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "Members are trimmed and empty ones are skipped",
        arguments: [
            ("a,b", ["a", "b"]), (" a ,\tb\t", ["a", "b"]), (",,a,,", ["a"]), ("", []), (" , ", []),
            ("a b, c", ["a b", "c"]),
        ])
    func members(text: String, expected: [String]) {
        #expect(elements(text) == expected)
    }

    @Test(
        "Commas in quoted strings, also after an escaped quote, do not separate members",
        arguments: [
            ("a=\"b,c\",d", ["a=\"b,c\"", "d"]), ("\"a\\\",b\",c", ["\"a\\\",b\"", "c"]),
            ("\"\\\\\",c", ["\"\\\\\"", "c"]),
        ])
    func quoted(text: String, expected: [String]) {
        #expect(elements(text) == expected)
    }

    @Test("An unterminated quoted string reaches to the end", arguments: ["\"a,b", "a,\"b,c\\"])
    func unterminated(text: String) {
        #expect(elements(text).last?.hasSuffix(String(text.suffix(2))) == true)
        #expect(elements(text).joined(separator: ",") == text)
    }

    @Test("A megabyte of commas has no members")
    func commas() {
        let block = FieldBlock([("Connection", String(repeating: ",", count: 1 << 20))])
        #expect(!block.contains("Connection", token: "close"))
    }

    @Test("A megabyte of members is split into all of its members")
    func manyMembers() {
        let text = String(repeating: "a,", count: 1 << 19)
        var count = 0
        for _ in ElementList(Array(text.utf8)[...]) { count += 1 }
        #expect(count == 1 << 19)
    }
}
