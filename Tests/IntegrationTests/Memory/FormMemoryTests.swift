import Foundation
import Glibc
import Martlet
import MartletTesting
import Synchronization
import Testing

/// The memory of the program is measured, not of this process, which also runs other tests.
@Suite(
    "Memory of a streamed form",
    .enabled(if: MartletProgram.isBuilt, "the program martlet was not built with these tests"),
    .enabled(if: !MartletProgram.isSanitized, "a sanitizer's own memory would be measured"))
struct FormMemoryTests {
    /// The request that the server received.
    private struct Receipt: Sendable {
        var announced: UInt64?
        var type: String
        var beginning: [UInt8]
    }

    /// The number of form bytes to read: many times the memory limit.
    private static let readByteCount = 256 << 20

    @Test(
        "A form with a file of 10 GiB takes less than 16 MiB of memory and has its exact length")
    func largeFile() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = directory.appending("sea.mp4")
        // A sparse file takes no space, and is read like any other file.
        try #require(FileManager.default.createFile(atPath: file, contents: nil))
        try #require(unsafe truncate(file, 10 << 30) == 0)
        let receipt = Mutex<Receipt?>(nil)
        var peak = 0
        try await TestOrigin.withOrigin { request in
            var found = Receipt(
                announced: request.headers["Content-Length"].flatMap { UInt64($0) },
                type: request.headers["Content-Type"] ?? "", beginning: [])
            var count = 0
            for try await piece in request.body {
                if found.beginning.count < 1024 { found.beginning += piece.prefix(1024) }
                count += piece.count
                if count >= Self.readByteCount { break }
            }
            receipt.withLock { [found] in $0 = found }
            return .text("enough", status: 413).with { $0.closesConnection = true }
        } run: { origin in
            let program = try await ChildProcess.start(
                MartletProgram.path,
                ["get", origin.url("/"), "-s", "-S", "-F", "title=Sea", "-F", "film=@\(file)"],
                in: directory.path, outputPath: directory.appending("program.log"))
            let deadline = ContinuousClock.now + .seconds(1200)
            while receipt.withLock({ $0 == nil }), !program.hasExited, ContinuousClock.now < deadline {
                peak = max(peak, program.identifier.flatMap { ResidentMemory.peak(of: $0) } ?? 0)
                try await Task.sleep(for: .milliseconds(5))
            }
            await program.kill()
        }
        let found = try #require(receipt.withLock { $0 })
        #expect(peak > 0)
        #expect(peak < 16 << 20)
        // All bytes around the file are these, and the end of the form.
        let blank = Array("\r\n\r\n".utf8)
        let ends = found.beginning.indices.filter { found.beginning[$0...].starts(with: blank) }
        try #require(ends.count >= 2)
        let boundary = try #require(found.type.split(separator: "boundary=").last)
        let frame = UInt64(ends[1] + blank.count + "\r\n--\(boundary)--\r\n".utf8.count)
        #expect(found.announced == (10 << 30) + frame)
    }
}
