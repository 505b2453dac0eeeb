import MartletContent
import MartletCore
import MartletHosts
import MartletStreams
import MartletTesting
import Testing

/// Compressed bodies that are corrupt, truncated, oversized or nested, received through a session.
@Suite("Hostile content codings", .timeLimit(.minutes(20)))
struct HostileCodingTests {
    private static let sample = Deflated.sample(5000)
    private static let gzip = Deflated.bytes(sample, as: .gzip)

    /// Receives a body whose length matches its Content-Length.
    private func receive(
        _ body: [UInt8], coding: String = "gzip", lines: String = "", isStreamed: Bool = false,
        headers: HTTPHeaders = HTTPHeaders(), options: RequestOptions = RequestOptions(),
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> HostileReceipt {
        var received = HostileReceipt()
        let head =
            "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\n\(lines)Content-Length: \(body.count)\r\n\r\n"
        // The framing is valid, so the connection may be reused; otherwise the second connection serves the next
        // request.
        let script = ServerScript(
            .expectRequestHead, .send(Array(head.utf8) + body), .expectRequestHead, .send(HostileScene.good),
            .awaitClose)
        try await HostileScene.with(.memory, script, configure: configure) { scene in
            received = await scene.request(isStreamed: isStreamed, headers: headers, options: options)
            #expect(await scene.next() == "good")
        }
        return received
    }

    @Test("A gzip body cut at any byte is an error even if its Content-Length matches", arguments: [false, true])
    func cut(isStreamed: Bool) async throws {
        let gzip = Deflated.bytes(Array("hello hello hello".utf8), as: .gzip)
        for count in 1..<gzip.count {
            let receipt = try await receive(Array(gzip.prefix(count)), isStreamed: isStreamed)
            #expect(receipt.error?.code == .contentDecodingFailed, "after \(count) bytes")
            #expect("hello hello hello".hasPrefix(receipt.text))
        }
    }

    @Test("A wrong checksum, a wrong length and a flipped byte are errors", arguments: [8, 4, 300, 200])
    func corrupt(_ fromEnd: Int) async throws {
        var body = HostileCodingTests.gzip
        body[body.count - fromEnd] ^= 0x55
        let receipt = try await receive(body)
        #expect(receipt.error?.code == .contentDecodingFailed)
        #expect(receipt.body.isEmpty)
    }

    @Test(
        "A body that does not match its coding is an error",
        arguments: ["gzip", "deflate", "x-gzip", "GZIP"])
    func notEncoded(_ coding: String) async throws {
        let receipt = try await receive(
            Array("<html>EVIL EVIL EVIL</html>".utf8), coding: coding, isStreamed: true)
        #expect(receipt.error?.code == .contentDecodingFailed)
        #expect(!receipt.isPoisoned)
    }

    @Test("Bytes after a gzip body are an error", arguments: ["EVIL", "\u{1F}"])
    func trailing(_ junk: String) async throws {
        let receipt = try await receive(HostileCodingTests.gzip + Array(junk.utf8))
        #expect(receipt.error?.code == .contentDecodingFailed)
    }

    @Test("Two gzip members are one body")
    func members() async throws {
        let receipt = try await receive(
            Deflated.bytes(Array("one ".utf8), as: .gzip) + Deflated.bytes(Array("two".utf8), as: .gzip))
        #expect(receipt.text == "one two")
    }

    @Test("An empty body with a coding is an empty body")
    func empty() async throws {
        let receipt = try await receive([])
        #expect(receipt.error == nil)
        #expect(receipt.body.isEmpty)
    }

    @Test("A bomb is stopped by its ratio, both streamed and collected", arguments: [false, true])
    func bomb(isStreamed: Bool) async throws {
        let body = Deflated.bytes([UInt8](repeating: 0, count: 32 << 20), as: .gzip)
        let receipt = try await receive(body, isStreamed: isStreamed)
        #expect(receipt.error?.code == .contentDecodingFailed)
        #expect(receipt.body.count <= (10 << 20) + (64 << 10))
    }

    @Test("A bomb within a bomb is stopped after little work")
    func nestedBomb() async throws {
        let inner = Deflated.bytes([UInt8](repeating: 0, count: 32 << 20), as: .gzip)
        let receipt = try await receive(
            Deflated.bytes(inner, as: .gzip), coding: "gzip, gzip", isStreamed: true)
        #expect(receipt.error?.code == .contentDecodingFailed)
        #expect(receipt.body.count <= (10 << 20) + (64 << 10))
    }

    @Test("Smaller configured limits are enforced")
    func smallerBounds() async throws {
        let zeros = Deflated.bytes([UInt8](repeating: 0, count: 100_000), as: .gzip)
        let ratio = try await receive(zeros) {
            $0.decompressionLimits.ratioThreshold = 1000
            $0.decompressionLimits.maximumRatio = 10
        }
        #expect(ratio.error?.code == .contentDecodingFailed)
        let size = try await receive(zeros) { $0.decompressionLimits.maximumByteCount = 99_999 }
        #expect(size.error?.code == .bodyTooLarge)
        let whole = try await receive(zeros) { $0.decompressionLimits.maximumByteCount = 100_000 }
        #expect(whole.body.count == 100_000)
    }

    @Test(
        "More than five codings are rejected, in one field or in several",
        arguments: [
            ("gzip, gzip, gzip, gzip, gzip, gzip", ""),
            ("gzip", String(repeating: "Content-Encoding: gzip\r\n", count: 19)),
            ("identity,identity,identity,identity,identity,gzip", ""),
            (String(repeating: "gzip,", count: 5000), ""),
        ])
    func tooManyCodings(_ coding: String, _ lines: String) async throws {
        let receipt = try await receive(HostileCodingTests.gzip, coding: coding, lines: lines)
        #expect(receipt.error?.code == .contentDecodingFailed)
        #expect(receipt.body.isEmpty)
    }

    @Test("Five codings are decoded")
    func fiveCodings() async throws {
        var body = Array("hello".utf8)
        for _ in 0..<5 { body = Deflated.bytes(body, as: .gzip) }
        let receipt = try await receive(body, coding: "gzip, gzip, gzip, gzip, gzip")
        #expect(receipt.text == "hello")
    }

    @Test(
        "A body with an unknown coding is delivered unchanged",
        arguments: ["exi", "compress", "gzip, exi", "gzip;q=1"])
    func unknownCoding(_ coding: String) async throws {
        let receipt = try await receive(HostileCodingTests.gzip, coding: coding)
        #expect(receipt.error == nil)
        #expect(receipt.body == HostileCodingTests.gzip)
        #expect(receipt.fields[.contentEncoding] == coding)
    }

    @Test("A body is delivered unchanged for an own Accept-Encoding, for a range, and with decoding off")
    func notAskedFor() async throws {
        let own = try await receive(HostileCodingTests.gzip, headers: [.acceptEncoding: "gzip"])
        #expect(own.body == HostileCodingTests.gzip)
        let none = try await receive(HostileCodingTests.gzip) { $0.decompressesResponses = false }
        #expect(none.body == HostileCodingTests.gzip)
        let range = try await receive(HostileCodingTests.gzip, headers: [.range: "bytes=0-"])
        #expect(range.body == HostileCodingTests.gzip)
    }

    @Test("The option to decode applies to codings that the caller requested, but not to ranges")
    func demanded() async throws {
        for headers: HTTPHeaders in [[.acceptEncoding: "gzip"], [.acceptEncoding: "br, gzip"]] {
            let receipt = try await receive(
                HostileCodingTests.gzip, headers: headers, options: RequestOptions(decompresses: true))
            #expect(receipt.body == HostileCodingTests.sample)
        }
        let range = try await receive(
            HostileCodingTests.gzip, headers: [.acceptEncoding: "gzip", .range: "bytes=0-"],
            options: RequestOptions(decompresses: true))
        #expect(range.body == HostileCodingTests.gzip)
    }

    @Test("A corrupt download leaves no file")
    func corruptDownload() async throws {
        let body = HostileCodingTests.gzip.dropLast()
        let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n"
        let directory = try TemporaryDirectory()
        let script = ServerScript(.expectRequestHead, .send(Array(head.utf8) + body), .awaitClose)
        try await HostileScene.with(.memory, script) { scene in
            await #expect(throws: HTTPError.self) {
                try await scene.session.download(
                    HTTPRequest(method: .get, url: scene.base + "/file"), to: FilePath(directory.path + "/file"))
            }
            let left = try directory.contents()
            #expect(left.isEmpty)
        }
    }

    @Test("A truncated chunked gzip body is a framing error and not a short body")
    func brokenChunks() async throws {
        let part = HostileCodingTests.gzip.prefix(100)
        let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n"
        let script = ServerScript(
            .expectRequestHead, .send(Array(head.utf8) + part + Array("\r\n".utf8)), .close)
        try await HostileScene.with(.plain, script) { scene in
            let receipt = await scene.request(isStreamed: true)
            #expect(receipt.error?.code == .truncated)
            #expect(HostileCodingTests.sample.starts(with: receipt.body))
            #expect(await scene.next() == "good")
        }
    }
}
