import MartletURL
import MartletCore
import MartletHosts
import MartletDownloads
import Testing

@Suite("Names of a download's files")
struct PartNamesTests {
    private func last(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? "" }

    @Test("The files are next to the target")
    func beside() {
        let names = PartNames(target: "/tmp/a b/c.bin")
        #expect(names.directory == "/tmp/a b/" && names.name == "c.bin")
        #expect(names.part == "/tmp/a b/c.bin.martlet-part")
        #expect(names.record == "/tmp/a b/c.bin.martlet-record")
        #expect(names.nextRecord == names.record + "-" && names.nextPart == names.part + "-")
        let own = PartNames(target: "c.bin")
        #expect(own.directory.isEmpty && own.part == "c.bin.martlet-part")
        #expect(PartNames(target: "/c").directory == "/")
        #expect(PartNames(target: "").part == ".martlet-part")
        #expect(PartNames(target: "a/").name.isEmpty)
    }

    @Test(
        "Names of any length leave room for the suffixes and stay distinct",
        arguments: ["a", "é", "日", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}", "a\u{301}\u{302}"])
    func long(_ character: String) {
        for byteCount in [200, 238, 239, 240, 250, 255] {
            let name = String(repeating: character, count: max(1, byteCount / character.utf8.count))
            let one = PartNames(target: "/tmp/\(name)x")
            let other = PartNames(target: "/tmp/\(name)y")
            for path in [one.part, one.record, one.nextRecord, one.nextPart] {
                #expect(last(path).utf8.count <= 255, "\(path)")
                #expect(path.hasPrefix("/tmp/"))
            }
            #expect(one.part != other.part && one.record != other.record)
            #expect(one.part != one.nextPart && one.part != one.record)
        }
    }

    @Test("A shortened name keeps its extension", arguments: [239, 240, 251])
    func longWithExtension(_ count: Int) {
        let names = PartNames(target: "/tmp/" + String(repeating: "é", count: count / 2) + ".iso")
        let stem = last(names.part).dropLast(PartNames.partSuffix.count)
        #expect(stem.hasSuffix(".iso"), "\(stem)")
        #expect(last(names.nextRecord).utf8.count <= 255)
        // A record of that name is also the record of the name that is left without its suffix.
        #expect(PartNames(target: "/tmp/\(stem)").record == names.record)
    }

    @Test("A name of one very long character is replaced by a hash")
    func endless() {
        let one = PartNames(target: "a" + String(repeating: "\u{301}", count: 127))
        #expect(last(one.part).utf8.count <= 255 && last(one.part).hasPrefix("~"))
    }

    @Test(
        "A number is inserted before the extension, if it is a usual one",
        arguments: [
            ("a.txt", "a (1).txt"), ("a", "a (1)"), ("a.tar.gz", "a.tar (1).gz"), (".bashrc", ".bashrc (1)"),
            ("a.", "a (1)."), ("a.averyveryverylongword", "a.averyveryverylongword (1)"),
            ("d.d/a", "d.d/a (1)"),
            ("/x/a.é", "/x/a (1).é"),
        ])
    func numbered(_ target: String, _ expected: String) {
        #expect(PartNames(target: target).numbered(1).target == expected)
    }

    @Test("A numbered name is shortened before its number, never in its extension or within a character")
    func numberedLong() {
        for name in [String(repeating: "a", count: 251) + ".txt", String(repeating: "日", count: 83) + ".txt"] {
            let numbered = PartNames(target: "/tmp/" + name).numbered(999)
            #expect(numbered.name.utf8.count <= 255 && numbered.name.hasSuffix(" (999).txt"))
            #expect(!numbered.name.unicodeScalars.contains("\u{FFFD}"))
        }
    }

    @Test(
        "A proposed name is one component that is neither hidden nor an option",
        arguments: [
            ("../../etc/x", "x"), (".bashrc", "bashrc"), ("-rf", "rf"), ("..", "a.bin"), ("", "a.bin"),
            ("--help", "help"), (".-.-x", "x"), ("/etc/passwd", "passwd"),
            ("..\\\\..\\\\boot.ini", "boot.ini"),
            ("a\u{1}b\u{7F}c", "abc"), ("C:autoexec.bat", "autoexec.bat"), ("-", "download"),
            ("a.txt", "a.txt"),
        ])
    func proposed(_ name: String, _ expected: String) throws {
        let url = try HTTPURL("http://example.com/dir/a.bin?x=1")
        let proposed = PartNames.proposed(disposition: "attachment; filename=\"\(name)\"", url: url)
        #expect(proposed == expected)
    }

    @Test(
        "A malformed Content-Disposition still gives a name",
        arguments: [
            ("attachment; filename=foo bar.html", "foo bar.html"), ("filename=foo.html", "foo.html"),
            ("filename=\"foo bar.html\"", "foo bar.html"), ("filename=\"x;y.txt\"", "x;y.txt"),
            ("attachment; filename=foo bar.html; size=3", "foo bar.html"),
            ("attachment filename=x; filename=a.txt", "a.txt"), ("; filename=a.txt", "a.txt"),
            ("attachment; name=\"a;filename=b\"; filename=c d", "c d"),
            ("attachment; FileName = foo bar ", "foo bar"), ("\"attachment\"; filename=foo.html", "foo.html"),
            ("attachment; filename=\"open.txt", "open.txt"), ("filename=x;y", "x"), ("filename=\"x;y", "x;y"),
            ("filename=../../x y", "x y"),
            ("filename=-rf", "rf"), ("attachment; filename=", "a.bin"), ("attachment", "a.bin"),
            ("", "a.bin"),
            ("=?utf-8?Q?foo?=; filename=foo.html", "foo.html"), ("attachment; xfilename=b c", "a.bin"),
        ])
    func malformed(_ field: String, _ expected: String) throws {
        let url = try HTTPURL("http://example.com/dir/a.bin?x=1")
        #expect(PartNames.proposed(disposition: field, url: url) == expected)
    }

    @Test("Names that are too long and URLs without a name give a usable name")
    func extremes() throws {
        let url = try HTTPURL("http://example.com/dir/a.bin")
        for name in [String(repeating: "x", count: 300) + ".iso", String(repeating: "-", count: 300) + "é"] {
            let proposed = PartNames.proposed(disposition: "attachment; filename=\"\(name)\"", url: url)
            #expect((1...255).contains(proposed.utf8.count) && proposed.first != "-", "\(proposed)")
        }
        for text in [
            "http://example.com", "http://example.com/", "http://example.com/..", "http://example.com/-",
        ] {
            #expect(PartNames.proposed(disposition: nil, url: try HTTPURL(text)) == "download", "\(text)")
        }
        let encoded = try HTTPURL("http://example.com/a%2F..%2F.ssh")
        let name = PartNames.proposed(disposition: nil, url: encoded)
        #expect(!name.contains("/") && name.first != ".")
    }
}
