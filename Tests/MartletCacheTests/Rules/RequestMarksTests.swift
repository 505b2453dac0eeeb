import MartletWire
import Testing

@testable import MartletCache

@Suite("The fields of a request that answers depend on")
struct RequestMarksTests {
    @Test(
        "Each is found in any case, and by its whole name alone",
        arguments: [
            ("Range", .range), ("If-Match", .ifMatch), ("If-Range", .ifRange),
            ("Authorization", .authorization),
            ("If-None-Match", .ifNoneMatch), ("If-Modified-Since", .ifModifiedSince),
            ("If-Unmodified-Since", .ifUnmodifiedSince), ("Cache-Control", .control), ("Pragma", .control),
        ] as [(String, RequestMarks)])
    func each(_ name: String, _ mark: RequestMarks) {
        for written in [name, name.lowercased(), name.uppercased()] {
            let fields = FieldBlock([("Accept", "*/*"), (written, "x"), ("User-Agent", "martlet")])
            #expect(RequestMarks(fields) == mark)
        }
        #expect(RequestMarks(FieldBlock([(name + "x", "x"), (String(name.dropLast()), "x")])) == [])
        #expect(RequestMarks(FieldBlock([(String(name.dropLast()) + "_", "x")])) == [])
    }

    @Test("Several are found beside each other, and none where there is none")
    func several() {
        let fields = FieldBlock([("If-Range", "x"), ("Range", "bytes=0-"), ("range", "bytes=1-")])
        #expect(RequestMarks(fields) == [.ifRange, .range])
        #expect(RequestMarks(FieldBlock()) == [])
    }
}
