import MartletWire
import Testing

@testable import MartletCache

@Suite("Request fields that affect caching")
struct RequestFieldSetTests {
    @Test(
        "Each field is recognized in any case and only by its whole name",
        arguments: [
            ("Range", .range), ("If-Match", .ifMatch), ("If-Range", .ifRange),
            ("Authorization", .authorization),
            ("If-None-Match", .ifNoneMatch), ("If-Modified-Since", .ifModifiedSince),
            ("If-Unmodified-Since", .ifUnmodifiedSince), ("Cache-Control", .control), ("Pragma", .control),
        ] as [(String, RequestFieldSet)])
    func each(_ name: String, _ mark: RequestFieldSet) {
        for written in [name, name.lowercased(), name.uppercased()] {
            let fields = FieldBlock([("Accept", "*/*"), (written, "x"), ("User-Agent", "martlet")])
            #expect(RequestFieldSet(fields) == mark)
        }
        #expect(RequestFieldSet(FieldBlock([(name + "x", "x"), (String(name.dropLast()), "x")])) == [])
        #expect(RequestFieldSet(FieldBlock([(String(name.dropLast()) + "_", "x")])) == [])
    }

    @Test("Several fields are found together, and absent fields are not found")
    func several() {
        let fields = FieldBlock([("If-Range", "x"), ("Range", "bytes=0-"), ("range", "bytes=1-")])
        #expect(RequestFieldSet(fields) == [.ifRange, .range])
        #expect(RequestFieldSet(FieldBlock()) == [])
    }
}
