import Foundation
import Martlet
import MartletTesting
import Testing

/// The program is flooded by a server, and then requests a page of a correct one; then its memory is measured, which
/// other tests do not affect.
@Suite(
    "Memory under floods", .timeLimit(.minutes(20)),
    .enabled(if: MartletProgram.isBuilt, "the program martlet was not built with these tests"),
    .enabled(if: !MartletProgram.isSanitized, "a sanitizer's own memory would be measured"))
struct FloodMemoryTests {
    /// A flood and the response that starts it.
    struct Flood: Sendable, CustomTestStringConvertible {
        let name: String
        let start: String
        let endless: String
        var testDescription: String { name }

        static let all: [Flood] = [
            Flood(name: "a status line", start: "HTTP/1.1 200 ", endless: "a"),
            Flood(name: "one field", start: "HTTP/1.1 200 OK\r\nA: ", endless: "a"),
            Flood(name: "fields", start: "HTTP/1.1 200 OK\r\n", endless: "A: b\r\n"),
            Flood(name: "early hints", start: "", endless: "HTTP/1.1 103 E\r\nA: b\r\n\r\n"),
            Flood(name: "chunk extensions", start: chunked, endless: "1;xxxxxxxxxxxxxxxx\r\na\r\n"),
            Flood(name: "leading zeros of a chunk size", start: chunked, endless: "0"),
            Flood(name: "trailers", start: chunked + "0\r\n", endless: "A: bbbbbbbb\r\n"),
            Flood(name: "a streamed body", start: "HTTP/1.1 200 OK\r\n\r\n", endless: "x"),
            Flood(name: "small chunks", start: chunked, endless: "1\r\nx\r\n"),
        ]
        private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    }

    @Test("A flood of any kind takes less than 20 MiB, and ends", arguments: Flood.all)
    func flood(_ flood: Flood) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let hostile = ServerScript(.expectRequestHead, .send(flood.start), .sendEndlessly(flood.endless))
        let honest = ServerScript(
            .expectRequestHead, .signal("requested"), .await("measured"),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: hostile, honest) { origin in
            let program = try await ChildProcess.start(
                MartletProgram.path,
                [
                    "get", origin.url("/flood"), "-s", "-o", "/dev/null", "-m", "3", "--next",
                    origin.url("/good"), "-s",
                ],
                in: directory.path, outputPath: directory.appending("program.log"))
            do {
                try await origin.signals.wait(for: "requested", within: .seconds(600))
                let peak = program.identifier.flatMap { ResidentMemory.peak(of: $0) }
                #expect(try #require(peak) < 20 << 20)
                origin.signals.raise("measured")
                _ = await program.waitForExit()
                #expect(program.output == "good")
            } catch {
                await program.kill()
                throw error
            }
        }
    }
}
