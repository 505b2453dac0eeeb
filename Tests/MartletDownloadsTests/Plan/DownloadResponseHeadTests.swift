import MartletStreams
import MartletCaching
import MartletCore
import MartletHosts
import MartletDownloads
import MartletWire
import Testing

@Suite("Response head of a download")
struct DownloadResponseHeadTests {
    @Test("A Content-Range is valid, unreadable, or absent")
    func ranges() throws {
        func part(_ values: String...) throws -> DownloadResponseHead.Part {
            try DownloadResponseHead.sample(206, values.map { ("Content-Range", $0) }).part
        }
        #expect(try part() == .none)
        #expect(try part("bytes 0-9/20") == .range(.satisfied(0..<10, total: 20)))
        #expect(try part("bytes 0-9/*") == .range(.satisfied(0..<10, total: nil)))
        #expect(try part("bytes */20") == .range(.unsatisfied(total: 20)))
        for text in ["bytes 9-0/20", "bytes 0-20/20", "items 0-9/20", "bytes=0-9/20", "", "bytes 0-9"] {
            #expect(try part(text) == .unreadable(text))
        }
        #expect(try part("bytes 0-9/20", "bytes 0-9/20") == .unreadable("bytes 0-9/20, bytes 0-9/20"))
        #expect(
            try part("bytes 0-18446744073709551615/*") == .unreadable("bytes 0-18446744073709551615/*"))
    }

    @Test(
        "Multipart responses are recognized by their type",
        arguments: [
            ("multipart/byteranges; boundary=x", true), ("Multipart/ByteRanges", true), ("text/plain", false),
            ("", false),
        ])
    func multipart(_ type: String, _ isMultipart: Bool) throws {
        #expect(try DownloadResponseHead.sample(206, [("Content-Type", type)]).isMultipart == isMultipart)
    }

    @Test(
        "Retry-After is seconds or a date; any other value is ignored",
        arguments: [
            ("120", Duration.seconds(120)), ("0", .zero), ("-1", nil), ("soon", nil), ("1e9", nil),
            ("99999999999999999999", .seconds(1_000_000_000)),
            ("Tue, 14 Nov 2023 22:14:20 GMT", .seconds(60)), ("Tue, 14 Nov 1995 22:14:20 GMT", .zero),
        ])
    func retryAfter(_ value: String, _ expected: Duration?) throws {
        #expect(try DownloadResponseHead.sample(503, [("Retry-After", value)]).retryAfter == expected)
    }

    @Test("Dates, digests and names are read if they are valid")
    func rest() throws {
        let responseHead = try DownloadResponseHead.sample(
            200,
            [
                ("Last-Modified", "Tue, 15 Nov 1994 12:45:26 GMT"),
                ("Repr-Digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"),
                ("Content-Disposition", "attachment; filename=a"),
            ], byteCount: 19)
        #expect(responseHead.modified == 784_903_526)
        #expect(responseHead.digests.map(\.algorithm) == [.sha256])
        #expect(responseHead.disposition == "attachment; filename=a")
        #expect(responseHead.byteCount == 19)
        let nothing = try DownloadResponseHead.sample(200, [("Last-Modified", "x"), ("Repr-Digest", "x")])
        #expect(nothing.modified == nil && nothing.digests.isEmpty && nothing.disposition == nil)
    }

    @Test("The description of a response contains its Content-Range")
    func words() throws {
        #expect(try DownloadResponseHead.sample(404).words == "404")
        #expect(
            try DownloadResponseHead.sample(206, [("Content-Range", "bytes 0-1/2")]).words
                == "206 with Content-Range: bytes 0-1/2")
        #expect(
            try DownloadResponseHead.sample(206, [("Content-Range", "x")]).words
                == "206 with Content-Range: x")
    }
}
