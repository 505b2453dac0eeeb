import MartletContent
import MartletCore
import Testing

@Suite("Content-Encoding")
struct ContentCodingPlanTests {
    @Test(
        "Codings are decoded from the last to the first",
        arguments: [
            ([], []), ([""], []), (["gzip"], [.gzip]), ([" GZip "], [.gzip]), (["x-gzip"], [.gzip]),
            (["identity"], []), (["gzip, identity"], [.gzip]), (["gzip,deflate"], [.deflate, .gzip]),
            (["gzip", "deflate"], [.deflate, .gzip]), ([" , ,gzip,,"], [.gzip]),
            (["\tdeflate\t"], [.deflate]),
        ] as [([String], [ContentCoding])])
    func order(values: [String], codings: [ContentCoding]) throws {
        let plan = try ContentCodingPlan(fieldValues: values, unknown: .rejected)
        #expect(plan.codings == codings)
    }

    @Test(
        "A body with an unknown coding is passed through with all its codings",
        arguments: ["exi", "gzip, exi", "exi, gzip"])
    func passedThrough(value: String) throws {
        let plan = try ContentCodingPlan(fieldValues: [value])
        #expect(plan.codings.isEmpty)
    }

    @Test("A body with an unknown coding is rejected if the caller requires decoding")
    func rejected() {
        #expect(throws: ContentDecodingError.unknownCoding("compress")) {
            try ContentCodingPlan(fieldValues: ["gzip, compress, exi"], unknown: .rejected)
        }
    }

    @Test("Five codings are accepted and six are rejected, in one field or in several")
    func tooMany() throws {
        let five = [String](repeating: "gzip", count: 5)
        #expect(try ContentCodingPlan(fieldValues: five).codings.count == 5)
        #expect(try ContentCodingPlan(fieldValues: [five.joined(separator: ",")]).codings.count == 5)
        let expected = ContentDecodingError.tooManyCodings(limit: 5)
        for values in [
            five + ["identity"], [five.joined(separator: ",") + ",br"], [String](repeating: "br", count: 6),
        ] {
            #expect(throws: expected) { try ContentCodingPlan(fieldValues: values) }
        }
    }

    @Test("A megabyte of commas is parsed quickly")
    func commas() throws {
        let (plan, time) = try ThreadTime.of {
            try ContentCodingPlan(fieldValues: [String(repeating: ",", count: 1 << 20)])
        }
        #expect(plan.codings.isEmpty)
        #expect(time < .seconds(20))
    }
}
