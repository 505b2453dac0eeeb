import MartletWire
import Testing

@testable import MartletCache

@Suite("The fields of a request that answers depend on")
struct RequestFieldSetTests {
    @Test(
        "Each is found in any case, and by its whole name alone",
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

    @Test("Several are found beside each other, and none where there is none")
    func several() {
        let fields = FieldBlock([("If-Range", "x"), ("Range", "bytes=0-"), ("range", "bytes=1-")])
        #expect(RequestFieldSet(fields) == [.ifRange, .range])
        #expect(RequestFieldSet(FieldBlock()) == [])
    }
}
