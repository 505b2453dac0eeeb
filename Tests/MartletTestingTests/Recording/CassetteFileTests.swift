import MartletCore
import MartletTesting
import Testing

@Suite("Files of cassettes")
struct CassetteFileTests {
    private static let entry =
        #"{"request":{"method":"GET","url":"http://e.org/","headers":[]},"#
        + #""response":{"status":200,"statusText":"OK","headers":[{"name":"A","value":"b"}],"#
        + #""content":{"size":1,"mimeType":"a/b","text":"x"}}}"#

    /// A replacement in the second of two entries, and the position of the error.
    private static let defects: [(old: String, new: String, keyPath: String)] = [
        (#""request":{"method":"GET","url":"http://e.org/","headers":[]},"#, "", ".request is missing"),
        (#"{"method":"GET","url":"http://e.org/","headers":[]}"#, "[]", ".request is an array, expected an object"),
        (#""GET""#, "7", ".request.method is the number 7, expected a string"),
        (#""GET""#, #""G T""#, ".request.method is not a method"),
        (#""GET""#, "null", ".request.method is missing"),
        (#""http://e.org/""#, #""http://e.org:99999/""#, ".request.url is not a URL: "),
        (#""http://e.org/""#, "true", ".request.url is a Boolean, expected a string"),
        (#""headers":[]"#, #""headers":{}"#, ".request.headers is an object, expected an array"),
        (#""headers":[]"#, #""headers":[null]"#, ".request.headers[0] is missing"),
        (#""headers":[]"#, #""headers":[{"name":"a b","value":""}]"#, ".request.headers[0] is invalid: "),
        (#""headers":[]"#, #""headers":[{"name":"a","value":"\r\nb: c"}]"#, ".request.headers[0] is invalid: "),
        (#""headers":[]"#, #""headers":[],"postData":{"text":1}"#, ".request.postData.text is the number 1, expected"),
        ("200", "1000", ".response.status is not a status code: 1000"),
        ("200", "-1", ".response.status is not a status code: -1"),
        ("200", "2e99999999999", ".response.status is the number 2e99999999999, expected an integer"),
        ("200", "1" + String(repeating: "0", count: 999), ".response.status is the number 1000000"),
        ("200", #""200""#, ".response.status is a string, expected an integer"),
        (#""OK""#, "{}", ".response.statusText is an object, expected a string"),
        (#","content":{"size":1,"mimeType":"a/b","text":"x"}"#, "", ".response.content is missing"),
        (#","text":"x""#, "", ".response.content.text is missing, although the body has a size"),
        (#""size":1,"mimeType":"a/b","text":"x""#, #""size":[]"#, ".response.content.size is an array, expected"),
        (#""text":"x""#, #""text":"x","encoding":"base64""#, ".response.content.text is not valid Base64"),
        (#""text":"x""#, #""text":"x","encoding":"rot13""#, ".response.content.encoding is unknown: “rot13”"),
        (#""text":"x""#, #""text":"01234567890""#, ".response.content.text has 11 bytes, above the limit of 10"),
        (#"{"size":1"#, #"{"_x":"","size":1"#, ""),
        (#""content""#, #""_trailers":[1],"content""#, ".response._trailers[0] is the number 1, expected an object"),
    ]

    private static func parse(_ text: String) throws -> CassetteFile {
        try CassetteFile(parsing: Array(text.utf8), path: "a.har", bodyLimit: 10)
    }

    @Test("An error names the entry and the position of its value", arguments: defects)
    func malformed(_ old: String, _ new: String, _ keyPath: String) throws {
        let broken = Self.entry.replacingOccurrence(of: old, with: new)
        try #require(broken != Self.entry)
        let text = CassetteScene.har([Self.entry, broken])
        if keyPath.isEmpty {
            let file = try Self.parse(text)
            #expect(file.recordings.count == 2)
            return
        }
        let error = #expect(throws: CassetteError.self) { try Self.parse(text) }
        guard case .malformed("a.har", let entry, _, _) = error else { return _ = Issue.record("\(error as Any)") }
        #expect(entry == 1)
        #expect(try #require(error).description.hasPrefix("a.har: log.entries[1]\(keyPath)"), "\(error as Any)")
    }

    @Test(
        "An error outside of the entries has no number",
        arguments: [
            ("", "a.har: invalid JSON at byte 0"), ("[]", "a.har: is an array, expected an object"),
            ("{}", "a.har: log is missing"), (#"{"log":{}}"#, "a.har: log.entries is missing"),
            (#"{"log":{"entries":5}}"#, "a.har: log.entries is the number 5, expected an array"),
            (#"{"log":{"entries":["# + String(repeating: "[", count: 100_000), "a.har: invalid JSON at byte"),
        ])
    func outside(_ text: String, _ description: String) throws {
        let error = #expect(throws: CassetteError.self) { try Self.parse(text) }
        guard case .malformed(_, nil, _, _) = error else { return _ = Issue.record("\(error as Any)") }
        #expect(try #require(error).description.hasPrefix(description), "\(error as Any)")
    }

    @Test("A truncated file is an error at every length")
    func truncated() throws {
        let text = CassetteScene.har([Self.entry])
        for length in 0..<text.utf8.count {
            #expect(throws: CassetteError.self) { try Self.parse(String(text.prefix(length))) }
        }
        let file = try Self.parse(text)
        #expect(try CassetteFile(parsing: file.bytes(), path: "", bodyLimit: 10).bytes() == file.bytes())
    }

    @Test("Entries that cannot be replayed are skipped, and what browsers add is read")
    func browsers() throws {
        let status = Self.entry.replacingOccurrence(of: "200", with: "0")
        let data = Self.entry.replacingOccurrence(of: "http://e.org/", with: "data:text/plain,x")
        let pseudo = Self.entry.replacingOccurrence(
            of: #""headers":[]"#, with: #""headers":[{"name":":method","value":"GET"}]"#)
        let unchanged = Self.entry.replacingOccurrence(of: "200", with: "304")
            .replacingOccurrence(of: #","text":"x""#, with: "")
        let file = try Self.parse(CassetteScene.har([status, data, pseudo, unchanged]))
        #expect(file.recordings.map { $0.entry == nil } == [true, true, false, false])
        #expect(file.recordings[2].entry?.request.headers.isEmpty == true)
    }
}

extension String {
    /// Returns the text with the first occurrence of another one replaced.
    fileprivate func replacingOccurrence(of old: String, with new: String) -> String {
        firstRange(of: old).map { replacingCharacters(in: $0, with: new) } ?? self
    }

    private func replacingCharacters(in range: Range<Index>, with new: String) -> String {
        self[..<range.lowerBound] + new + self[range.upperBound...]
    }
}
