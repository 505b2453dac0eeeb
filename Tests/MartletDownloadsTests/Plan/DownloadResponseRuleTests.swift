import MartletCredentials
import MartletContent
@testable import MartletDownloads
import MartletWire
import Testing

@Suite("What an answer is to a download")
struct DownloadResponseRuleTests {
    /// A row of the table.
    struct Row: Sendable, CustomTestStringConvertible {
        /// What the judgement is, but for its words.
        enum Kind: Equatable, Sendable {
            case part(UInt64, Range<UInt64>, total: UInt64)
            case whole, changedWhole, unproven, changedPart, unwilling, refused, failed
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
            name: "the part that was asked for", status: 206, fields: [tag, range("100-199/1000")],
            byteCount: 100, expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "the first part", range: 0..<200, isConditional: false, status: 206,
            fields: [tag, range("0-199/1000")], byteCount: 200, known: nil, total: nil,
            expected: .part(0, 0..<200, total: 1_000)),
        Row(
            name: "a small file as its first part", range: 0..<200, isConditional: false, status: 206,
            fields: [range("0-9/10")], byteCount: 10, known: nil, total: nil,
            expected: .part(0, 0..<10, total: 10)),
        Row(
            name: "N5: a conditional part without the tag that the file had", status: 206,
            fields: [range("100-199/1000")], expected: .refused),
        Row(name: "N2: the whole file, of no known state", status: 200, known: nil, expected: .whole),
        Row(
            name: "N2: the whole file in the known state, asked for without a condition",
            isConditional: false, status: 200, fields: [tag], expected: .whole),
        Row(
            name: "N2: the whole file in the known state despite If-Range", status: 200, fields: [tag],
            expected: .unwilling),
        Row(
            name: "N2: the whole file, asked for as that", range: nil, status: 200, fields: [tag],
            expected: .whole),
        Row(
            name: "N2: the whole file without a tag", isConditional: false, status: 200,
            expected: .unproven),
        Row(name: "a page without a validator, despite If-Range", status: 200, expected: .unproven),
        Row(
            name: "a page without a validator, in a coding", status: 200,
            fields: [("Content-Encoding", "gzip")], expected: .unproven),
        Row(
            name: "a page with a date, where the file had a tag alone", status: 200,
            fields: [("Last-Modified", "Tue, 15 Nov 1994 12:00:00 GMT")], expected: .unproven),
        Row(
            name: "a page with a tag, where the file had a date alone", status: 200, fields: [otherTag],
            known: datedFields, expected: .unproven),
        Row(
            name: "the whole file of another date", status: 200,
            fields: [("Last-Modified", "Wed, 16 Nov 1994 12:00:00 GMT")], known: datedFields,
            expected: .changedWhole),
        Row(
            name: "the whole file without a validator, where it had a weak tag", status: 200,
            known: [("ETag", "W/\"a\"")], expected: .changedWhole),
        Row(name: "another success", status: 203, fields: [otherTag], expected: .changedWhole),
        Row(
            name: "N3: a part without Content-Range", status: 206, fields: [tag], byteCount: 100,
            expected: .refused),
        Row(
            name: "N3: a part with two of them", status: 206,
            fields: [tag, range("100-199/1000"), range("100-199/1000")], expected: .refused),
        Row(
            name: "N3: a part with one that cannot be read", status: 206, fields: [tag, range("x")],
            expected: .refused),
        Row(
            name: "N3: a part of no length", status: 206, fields: [tag, range("100-199/*")],
            expected: .refused),
        Row(
            name: "N3: a part that is none", status: 206, fields: [tag, range("*/1000")],
            expected: .refused),
        Row(
            name: "N3: a part of a file of another length", status: 206,
            fields: [tag, range("100-199/1001")], expected: .refused),
        Row(
            name: "N3: a part behind the one asked for", status: 206, fields: [tag, range("101-199/1000")],
            expected: .refused),
        Row(
            name: "N3: a part before the one asked for", status: 206, fields: [tag, range("0-99/1000")],
            expected: .refused),
        Row(
            name: "N3: a part that ends too early", status: 206, fields: [tag, range("100-149/1000")],
            byteCount: 50, expected: .part(0, 100..<150, total: 1_000)),
        Row(
            name: "N3: a part that is shorter than it says", status: 206,
            fields: [tag, range("100-199/1000")], byteCount: 99, expected: .refused),
        Row(
            name: "N3: a part where the whole file was asked for", range: nil, status: 206,
            fields: [tag, range("0-999/1000")], expected: .refused),
        Row(
            name: "N4: a part that begins earlier", status: 206, fields: [tag, range("90-199/1000")],
            byteCount: 110, expected: .part(10, 100..<200, total: 1_000)),
        Row(
            name: "N4: all of the file as a part", status: 206, fields: [tag, range("0-999/1000")],
            expected: .part(100, 100..<200, total: 1_000)),
        Row(
            name: "N5: the whole file in another state", status: 200, fields: [otherTag],
            expected: .changedWhole),
        Row(
            name: "N5: a part in another state", status: 206, fields: [otherTag, range("100-199/1000")],
            expected: .changedPart),
        Row(
            name: "N5: a part in another state and of another length", status: 206,
            fields: [otherTag, range("100-199/900")], expected: .changedPart),
        Row(
            name: "N5: an unconditional part that proves nothing", isConditional: false, status: 206,
            fields: [range("100-199/1000")], expected: .refused),
        Row(
            name: "N5: an unconditional part that proves its state", isConditional: false, status: 206,
            fields: [tag, range("100-199/1000")], expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "N6: a part of a file that has a weak tag", isConditional: false, status: 206,
            fields: [("ETag", "W/\"a\""), range("100-199/1000")], known: [("ETag", "W/\"a\"")],
            expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "N6: a part whose tag became weak", status: 206,
            fields: [("ETag", "W/\"a\""), range("100-199/1000")], expected: .changedPart),
        Row(
            name: "N6: a part of another date", isConditional: false, status: 206,
            fields: [("Last-Modified", "Wed, 16 Nov 1994 12:00:00 GMT"), range("100-199/1000")],
            known: [("Last-Modified", "Tue, 15 Nov 1994 12:00:00 GMT")], expected: .changedPart),
        Row(
            name: "N7: a part without any validator", isConditional: false, status: 206,
            fields: [range("100-199/1000")], known: [], expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "N7: the whole file without any validator", isConditional: false, status: 200, known: [],
            expected: .changedWhole),
        Row(
            name: "N8: a first part in a coding", isConditional: false, status: 206,
            fields: [tag, range("100-199/1000"), ("Content-Encoding", "gzip")], known: nil,
            expected: .refused),
        Row(
            name: "N8: a later part in a coding", status: 206,
            fields: [tag, range("100-199/1000"), ("Content-Encoding", "gzip")], expected: .changedPart),
        Row(
            name: "N8: the whole file in a coding", status: 200,
            fields: [tag, ("Content-Encoding", "gzip")], expected: .changedWhole),
        Row(
            name: "N9: no byte, with the length", status: 416, fields: [range("*/100")],
            expected: .unsatisfied(100)),
        Row(name: "N10: no byte, without the length", status: 416, expected: .unsatisfied(nil)),
        Row(
            name: "N10: no byte, with a length that cannot be read", status: 416, fields: [range("*/x")],
            expected: .unsatisfied(nil)),
        Row(
            name: "N10: no byte where all were asked for", range: nil, status: 416, fields: [range("*/0")],
            expected: .failed),
        Row(name: "N10: 404", status: 404, expected: .failed),
        Row(name: "N10: 403", status: 403, expected: .failed),
        Row(name: "N11: 503", status: 503, expected: .failed),
        Row(name: "N14: a redirect that was not followed", status: 302, expected: .failed),
        Row(
            name: "N15: a first part of a length of its own", range: 0..<200, isConditional: false,
            status: 206, fields: [tag, range("0-199/9223372036854775807")], byteCount: 200, known: nil,
            total: nil, expected: .part(0, 0..<200, total: UInt64(Int64.max))),
        Row(
            name: "N16: several parts", status: 206,
            fields: [tag, ("Content-Type", "multipart/byteranges; boundary=x")], expected: .refused),
        Row(
            name: "N16: several parts that say that they are one", status: 206,
            fields: [tag, range("100-199/1000"), ("Content-Type", "multipart/byteranges")],
            expected: .refused),
        Row(
            name: "N21: more bytes than the part has", status: 206,
            fields: [tag, range("100-199/1000")], byteCount: 5_000,
            expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "N21: a part that goes on behind the one asked for", status: 206,
            fields: [tag, range("100-999/1000")], byteCount: 900,
            expected: .part(0, 100..<200, total: 1_000)),
        Row(
            name: "the rest of a file of unknown length", range: 100..<UInt64.max, status: 206,
            fields: [tag, range("100-999/1000")], total: nil, expected: .part(0, 100..<1_000, total: 1_000)),
    ]

    private func kind(_ verdict: DownloadResponseRule.Verdict) -> Row.Kind {
        switch verdict {
        case .part(let skipped, let range, let total): .part(skipped, range, total: total)
        case .whole: .whole
        case .changedWhole: .changedWhole
        case .unproven: .unproven
        case .changedPart: .changedPart
        case .unwilling: .unwilling
        case .unsatisfied(let total): .unsatisfied(total)
        case .refused: .refused
        case .failed: .failed
        }
    }

    @Test("Each answer is what the table says", arguments: rows)
    func verdicts(_ row: Row) throws {
        let facts = try DownloadResponseHead.sample(row.status, row.fields, byteCount: row.byteCount)
        let verdict = DownloadResponseRule.verdict(
            DownloadResponseRule.Asked(range: row.range, isConditional: row.isConditional), facts,
            known: row.known.map { Representation(FieldBlock($0)) }, total: row.total)
        #expect(kind(verdict) == row.expected)
        if case .refused(let why) = verdict { #expect(!why.isEmpty) }
    }

    @Test("What was asked is told in words")
    func words() {
        #expect(DownloadResponseRule.Asked(range: nil, isConditional: false).words == "the whole file")
        #expect(DownloadResponseRule.Asked(range: 5..<10, isConditional: true).words == "bytes 5-9")
        #expect(DownloadResponseRule.Asked(range: 5..<UInt64.max, isConditional: true).words == "bytes 5-")
    }
}
