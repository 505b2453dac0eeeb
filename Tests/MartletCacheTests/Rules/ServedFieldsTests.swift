import MartletWire
import Testing

@testable import MartletCache

@Suite("Fields of a served response")
struct ServedFieldsTests {
    private func variant(_ fields: FieldBlock) -> StoredVariant {
        let head = StoredHead(
            key: CacheKey(url: Scene.url), status: 200, reason: "OK", fields: fields,
            requestTime: Scene.at(0),
            responseTime: Scene.at(0))
        return StoredVariant(head: head, bodyLength: 3)
    }

    @Test("Each served response has its own Age, and the received Age is not sent")
    func ages() {
        let variant = variant(FieldBlock([("ETag", "\"1\""), ("age", "7"), ("X-Last", "1")]))
        for age in [7, 7, 8, 8, 7, 100] as [Int64] {
            let fields = variant.fields(ofAge: age)
            #expect(fields.values(of: "Age") == ["\(age)"])
            #expect(fields.map(\.name) == ["ETag", "X-Last", "Age"])
        }
        #expect(variant.head.fields.values(of: "Age") == ["7"])
    }

    @Test("A change to the fields of a served response does not affect others")
    func changed() {
        let variant = variant(FieldBlock([("ETag", "\"1\"")]))
        var fields = variant.fields(ofAge: 1)
        fields.append(name: "X-Own", value: "1")
        #expect(variant.fields(ofAge: 1).map(\.name) == ["ETag", "Age"])
    }
}
