import MartletCore
import Testing

@testable import MartletUploads

@Suite("Replies to uploads")
struct UploadReplyTests {
    private static let base = try? HTTPURL("https://example.org/files/a")

    private func reply(_ name: String, _ value: String) throws -> UploadReply {
        var fields = HTTPFields()
        fields[try #require(HTTPField.Name(name))] = value
        return UploadReply(status: 200, fields: fields, url: try #require(UploadReplyTests.base))
    }

    @Test(
        "An offset is a number of digits, without its parameters",
        arguments: [
            ("0", 0), ("25", 25), (" 25 ", 25), ("25;a=1", 25), ("18446744073709551615", .max), ("", nil),
            ("+25", nil), ("-1", nil), ("2.5", nil), ("0x10", nil), ("18446744073709551616", nil), ("?1", nil),
            ("1, 2", nil), ("٣", nil),
        ] as [(String, UInt64?)])
    func offset(text: String, number: UInt64?) throws {
        #expect(try reply("Upload-Offset", text).offset == number)
    }

    @Test(
        "Completeness is a Boolean of structured fields",
        arguments: [("?1", true), ("?0", false), ("?1;x", true), ("1", nil), ("true", nil), ("", nil)]
            as [(String, Bool?)])
    func completeness(text: String, value: Bool?) throws {
        #expect(try reply("Upload-Complete", text).isComplete == value)
    }

    @Test("Limits are read, unknown members are ignored, and an invalid known member invalidates all of them")
    func limits() throws {
        let limits = try reply("Upload-Limit", "max-size=9, max-append-size=5;a=1, min-append-size=2, x=\"y\", z")
            .limits
        #expect(limits.maximumSize == 9)
        #expect(limits.maximumAppend == 5)
        #expect(limits.minimumAppend == 2)
        for text in ["max-size=9, max-append-size=-5", "max-size=?1", "max-size=1.5, max-append-size=2", ""] {
            #expect(try reply("Upload-Limit", text).limits == UploadReply.Limits(), "\(text)")
        }
    }

    @Test(
        "A location is resolved, and none leads from https to http",
        arguments: [
            ("/up/1", "https://example.org/up/1"), ("b", "https://example.org/files/b"),
            ("https://up.example.net/x#f", "https://up.example.net/x"), ("http://example.org/up/1", nil),
            ("ftp://example.org/", nil), ("https://", nil),
        ] as [(String, String?)])
    func location(text: String, url: String?) throws {
        #expect(try reply("Location", text).location?.absoluteString == url)
    }

    @Test("The announced protocol is that of the draft before tus")
    func announcement() throws {
        #expect(try reply("Accept-Patch", "text/x, Application/Partial-Upload").announced == .ietf)
        #expect(try reply("Accept-Patch", "application/*").announced == .plain)
        #expect(try reply("Tus-Version", "0.2.2,1.0.0").announced == .tus)
        #expect(try reply("Tus-Version", "2.0.0").announced == .plain)
    }
}
