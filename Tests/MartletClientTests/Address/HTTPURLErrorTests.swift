import MartletConditions
import MartletURL
import MartletCore
import Testing

@Suite("URL parse errors")
struct HTTPURLErrorTests {
    @Test("The error for a port out of range contains the port and its position")
    func portMessage() {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://example:65536/") }
        #expect(error?.description == "port 65536 is out of range 1–65535 at character 15")
    }

    @Test(
        "A port must consist of digits and be within 1–65535",
        arguments: [
            ("http://h:0/", 9), ("http://h:65536", 9), ("http://h:99999999999999999999999/", 9),
            ("http://h:8a/", 10),
            ("http://h:-1/", 9), ("http://h:+1/", 9), ("http://h: 1/", 9), ("http://h:８０/", 9),
            ("http://h:1:2/", 10),
            ("http://[::1]:x/", 13), ("http://h:%38/", 9),
        ])
    func ports(input: String, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(input) }
        #expect(error?.code == .invalidPort)
        #expect(error?.offset == offset)
    }

    @Test(
        "Control characters, backslashes and surrounding spaces are rejected at any position",
        arguments: [
            ("ht\ttp://h/", 2), ("http://h\n/", 8), ("http://a\\@b/", 8), ("http:\\\\h/", 5),
            ("http://h/a\rb", 10),
            ("http://h/\u{0}", 9), ("http://h/\u{7F}", 9), ("http://h/?a\\b", 11), ("http://h/#\t", 10),
            ("\thttp://h/", 0), ("http://h/\u{1B}[0m", 9), (" http://h/", 0), ("http://h/ ", 9), (" ", 0),
            ("http://u:p\u{1}@h/", 10),
        ])
    func forbiddenCharacters(input: String, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(input) }
        #expect(error?.code == .forbiddenCharacter)
        #expect(error?.offset == offset)
    }

    @Test("Error positions count characters, not bytes")
    func characterOffsets() {
        // An emoji of five scalars, é as two scalars, and CRLF: each of them is one character.
        let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}"
        let cases = [("http://h/é\(family)\t", 11), ("http://h/e\u{301}\t", 10), ("http://h/a\r\nb", 10)]
        for (input, offset) in cases {
            let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(input) }
            #expect(error?.offset == offset)
        }
    }

    @Test(
        "A URL without http:// or https:// at its start is rejected",
        arguments: [
            ("", HTTPURL.ParseError.Code.empty, 0), ("example.com/a", .missingScheme, 0),
            ("/a", .missingScheme, 0),
            ("//h/", .missingScheme, 0), ("://h/", .missingScheme, 0), ("1http://h/", .missingScheme, 0),
            ("httpé://h/", .missingScheme, 0), ("http", .missingScheme, 0),
            ("ftp://h/", .unsupportedScheme, 0),
            ("file:///etc/passwd", .unsupportedScheme, 0), ("javascript:alert(1)", .unsupportedScheme, 0),
            ("localhost:8080", .unsupportedScheme, 0), ("httpss://h", .unsupportedScheme, 0),
            ("http:h/", .missingAuthority, 5), ("http:/h/", .missingAuthority, 5),
            ("https:", .missingAuthority, 6),
        ])
    func schemes(input: String, code: HTTPURL.ParseError.Code, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(input) }
        #expect(error?.code == code)
        #expect(error?.offset == offset)
    }

    @Test(
        "User info that decodes to control characters or invalid UTF-8 is rejected",
        arguments: [
            ("http://u%0d%0a:p@h/", 7), ("http://u:p%00@h/", 9), ("http://%ff@h/", 7), ("http://u:%c3@h/", 9),
        ])
    func userInfo(input: String, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(input) }
        #expect(error?.code == .invalidUserInfo)
        #expect(error?.offset == offset)
    }

    @Test(
        "A parse error never contains a password",
        arguments: [
            "http://ann:hunter2#x@h/", "http://ann:hunter2/x@h/", "http://ann:hunter2%00@h/",
            "http://ann:hunter2\t@h/",
            "http://ann:hunter2@h:0/", "http://ann:hunter2@a%2f/", "http://ann:hunter2@/",
        ])
    func noSecrets(input: String) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(input) }
        #expect(error.map { "\($0)".contains("hunter2") } == false)
    }

    @Test("A URL within the length limit is accepted, and one byte above the limit is rejected")
    func lengthLimit() throws {
        let start = "http://h/"
        // The parser reserves space for the longest authority, so an accepted URL is slightly shorter than the limit.
        let fits = start + String(repeating: "a", count: HTTPURL.lengthLimit - 40)
        #expect(try HTTPURL(fits).absoluteString == fits)
        let long = start + String(repeating: "a", count: HTTPURL.lengthLimit - start.utf8.count + 1)
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(long) }
        #expect(error?.code == .tooLong)
    }

    @Test("A URL that exceeds the length limit after percent-encoding is rejected")
    func encodedLength() {
        let error = #expect(throws: HTTPURL.ParseError.self) {
            try HTTPURL("http://h/" + String(repeating: "é", count: 20_000))
        }
        #expect(error?.code == .tooLong)
    }

    @Test(
        "Huge inputs are parsed in linear time",
        arguments: [
            String(repeating: "a", count: 1_000_000), "http://" + String(repeating: "a.", count: 500_000),
            "http://h/" + String(repeating: "../", count: 20_000),
            "http://" + String(repeating: "@", count: 60_000) + "h/",
            "http://" + String(repeating: "é", count: 2_000),
            "http://" + String(repeating: "%CC%81", count: 680),
            "http://[" + String(repeating: ":", count: 60_000),
            "http://h:" + String(repeating: "0", count: 60_000) + "1",
            "http://h/" + String(repeating: "%", count: 20_000),
            "http://xn--" + String(repeating: "9", count: 4_000),
            "http://h/?" + String(repeating: "a\u{301}", count: 20_000) + "\t",
        ])
    func hugeInputs(input: String) {
        // Parsing takes milliseconds. The bound separates linear from quadratic time on a slow machine.
        #expect(ThreadTime.of { _ = try? HTTPURL(input) }.time < .seconds(5))
    }
}
