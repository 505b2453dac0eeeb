import Martlet
import Testing

/// A server parses the pairs that were written, for any names and values.
@Suite("Query round trips")
struct QueryRoundTripTests {
    private static let alphabet: [String] = [
        "a", "Z", "0", "-", "~", "/", "?", "&", "=", "+", "%", "%41", " ", "#", "[", "]", "\"", "\\", "\u{0}",
        "\n",
        "\u{7F}", "é", "e\u{301}", "名", "👨‍👩‍👧‍👦", "\u{FFFD}", "\u{10FFFF}", ";", "'",
    ]

    private func word(_ random: inout SplitMix64) -> String {
        (0..<Int.random(in: 0...12, using: &random)).map { _ in
            QueryRoundTripTests.alphabet.randomElement(using: &random) ?? ""
        }.joined()
    }

    /// Parses a query: pairs separated by `&`, name and value separated by the first `=`, `%XX` decoded.
    private func read(_ text: String) -> [(String, String?)] {
        guard !text.isEmpty else { return [] }
        return text.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { pair in
            let parts = pair.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (plain(parts[0]), parts.count > 1 ? plain(parts[1]) : nil)
        }
    }

    private func plain(_ text: Substring.UTF8View) -> String {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("Any names and values are parsed back, sorted by name", arguments: 0..<200)
    func flat(_ seed: UInt64) throws {
        var random = SplitMix64(state: seed)
        var values: [String: String?] = [:]
        for _ in 0..<Int.random(in: 0...8, using: &random) {
            values[word(&random)] = Bool.random(using: &random) ? .some(word(&random)) : .some(nil)
        }
        let tree = ParameterValue.object(values.mapValues { $0.map(ParameterValue.string) ?? .null })
        let text = try QueryEncoding.bracketed.encoded(tree)
        let pairs = read(text)
        let expected = values.sorted { $0.key < $1.key }
        // A single null without a name has no bytes, so there is no pair.
        guard !(expected.count == 1 && expected[0].key.isEmpty && expected[0].value == nil) else { return }
        #expect(pairs.map(\.0) == expected.map(\.key))
        #expect(pairs.map(\.1) == expected.map(\.value))
        // The encoded text is valid in a URL.
        let url = try HTTPURL("http://a.example/").appending(parameters: tree, encoding: .bracketed)
        #expect((url.query ?? "") == text)
    }

    @Test("Nested arrays with indices are parsed back by their paths", arguments: 0..<50)
    func nested(_ seed: UInt64) throws {
        var random = SplitMix64(state: seed &+ 1000)
        var expected: [String: String] = [:]
        func tree(_ depth: Int, _ path: String) -> ParameterValue {
            if depth == 0 {
                let text = word(&random)
                expected[path] = text
                return .string(text)
            }
            return .array((0..<3).map { tree(depth - 1, "\(path)[\($0)]") })
        }
        let root = ParameterValue.object(["r": tree(3, "r")])
        var encoding = QueryEncoding()
        encoding.arrays = .indexed
        let pairs = read(try encoding.encoded(root))
        #expect(pairs.count == 27)
        for (name, value) in pairs { #expect(expected[name] == value) }
    }
}
