import MartletContent
import MartletCore
import Testing

@Suite("Media types")
struct MediaTypeTests {
    @Test(
        "A media type and its charset are parsed",
        arguments: [
            ("text/html", "text/html", nil), ("Text/HTML;Charset=UTF-8", "text/html", "UTF-8"),
            (" text/html ; charset=\"utf-8\" ", "text/html", "utf-8"),
            ("a/b;charset=a;charset=b", "a/b", "a"),
            ("a/b;;;charset=x;", "a/b", "x"), ("a/b; x=\"a;charset=no\"; charset=yes", "a/b", "yes"),
            ("a/b; charset=\"a\\\"\\\\b\"", "a/b", "a\"\\b"), ("a/b; charset", "a/b", nil),
            ("a/b; charset=", "a/b", nil),
            ("a/b; charset =x", "a/b", nil), ("a/b; charset= x", "a/b", nil),
            ("a/b; charset=\"open", "a/b", nil),
            ("a/b; charset=\"x\"y; q=1", "a/b", nil), ("a/b; bad; charset=x", "a/b", "x"),
            ("a/b; charset=\"\"", "a/b", ""),
            ("application/vnd.api+json; v=1", "application/vnd.api+json", nil),
        ] as [(String, String, String?)])
    func parsing(text: String, essence: String, charset: String?) throws {
        let type = try #require(MediaType(text))
        #expect(type.essence == essence)
        #expect(type.charset == charset)
    }

    @Test(
        "An invalid media type is nil",
        arguments: [
            "", "text", "text/", "/html", "text /html", "text/html x", "text/html,text/plain", "tëxt/html",
            "a/b/c",
        ])
    func notMediaTypes(text: String) {
        #expect(MediaType(text) == nil)
    }

    @Test("Parameters of a media type are quoted only if necessary")
    func description() throws {
        let type = try #require(MediaType("Text/X; A=b; c=\"d e\\\"\"; f=\"\""))
        #expect(type.description == "text/x; a=b; c=\"d e\\\"\"; f=\"\"")
        #expect(MediaType(type.description) == type)
        #expect(type["C"] == "d e\"")
    }

    @Test("JSON is recognized by its subtype and its suffix")
    func json() {
        for text in [
            "application/json", "text/json", "application/problem+json", "model/gltf+json;charset=utf-8",
        ] {
            #expect(MediaType(text)?.isJSON == true)
        }
        for text in ["text/html", "application/jsonp", "image/json"] {
            #expect(MediaType(text)?.isJSON == false)
        }
    }

    @Test(
        "A megabyte of any input is parsed quickly",
        arguments: [";", "\"", "\\", "a=\"b\";", ";a=", "\"\\", "a"])
    func hugeInputs(unit: String) {
        let (_, time) = ThreadTime.of {
            MediaType("a/b;" + String(repeating: unit, count: (1 << 20) / unit.utf8.count))
        }
        #expect(time < .seconds(20))
    }
}
