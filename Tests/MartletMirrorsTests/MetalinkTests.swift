import MartletCore
import MartletDownloads
import MartletMetalink
import Testing

@Suite("Metalink documents")
struct MetalinkTests {
    static func document(_ content: String, namespace: String = "urn:ietf:params:xml:ns:metalink") -> [UInt8] {
        Array(#"<?xml version="1.0" encoding="UTF-8"?><metalink xmlns="\#(namespace)">\#(content)</metalink>"#.utf8)
    }

    private static let sha256 = String(repeating: "ab", count: 32)
    private static let sha512 = String(repeating: "CD", count: 64)

    @Test("Files have their lengths, strongest hashes, and URLs by priority")
    func complete() throws {
        let link = try Metalink(
            Self.document(
                """
                <generator>test/1</generator><published>2026-01-01T00:00:00Z</published>
                <file name="example.ext">
                  <size> 14471447 </size><identity>Example</identity>
                  <hash type="md5">\(String(repeating: "0", count: 32))</hash>
                  <hash type="sha-512">\(Self.sha512)</hash><hash type="sha-256">\(Self.sha256)</hash>
                  <pieces length="1048576" type="sha-1"><hash>00</hash><hash>11</hash></pieces>
                  <url priority="2">ftp://ftp.example.com/example.ext</url>
                  <url>http://last.example/example.ext</url>
                  <url location="de" priority="2">https://second.example/example.ext</url>
                  <url priority="1" location="XX1">https://first.example/a b.ext?q=1&amp;r=2</url>
                  <url priority="2">http://third.example/example.ext</url>
                  <metaurl mediatype="torrent">https://example.com/example.ext.torrent</metaurl>
                </file>
                <file name="other"><url>http://one.example/other</url></file>
                """))
        #expect(link.files.map(\.name) == ["example.ext", "other"])
        let file = try #require(link.files.first)
        #expect(file.byteCount == 14_471_447)
        #expect(file.checksum == .sha512(Self.sha512))
        #expect(
            file.locations.map(\.url.host) == ["first.example", "second.example", "third.example", "last.example"])
        #expect(file.locations.map(\.priority) == [1, 2, 2, 999_999])
        #expect(file.locations.map(\.country) == [nil, "de", nil, nil])
        let download = try #require(link.downloads.first)
        #expect(download.url.host == "first.example")
        #expect(download.options.mirrors.map(\.host) == ["second.example", "third.example", "last.example"])
        #expect(download.options.checksum == .sha512(Self.sha512))
        #expect(download.options.expectedByteCount == 14_471_447)
    }

    @Test("http mirrors of an https URL need a strong hash", arguments: [nil, "sha-1", "sha-256"])
    func downgrade(_ function: String?) throws {
        let digits = String(repeating: "0", count: function == "sha-1" ? 40 : 64)
        let hash = function.map { "<hash type=\"\($0)\">\(digits)</hash>" } ?? ""
        let urls = "<url priority=\"1\">https://a.example/f</url><url>http://b.example/f</url>"
        let link = try Metalink(Self.document("<file name=\"f\">\(hash)\(urls)</file>"))
        #expect(link.downloads.first?.options.mirrors.count == (function == "sha-256" ? 1 : 0))
        let preferred = "<url priority=\"1\">http://b.example/f</url><url>https://a.example/f</url>"
        let swapped = try Metalink(Self.document("<file name=\"f\">\(hash)\(preferred)</file>")).downloads.first
        #expect(swapped?.url.scheme == (function == "sha-256" ? .http : .https))
        #expect(swapped?.options.mirrors.count == (function == "sha-256" ? 1 : 0))
    }

    @Test(
        "Names are one component, visible, and no options",
        arguments: [
            ("../../etc/passwd", "passwd"), ("/etc/passwd", "passwd"), ("..", "download"), ("", "download"),
            (".bashrc", "bashrc"), ("-rf", "rf"), ("-.-x", "x"), (#"..\..\boot.ini"#, "boot.ini"),
            ("dir/file.bin", "file.bin"), ("a&#9;b", "ab"), ("x/-o", "o"),
            (".- .-x", "x"), ("-&#x301;x", "\u{301}x"), ("---", "download"),
        ])
    func names(_ given: String, _ expected: String) throws {
        let link = try Metalink(Self.document("<file name=\"\(given)\"><url>http://a.example/f</url></file>"))
        #expect(link.files.map(\.name) == [expected])
    }

    @Test(
        "Invalid optional values are ignored",
        arguments: [
            "<size>99999999999999999999</size>", "<size>-1</size>", "<size/>", "<hash type=\"sha-3\">00</hash>",
            "<hash>00</hash>", "<file name=\"nested\"><url>http://evil.example/</url></file>",
            "<x:url xmlns:x=\"urn:other\">http://evil.example/</x:url>", "<a><url>http://evil.example/</url></a>",
        ])
    func ignored(_ content: String) throws {
        let link = try Metalink(
            Self.document("<file name=\"f\">\(content)<url priority=\"-7\">http://a.example/f</url></file>"))
        let file = try #require(link.files.first)
        #expect(link.files.count == 1)
        #expect(file.byteCount == nil)
        #expect(file.checksum == nil)
        #expect(file.locations.map(\.url.host) == ["a.example"])
        #expect(file.locations.first?.priority == 999_999)
    }

    @Test(
        "Priorities outside of 1 to 999999 count as the last",
        arguments: ["0", "-1", "1000000", "x", "", "99999999999999999999"])
    func priorities(_ text: String) throws {
        let urls = "<url priority=\"\(text)\">http://a.example/f</url><url priority=\"999998\">http://b.example/f</url>"
        let link = try Metalink(Self.document("<file name=\"f\">\(urls)</file>"))
        #expect(link.downloads.first?.url.host == "b.example")
    }

    @Test("A file without an http or https URL has no download")
    func withoutURLs() throws {
        let link = try Metalink(Self.document("<file name=\"f\"><url>magnet:?xt=urn:btih:0</url><url> </url></file>"))
        #expect(link.files.count == 1)
        #expect(link.downloads.isEmpty)
        #expect(try Metalink(Self.document("")).files.isEmpty)
    }

    @Test(
        "Documents that cannot be used are errors",
        arguments: [
            "", "text", "<metalink/>", "<html/>",
            String(decoding: document("", namespace: "http://www.metalinker.org/"), as: UTF8.self),
            String(decoding: document("<file name=\"f\"><hash type=\"sha-256\">00</hash></file>"), as: UTF8.self),
            String(decoding: document("<file name=\"f\"><hash type=\"sha-256\"></hash></file>"), as: UTF8.self),
            String(decoding: document("<file name=\"f\">"), as: UTF8.self),
            "<!DOCTYPE m [<!ENTITY a \"b\">]>" + String(decoding: document("&a;"), as: UTF8.self),
            String(
                decoding: document(
                    "<file name=\"f\"><hash type=\"sha-256\">\(sha256)</hash>"
                        + "<hash type=\"sha-256\">\(String(repeating: "0", count: 64))</hash></file>"), as: UTF8.self),
            String(
                decoding: document(
                    "<file name=\"f\">" + String(repeating: "<url>http://a.example/</url>", count: 10_000) + "</file>"),
                as: UTF8.self),
            String(
                decoding: document("<file name=\"f\"><url>\(String(repeating: "a", count: 70_000))</url></file>"),
                as: UTF8.self),
        ])
    func rejected(_ text: String) { #expect(throws: MetalinkError.self) { try Metalink(text.utf8) } }

    @Test("A document of more than 4 MiB is an error, also if the rest never ends")
    func tooLong() {
        let start = Array(#"<metalink xmlns="urn:ietf:params:xml:ns:metalink">"#.utf8)
        let endless = sequence(state: 0) { (index: inout Int) -> UInt8? in
            defer { index += 1 }
            return index < start.count ? start[index] : 0x20
        }
        #expect(throws: MetalinkError.self) { try Metalink(endless.prefix(1 << 24)) }
    }

    @Test("A document of many nested elements is an error")
    func depth() {
        let text = String(repeating: "<a>", count: 100_000)
        #expect(throws: MetalinkError.self) { try Metalink(Self.document(text)) }
    }
}
