import MartletCredentials
import MartletContent
@testable import MartletDownloads
import MartletWire
import Testing

@Suite("Decision on a response of a download")
struct DownloadResponseRuleTests {
    /// A row of the decision table.
    struct Row: Sendable, CustomTestStringConvertible {
        /// The kind of decision, without its texts.
        enum Kind: Equatable, Sendable {
            case part(UInt64, Range<UInt64>, total: UInt64)
            case whole, changedWhole, unproven, changedPart, rangeIgnored, rejected, failed
            case unsatisfied(UInt64?)
        }

        let name: String
        var range: Range<UInt64>? = 100..<200
        var isConditional = true
        let status: Int
        var fields: [(String, String)] = []
        var byteCount: UInt64?
        var known: [(String, String)]? = [("ETag", "\"a\"")]
        var total: UInt64? = 1_000
        let expected: Kind

        var testDescription: String { name }
    }

    private static let tag = ("ETag", "\"a\"")
    private static let datedFields = [
        ("Last-Modified", "Tue, 15 Nov 1994 12:00:00 GMT"), ("Date", "Wed, 15 Nov 1995 12:00:00 GMT"),
    ]
    private static let otherTag = ("ETag", "\"b\"")
    private static func range(_ text: String) -> (String, String) { ("Content-Range", "bytes \(text)") }

    static let rows: [Row] = [
        Row(
            name: "the requested range", status: 206, fields: [tag, range("100-199/1000")],
            byteCount: 100, expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "the first range", range: 0..<200, isConditional: false, status: 206,
            fields: [tag, range("0-199/1000")], byteCount: 200, known: nil, total: nil,
            expected: .part(0, 0..<200, total: 1_000)),
        Row(
            name: "a small file as its first range", range: 0..<200, isConditional: false, status: 206,
            fields: [range("0-9/10")], byteCount: 10, known: nil, total: nil,
            expected: .part(0, 0..<10, total: 10)),
        Row(
            name: "a conditional range without the former tag of the file", status: 206,
            fields: [range("100-199/1000")], expected: .rejected),
        Row(name: "the whole file of an unknown version", status: 200, known: nil, expected: .whole),
        Row(
            name: "the whole file in the known version, requested without a condition",
            isConditional: false, status: 200, fields: [tag], expected: .whole),
        Row(
            name: "the whole file in the known version despite If-Range", status: 200, fields: [tag],
            expected: .rangeIgnored),
        Row(
            name: "the whole file in response to a request for it", range: nil, status: 200, fields: [tag],
            expected: .whole),
        Row(
            name: "the whole file without a tag", isConditional: false, status: 200,
            expected: .unproven),
        Row(name: "a page without a validator, despite If-Range", status: 200, expected: .unproven),
        Row(
            name: "a page without a validator, with a content coding", status: 200,
            fields: [("Content-Encoding", "gzip")], expected: .unproven),
        Row(
            name: "a page with a date for a file with only a tag", status: 200,
            fields: [("Last-Modified", "Tue, 15 Nov 1994 12:00:00 GMT")], expected: .unproven),
        Row(
            name: "a page with a tag for a file with only a date", status: 200, fields: [otherTag],
            known: datedFields, expected: .unproven),
        Row(
            name: "the whole file of another date", status: 200,
            fields: [("Last-Modified", "Wed, 16 Nov 1994 12:00:00 GMT")], known: datedFields,
            expected: .changedWhole),
        Row(
            name: "the whole file without a validator, formerly with a weak tag", status: 200,
            known: [("ETag", "W/\"a\"")], expected: .whole),
        Row(
            name: "the whole file in a version with another weak tag", isConditional: false, status: 200,
            fields: [("ETag", "W/\"b\"")], known: [("ETag", "W/\"a\"")], expected: .changedWhole),
        Row(name: "another successful status", status: 203, fields: [otherTag], expected: .changedWhole),
        Row(
            name: "a range without Content-Range", status: 206, fields: [tag], byteCount: 100,
            expected: .rejected),
        Row(
            name: "a range with two Content-Range fields", status: 206,
            fields: [tag, range("100-199/1000"), range("100-199/1000")], expected: .rejected),
        Row(
            name: "a range with an unreadable Content-Range", status: 206, fields: [tag, range("x")],
            expected: .rejected),
        Row(
            name: "a range of a file without a length", status: 206, fields: [tag, range("100-199/*")],
            expected: .rejected),
        Row(
            name: "a 206 without a range", status: 206, fields: [tag, range("*/1000")],
            expected: .rejected),
        Row(
            name: "a range of a file of another length", status: 206,
            fields: [tag, range("100-199/1001")], expected: .rejected),
        Row(
            name: "a range that starts after the requested one", status: 206, fields: [tag, range("101-199/1000")],
            expected: .rejected),
        Row(
            name: "a range before the requested one", status: 206, fields: [tag, range("0-99/1000")],
            expected: .rejected),
        Row(
            name: "a range that ends too early", status: 206, fields: [tag, range("100-149/1000")],
            byteCount: 50, expected: .part(0, 100..<150, total: 1_000)),
        Row(
            name: "a range with fewer bytes than its Content-Range", status: 206,
            fields: [tag, range("100-199/1000")], byteCount: 99, expected: .rejected),
        Row(
            name: "a range in response to a request for the whole file", range: nil, status: 206,
            fields: [tag, range("0-999/1000")], expected: .rejected),
        Row(
            name: "a range that starts earlier", status: 206, fields: [tag, range("90-199/1000")],
            byteCount: 110, expected: .part(10, 100..<200, total: 1_000)),
        Row(
            name: "the whole file as a range", status: 206, fields: [tag, range("0-999/1000")],
            expected: .part(100, 100..<200, total: 1_000)),
        Row(
            name: "the whole file in another version", status: 200, fields: [otherTag],
            expected: .changedWhole),
        Row(
            name: "a range of another version", status: 206, fields: [otherTag, range("100-199/1000")],
            expected: .changedPart),
        Row(
            name: "a range of another version and length", status: 206,
            fields: [otherTag, range("100-199/900")], expected: .changedPart),
        Row(
            name: "an unconditional range without a validator", isConditional: false, status: 206,
            fields: [range("100-199/1000")], expected: .rejected),
        Row(
            name: "an unconditional range with the same tag", isConditional: false, status: 206,
            fields: [tag, range("100-199/1000")], expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "a range of a file with a weak tag", isConditional: false, status: 206,
            fields: [("ETag", "W/\"a\""), range("100-199/1000")], known: [("ETag", "W/\"a\"")],
            expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "a range whose tag became weak", status: 206,
            fields: [("ETag", "W/\"a\""), range("100-199/1000")], expected: .changedPart),
        Row(
            name: "a range of another date", isConditional: false, status: 206,
            fields: [("Last-Modified", "Wed, 16 Nov 1994 12:00:00 GMT"), range("100-199/1000")],
            known: [("Last-Modified", "Tue, 15 Nov 1994 12:00:00 GMT")], expected: .changedPart),
        Row(
            name: "a range without any validator", isConditional: false, status: 206,
            fields: [range("100-199/1000")], known: [], expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "the whole file without any validator", isConditional: false, status: 200, known: [],
            expected: .whole),
        Row(
            name: "a first range with a content coding", isConditional: false, status: 206,
            fields: [tag, range("100-199/1000"), ("Content-Encoding", "gzip")], known: nil,
            expected: .rejected),
        Row(
            name: "a later range with a content coding", status: 206,
            fields: [tag, range("100-199/1000"), ("Content-Encoding", "gzip")], expected: .changedPart),
        Row(
            name: "the whole file with a content coding", status: 200,
            fields: [tag, ("Content-Encoding", "gzip")], expected: .changedWhole),
        Row(
            name: "416 with the length", status: 416, fields: [range("*/100")],
            expected: .unsatisfied(100)),
        Row(name: "416 without the length", status: 416, expected: .unsatisfied(nil)),
        Row(
            name: "416 with an unreadable length", status: 416, fields: [range("*/x")],
            expected: .unsatisfied(nil)),
        Row(
            name: "416 to a request for the whole file", range: nil, status: 416, fields: [range("*/0")],
            expected: .failed),
        Row(name: "404", status: 404, expected: .failed),
        Row(name: "403", status: 403, expected: .failed),
        Row(name: "503", status: 503, expected: .failed),
        Row(name: "a redirect that was not followed", status: 302, expected: .failed),
        Row(
            name: "a first range of a file of the maximum length", range: 0..<200, isConditional: false,
            status: 206, fields: [tag, range("0-199/9223372036854775807")], byteCount: 200, known: nil,
            total: nil, expected: .part(0, 0..<200, total: UInt64(Int64.max))),
        Row(
            name: "a multipart response", status: 206,
            fields: [tag, ("Content-Type", "multipart/byteranges; boundary=x")], expected: .rejected),
        Row(
            name: "a multipart response with a Content-Range", status: 206,
            fields: [tag, range("100-199/1000"), ("Content-Type", "multipart/byteranges")],
            expected: .rejected),
        Row(
            name: "more bytes than the range has", status: 206,
            fields: [tag, range("100-199/1000")], byteCount: 5_000,
            expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "a range that ends after the requested one", status: 206,
            fields: [tag, range("100-999/1000")], byteCount: 900,
            expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "the rest of a file of unknown length", range: 100..<UInt64.max, status: 206,
            fields: [tag, range("100-999/1000")], total: nil, expected: .part(0, 100..<1_000, total: 1_000)),
    ]

    private func kind(_ decision: DownloadResponseRule.Decision) -> Row.Kind {
        switch decision {
        case .part(let skipped, let range, let total): .part(skipped, range, total: total)
        case .whole: .whole
        case .changedWhole: .changedWhole
        case .unproven: .unproven
        case .changedPart: .changedPart
        case .rangeIgnored: .rangeIgnored
        case .unsatisfied(let total): .unsatisfied(total)
        case .rejected: .rejected
        case .failed: .failed
        }
    }

    @Test("Each response gives the decision of the table", arguments: rows)
    func decisions(_ row: Row) throws {
        let responseHead = try DownloadResponseHead.sample(row.status, row.fields, byteCount: row.byteCount)
        let decision = DownloadResponseRule.decision(
            DownloadResponseRule.Asked(range: row.range, isConditional: row.isConditional), responseHead,
            known: row.known.map { Representation(FieldBlock($0)) }, total: row.total)
        #expect(kind(decision) == row.expected)
        if case .rejected(let why) = decision { #expect(!why.isEmpty) }
    }

    @Test("The description of a request is readable")
    func words() {
        #expect(DownloadResponseRule.Asked(range: nil, isConditional: false).words == "the whole file")
        #expect(DownloadResponseRule.Asked(range: 5..<10, isConditional: true).words == "bytes 5-9")
        #expect(DownloadResponseRule.Asked(range: 5..<UInt64.max, isConditional: true).words == "bytes 5-")
    }
}
