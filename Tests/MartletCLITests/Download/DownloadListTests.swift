import Martlet
import Testing

@testable import MartletCLI

@Suite("Download list files")
struct DownloadListTests {
    private func entries(_ text: String) throws(UsageError) -> [DownloadListEntry] {
        try DownloadList.entries(of: Array(text.utf8), named: "list")
    }

    @Test("Each line is a URL, followed by its indented option lines")
    func list() throws {
        let digits = String(repeating: "ab", count: 20)
        let entries = try entries(
            "# files\r\nhttp://a/1\n\n  out=one file \n\tchecksum=sha1=\(digits)\n header=A: b=c\n header=D: e\n"
                + "https://b/2?x=1#y\nc/3\n   # no name\n  out=three")
        #expect(entries.map(\.url.absoluteString) == ["http://a/1", "https://b/2?x=1#y", "http://c/3"])
        #expect(entries.map(\.place) == ["list, line 2", "list, line 8", "list, line 9"])
        #expect(entries.map(\.output) == ["one file", nil, "three"])
        #expect(entries[0].checksum?.description == "sha1=\(digits)")
        #expect(entries[0].headers.map(\.line) == ["A: b=c", "D: e"])
        #expect(entries[0].headers.map(\.place) == ["list, line 6", "list, line 7"])
    }

    @Test("A list that contains only comments has no entries")
    func empty() throws {
        #expect(try entries("").isEmpty)
        #expect(try entries("\n\r\n  \n# http://a/\n").isEmpty)
    }

    @Test(
        "A bad line is rejected with its number",
        arguments: [
            ("http://a/\nftp://b/\n", 2, 1), ("http://a/\nhttp://b:99999/\n", 2, 3),
            ("http://a/ http://b/\n", 1, 3), ("http://a/\thttp://b/", 1, 3), ("http://a/{1,2}", 1, 3),
            ("  out=x\nhttp://a/", 1, 2), ("http://a/\n  out\n", 2, 2), ("http://a/\n  out=\n", 2, 2),
            ("http://a/\n  out=a\n  out=b\n", 3, 2), ("http://a/\n  mirror=ftp://b/\n", 2, 1),
            ("http://a/\n  out=-\n", 2, 2),
            ("http://a/\n\n  size=7\n", 3, 2), ("http://a/\n  checksum=sha256=12\n", 2, 2),
            ("http://a/\n  checksum=9f\n", 2, 2), ("http://a/\u{0}b\n", 1, 2), ("http://a/\u{1B}\n", 1, 2),
            ("# a\n#\nhttp://\n", 3, 3),
        ])
    func bad(_ text: String, _ line: Int, _ status: Int32) throws {
        let error = try #require(throws: UsageError.self) { try entries(text) }
        #expect(error.description.hasPrefix("list, line \(line): "), "\(error)")
        #expect(error.status.code == status)
    }

    @Test("Bytes that are not UTF-8 are rejected with their line number")
    func encoding() throws {
        let error = try #require(throws: UsageError.self) {
            try DownloadList.entries(of: Array("http://a/\n".utf8) + [0xFF, 10], named: "-")
        }
        #expect(error.description == "standard input, line 2: is not UTF-8")
    }

    @Test("A hundred thousand lines are read in one pass")
    func large() throws {
        let text = String(repeating: "http://a/f\n  out=f\n", count: 50_000)
        #expect(try entries(text).count == 50_000)
    }
}
