import MartletContent
import MartletURL
import MartletCore
import MartletHosts
import MartletTransport
import Testing

@Suite("Content-Disposition parsing")
struct ContentDispositionTests {
    @Test("The type is parsed, and the filename as a token or a quoted string")
    func plain() throws {
        let quoted = try #require(ContentDisposition("attachment; filename=\"a b.txt\""))
        #expect(quoted.type == "attachment")
        #expect(quoted.filename == "a b.txt")
        #expect(quoted.isAttachment)
        #expect(ContentDisposition("Attachment;FileName=plain.txt")?.filename == "plain.txt")
        #expect(ContentDisposition("inline")?.isAttachment == false)
        #expect(ContentDisposition("inline")?.suggestedFilename == nil)
    }

    @Test("A backslash escapes the next character of a quoted string")
    func escapes() {
        #expect(ContentDisposition("attachment; filename=\"f\\\"oo\\\\.html\"")?.filename == "f\"oo\\.html")
    }

    @Test("The filename* parameter has precedence over filename in any order")
    func extended() throws {
        let first = try #require(
            ContentDisposition("attachment; filename*=UTF-8''foo-%c3%a4.html; filename=\"foo-ae.html\""))
        #expect(first.extendedFilename == "foo-ä.html")
        #expect(first.suggestedFilename == "foo-ä.html")
        let second = ContentDisposition("attachment; filename=x.txt; filename*=iso-8859-1'en'foo-%E4.html")
        #expect(second?.suggestedFilename == "foo-ä.html")
    }

    @Test(
        "A malformed filename* is ignored and filename is used",
        arguments: [
            "UTF-8''%E4", "UTF-8''a%2", "UTF-8''a%gg", "UTF-8'a", "''a", "koi8-r''a", "\"UTF-8''a\"",
            "UTF-8''a b",
            "UTF-8''a'b", "utf-8''%ff%fe",
        ])
    func malformedExtended(_ value: String) {
        let found = ContentDisposition("attachment; filename*=\(value); filename=plain.txt")
        #expect(found?.extendedFilename == nil)
        #expect(found?.suggestedFilename == "plain.txt")
    }

    @Test("The first of several parameters with the same name is used")
    func repeated() {
        #expect(ContentDisposition("attachment; filename=a; filename=b")?.filename == "a")
    }

    @Test("Malformed parameters are skipped")
    func malformed() {
        #expect(ContentDisposition("attachment; filename=\"open")?.filename == nil)
        #expect(ContentDisposition("attachment; filename=\"a\" x; foo; ;filename=b")?.filename == "b")
        #expect(ContentDisposition("attachment; filename = \"a\"")?.filename == "a")
        #expect(ContentDisposition("attachment; filename=a;")?.filename == "a")
        #expect(ContentDisposition("attachment; xfilename=a")?.filename == nil)
    }

    @Test("A semicolon in a quoted string does not end the parameter")
    func semicolon() {
        #expect(
            ContentDisposition("attachment; other=\"; filename=evil\"; filename=good")?.filename == "good")
    }

    @Test("A value without a type is invalid", arguments: ["", ";", "\"a.txt\"", "filename=a", "a b", "="])
    func noType(_ value: String) {
        #expect(ContentDisposition(value) == nil)
    }

    @Test("A filename in raw UTF-8 is accepted, quoted and unquoted")
    func utf8() {
        #expect(ContentDisposition("attachment; filename=\"ä.txt\"")?.suggestedFilename == "ä.txt")
        #expect(ContentDisposition("attachment; filename=ä.txt")?.suggestedFilename == "ä.txt")
    }

    @Test(
        "A value of 200,000 semicolons, quotes or backslashes is parsed in linear time",
        arguments: [";", "\"", "\\", "; a=\""])
    func linear(_ unit: String) {
        let text = "attachment" + String(repeating: unit, count: 200_000 / unit.utf8.count)
        #expect(ThreadTime.of { _ = ContentDisposition(text) }.time < .seconds(20))
    }
}

@Suite("Safe file names")
struct SafeFilenameTests {
    @Test(
        "Only the last path component is used, without leading dots and invisible characters",
        arguments: [
            ("a.txt", "a.txt"), ("../x", "x"), ("/etc/passwd", "passwd"), ("..\\x", "x"), ("C:\\x", "x"),
            ("C:x.txt", "x.txt"), ("a/b", "b"), ("a/../../b\\c", "c"), (".bashrc", "bashrc"), ("...x", "x"),
            ("%2e%2e%2f", "%2e%2e%2f"), ("a\u{0}b", "ab"), ("a\nb\r\u{7F}\u{85}", "ab"), ("  a b  ", "a b"),
            ("a...", "a"), ("a. . ", "a"), ("txt.exe\u{202E}gnp", "txt.exegnp"), ("\u{FEFF}a", "a"),
            ("naïve 日本.pdf", "naïve 日本.pdf"),
            ("~root", "~root"), ("-rf", "-rf"), ("con.txt", "con.txt"), ("a:b", "b"), ("ab:c", "ab:c"),
            (". .a", "a"),
        ] as [(String, String)])
    func sanitised(_ pair: (String, String)) {
        #expect(SafeFilename(pair.0)?.text == pair.1)
    }

    @Test(
        "A name of only dots, separators or invisible characters is rejected",
        arguments: ["", ".", "..", "...", "a/", "\\", "/", " ", "\u{0}", "\u{202E}", ". .", "C:\\", "../.."])
    func nothing(_ proposed: String) {
        #expect(SafeFilename(proposed) == nil)
    }

    @Test("A name that is too long is cut at a character boundary and keeps its extension")
    func long() throws {
        let name = try #require(SafeFilename(String(repeating: "é", count: 300) + ".tar.gz")?.text)
        #expect(name.utf8.count <= 255)
        #expect(name.hasSuffix("é.gz"))
        #expect(SafeFilename(String(repeating: "a", count: 300))?.text == String(repeating: "a", count: 255))
        #expect(SafeFilename(String(repeating: "a", count: 255))?.text.utf8.count == 255)
        let odd = try #require(SafeFilename("x." + String(repeating: "y", count: 400))?.text)
        #expect(odd.utf8.count == 255)
        let stacked = try #require(SafeFilename("e" + String(repeating: "\u{301}", count: 400))?.text)
        #expect(stacked.utf8.count <= 255)
    }

    @Test("The suggested name is that of the field, or else the decoded last segment of the URL")
    func suggestion() throws {
        let url = try HTTPURL("https://h.example/files/a%20b.txt?x=/c")
        #expect(SuggestedFilename.of(contentDisposition: "attachment; filename=c", url: url) == "c")
        #expect(SuggestedFilename.of(contentDisposition: "attachment", url: url) == "a b.txt")
        #expect(
            SuggestedFilename.of(contentDisposition: "attachment; filename=\"..\"", url: url) == "a b.txt")
        #expect(SuggestedFilename.of(contentDisposition: nil, url: try HTTPURL("https://h.example/")) == nil)
        let evil = try HTTPURL("https://h.example/%2e%2e%2f..%5C.profile")
        #expect(SuggestedFilename.of(contentDisposition: nil, url: evil) == "profile")
    }
}
