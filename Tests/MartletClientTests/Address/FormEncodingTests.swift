import MartletURL
import MartletCore
import Testing

@Suite("Form encoding")
struct FormEncodingTests {
    @Test("All characters but letters, digits and *-._ are percent-encoded, and a space becomes a plus")
    func encoding() {
        let items = [QueryItem(name: "a b", value: "c+d&e=f%g/ü~*-._"), QueryItem(name: "", value: "")]
        #expect(FormEncoding.encoded(items) == "a+b=c%2Bd%26e%3Df%25g%2F%C3%BC%7E*-._&=")
    }

    @Test("A space can be encoded as %20")
    func percentSpace() {
        #expect(
            FormEncoding.encoded([QueryItem(name: "a", value: "b c")], space: .percentEncoded) == "a=b%20c")
    }

    @Test("Line breaks and NUL in names and values are percent-encoded")
    func lineBreaks() {
        #expect(FormEncoding.encoded([QueryItem(name: "a\r\n", value: "\u{0}")]) == "a%0D%0A=%00")
    }

    @Test(
        "Decoding a form gives its names and values",
        arguments: [
            ("a=b&c=d", [QueryItem(name: "a", value: "b"), QueryItem(name: "c", value: "d")]),
            ("a+b=%20+", [QueryItem(name: "a b", value: "  ")]),
            ("a=b=c", [QueryItem(name: "a", value: "b=c")]),
            ("&&a&", [QueryItem(name: "a", value: nil)]),
            ("=x", [QueryItem(name: "", value: "x")]),
            ("a=%2B%zz%", [QueryItem(name: "a", value: "+%zz%")]),
            ("a=%ff", [QueryItem(name: "a", value: "\u{FFFD}")]),
            ("", []),
        ])
    func decoding(text: String, items: [QueryItem]) {
        #expect(FormEncoding.decoded(text) == items)
    }

    @Test("Encoding and decoding gives the same items")
    func roundTrip() {
        let text = String(String.UnicodeScalarView((0...0x2FF).compactMap { Unicode.Scalar($0) }))
        let items = [QueryItem(name: text, value: text), QueryItem(name: "flag", value: nil)]
        #expect(FormEncoding.decoded(FormEncoding.encoded(items)) == items)
        #expect(FormEncoding.decoded(FormEncoding.encoded(items, space: .percentEncoded)) == items)
    }
}
